"""What code reads from calls of Codex's tools, and from what they put out."""

import json

import pytest

from sessions_app.engine.extractors import FileAction, TodoStatus, call_facts, result_facts
from sessions_app.engine.mechanical import collect
from tests.engine.test_mechanical import Work

PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** End Patch"


def ended(code: int, said: str) -> str:
    return f"Chunk ID: ab12cd\nWall time: 0.1000 seconds\nProcess exited with code {code}\nOriginal token count: 9\nOutput:\n{said}"


@pytest.mark.parametrize(
    ("name", "arguments", "command"),
    [
        ("exec_command", {"cmd": "make test", "workdir": "/home/dev"}, "make test"),
        ("shell", {"command": ["bash", "-lc", "make test"]}, "make test"),
        ("shell", {"command": ["/bin/zsh", "-c", "make test"]}, "make test"),
        ("local_shell", {"command": ["make", "test"], "type": "exec"}, "make test"),
        ("shell_command", {"command": "make test"}, "make test"),
        ("shell", {"command": [1, None]}, ""),
    ],
)
def test_a_command_is_what_the_shell_was_told(name, arguments, command):
    assert call_facts(name, json.dumps(arguments)).command == command


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("apply_patch", {"input": PATCH}),
        ("shell", {"command": ["apply_patch", PATCH]}),
        ("shell", {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"]}),
        ("exec_command", {"cmd": f"apply_patch <<'EOF'\n{PATCH}\nEOF"}),
    ],
)
def test_a_patch_names_its_files_however_it_is_handed_over(name, arguments):
    facts = call_facts(name, json.dumps(arguments))
    assert (facts.action, facts.paths, facts.command) == (FileAction.EDITED, ("src/a.py",), "")


@pytest.mark.parametrize(("word", "action"), [("Add", FileAction.WRITTEN), ("Update", FileAction.EDITED), ("Delete", FileAction.DELETED)])
def test_a_patch_says_what_became_of_its_file(word, action):
    assert call_facts("apply_patch", json.dumps({"input": f"*** {word} File: b.py\n+x"})).action is action


def test_a_plan_replaces_the_one_before():
    work = Work().user()
    work.tool("update_plan", {"plan": [{"step": "Read", "status": "in_progress"}, {"step": "Write", "status": "pending"}]}, "Plan updated")
    work.tool("update_plan", {"plan": [{"step": "Read", "status": "completed"}]}, "Plan updated")
    assert [(todo.text, todo.status) for todo in collect(work.entries).todos] == [("Read", TodoStatus.COMPLETED)]


@pytest.mark.parametrize(
    ("name", "text", "status", "message"),
    [
        ("exec_command", ended(0, "Error: only in the output"), "ok", ""),
        ("exec_command", ended(2, "make: *** no rule\n"), "exit 2", "make: *** no rule"),
        ("apply_patch", "Exit code: 1\nWall time: 0 seconds\nOutput:\nerror: no such file", "exit 1", "error: no such file"),
        (
            "shell",
            '{"output":"bash: x: not found\\n","metadata":{"exit_code":127,"duration_seconds":0.0}}',
            "exit 127",
            "bash: x: not found",
        ),
        ("shell", '{"output":"fine","metadata":{"exit_code":0,"duration_seconds":0.0}}', "ok", ""),
        ("apply_patch", "patch rejected by user", "refused", ""),
        ("exec_command", 'exec_command failed: CreateProcess { message: "Rejected(\\"rejected by user\\")" }', "refused", ""),
        ("exec_command", "Wall time: 0.1 seconds\naborted by user", "interrupted", ""),
    ],
)
def test_a_result_says_how_its_call_ended(name, text, status, message):
    facts = result_facts(name, text, is_error=not text.endswith("fine"))
    assert (facts.status, facts.message) == (status, message)


def test_a_command_that_goes_on_is_a_job_until_its_process_ended():
    running = "Chunk ID: ab\nWall time: 10.0000 seconds\nProcess running with session ID 42\nOutput:\n"
    work = Work().user().tool("exec_command", {"cmd": "npm run dev"}, running).tool("write_stdin", {"session_id": 42}, running)
    assert [job.target for job in collect(work.entries).jobs] == ["npm run dev"]
    work.tool("write_stdin", {"session_id": 42, "chars": ""}, ended(0, "bye"))
    assert collect(work.entries).jobs == ()
