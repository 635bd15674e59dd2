"""What code reads from the answers of the tools of opencode, pi, Gemini CLI, Qwen Code, OpenHands and OpenWorker."""

import json

import pytest

from sessions_app.engine.extractors import FileAction, result_facts
from sessions_app.engine.mechanical import collect
from tests.engine.test_mechanical import Work

LATE = "shell tool terminated command after exceeding timeout 5000 ms. Retry with a larger timeout."
WAIT = "You may wait longer to see additional output by sending empty command ''.]"


def old_shell(output, code):
    return (
        f"Command: make\nDirectory: (root)\nOutput: {output}\nError: (none)\nExit Code: {code}\nSignal: (none)\n"
        "Background PIDs: (none)\nProcess Group PGID: 77"
    )


def terminal(output, code, more=""):
    return (
        f"{output}\n[The command completed with exit code {code}.{more}]\n[Current working directory: /w]\n"
        f"[Python interpreter: /usr/bin/python]\n[Command finished with exit code {code}]"
    )


def shell(code, output="", **more):
    return json.dumps({"command": "make", "cwd": "/w", "exit_code": code, "output": output, "timed_out": False, "truncated": False, **more})


@pytest.mark.parametrize(
    ("name", "text", "status", "message"),
    [
        # opencode
        ("bash", "error: only in the output\n", "ok", ""),
        ("bash", f"half\n\n<shell_metadata>\n{LATE}\n</shell_metadata>", "failed", LATE),
        ("bash", "half\n\n<bash_metadata>\nUser aborted the command\n</bash_metadata>", "interrupted", ""),
        ("bash", "Tool execution aborted", "interrupted", ""),
        ("bash", "The user rejected permission to use this specific tool call.", "refused", ""),
        ("webfetch", "The user has specified a rule which prevents you from using this specific tool call. Rules: []", "refused", ""),
        ("question", "The user dismissed this question", "refused", ""),
        ("edit", "Edit applied successfully.", "ok", ""),
        ("edit", "Could not find oldString in the file. Look again.", "failed", "Could not find oldString in the file. Look again."),
        ("task", '<task id="ses_1" state="completed">\n<task_result>\ndone\n</task_result>\n</task>', "ok", ""),
        ("task", '<task id="ses_1" state="error">\n<task_error>\nno model\n</task_error>\n</task>', "failed", "no model"),
        ("read", "Exit code: 3 is what the notes say", "ok", ""),
        # pi
        ("bash", "make: *** no rule\n\n\nCommand exited with code 2", "exit 2", "make: *** no rule"),
        ("bash", "(no output)\n\nCommand exited with code 1", "exit 1", ""),
        ("bash", "half\n\nCommand timed out after 120 seconds", "failed", "Command timed out after 120 seconds"),
        ("bash", "half\n\nCommand aborted", "interrupted", ""),
        ("edit", "Successfully replaced 1 block(s) in src/a.py.", "ok", ""),
        (
            "edit",
            "Could not find the exact text in src/a.py. It must match.",
            "failed",
            "Could not find the exact text in src/a.py. It must match.",
        ),
        # Gemini CLI, Qwen Code
        ("run_shell_command", old_shell("fatal: nothing here", 128), "exit 128", "fatal: nothing here"),
        ("run_shell_command", old_shell("error: only in the output", 0), "ok", ""),
        ("run_shell_command", json.dumps({"output": old_shell("no such thing", 1)}), "exit 1", "no such thing"),
        ("run_shell_command", "Output: bad thing\nExit Code: 2\nProcess Group PGID: 7", "exit 2", "bad thing"),
        ("run_shell_command", "Output: fine\nProcess Group PGID: 7", "ok", ""),
        ("run_shell_command", "Output: (empty)\nSignal: SIGKILL\nProcess Group PGID: 7", "failed", "signal SIGKILL"),
        ("run_shell_command", "Command was cancelled by user before it could complete. There was no output", "interrupted", ""),
        (
            "run_shell_command",
            "Command was automatically cancelled because it exceeded the timeout of 5.0 minutes without output.",
            "failed",
            "Command was automatically cancelled because it exceeded the timeout of 5.0 minutes without output.",
        ),
        ("run_shell_command", '{"error":"[Operation Cancelled] Reason: User did not allow tool call"}', "refused", ""),
        ("replace", "[Operation Cancelled] Reason: User denied execution.", "refused", ""),
        ("mcp_thing", "[Operation Cancelled] Reason: User cancelled the operation.", "interrupted", ""),
        ("read_file", '{"error":"File not found: /w/a.py"}', "failed", "File not found: /w/a.py"),
        ("replace", "Failed to edit, 0 occurrences found for old_string", "failed", "Failed to edit, 0 occurrences found for old_string"),
        ("write_file", '{"output":"Successfully overwrote file: /w/a.py."}', "ok", ""),
        # OpenHands
        ("terminal", terminal("fine, no error", 0), "ok", ""),
        ("terminal", terminal("ls: cannot access 'x'", 2), "exit 2", "ls: cannot access 'x'"),
        ("execute_bash", "oops\n[The command completed with exit code 1.]", "exit 1", "oops"),
        ("terminal", terminal("^C", 130, " CTRL+C was sent."), "stopped", ""),
        ("terminal", f"half\n[The command timed out after 9.0 seconds. {WAIT}", "running in background", ""),
        (
            "terminal",
            '\n[Your command "ls" is NOT executed. The previous command is still running - wait.]',
            "failed",
            '[Your command "ls" is NOT executed.',
        ),
        ("terminal", "[An error occurred during execution.]\nCannot execute two at once.", "failed", "Cannot execute two at once."),
        ("terminal", "Action rejected: User rejected the action", "refused", ""),
        ("grep", "Action rejected: not there", "refused", ""),
        ("str_replace_editor", "ERROR:\nNo replacement was performed", "failed", "No replacement was performed"),
        ("file_editor", "File created successfully at: /w/a.py", "ok", ""),
        ("execute_bash", "\n[Last action has been rejected by the user]", "refused", ""),
        # OpenWorker
        ("run_shell", shell(0, "error: only in the output"), "ok", ""),
        ("run_shell", shell(2, "make: *** no rule\n"), "exit 2", "make: *** no rule"),
        ("run_shell", shell(130, "half", timed_out=True), "failed", "timed out"),
        ("run_shell", shell(130, "half", timed_out=True, error="interrupted by user"), "interrupted", ""),
        ("run_shell", '{"error": "shell not running"}', "failed", "shell not running"),
        ("run_shell", '{"error": "tool call not executed", "reason": "denied by user"}', "refused", ""),
        ("send_message", '{"error": "tool call not executed", "reason": "denied by user"}', "refused", ""),
        ("write_file", '{"error": "tool call not executed", "reason": "interrupted by user"}', "interrupted", ""),
        ("write_file", '{"error": "tool call not executed", "reason": "not in plan mode"}', "failed", "not in plan mode"),
        ("replace_in_file", '{"error": "Expected 1 replacement(s), found 0", "error_type": "ValueError"}', "failed",
         "Expected 1 replacement(s), found 0"),
        ("read_file", '{"path": "a.md", "content": "     1\\tError: exit code 3"}', "ok", ""),
    ],
)  # fmt: skip
def test_a_result_says_how_its_call_ended(name, text, status, message):
    told = result_facts(name, text, is_error=False)
    assert (told.status, told.message) == (status, message)


@pytest.mark.parametrize(
    ("name", "text", "status"),
    [("bash", "Blocked by user", "refused"), ("read", "Operation aborted", "interrupted"), ("read", "ENOENT: no such file", "failed")],
)
def test_what_pi_marks_as_an_error_is_told_apart(name, text, status):
    assert result_facts(name, text, is_error=True).status == status


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("bash", "The user rejected permission to use this specific tool call with the following feedback: use the saw", "use the saw"),
        ("question", 'User has answered your questions: "Wood?"="oak". You can now continue with the answers in mind.', '"Wood?"="oak"'),
        ("terminal", "Action rejected: use the saw", "use the saw"),
        ("ask_user", '{"answer": "oak", "via": "inline"}', "oak"),
        ("propose_plan", '{"approved": false, "feedback": "smaller steps"}', "smaller steps"),
    ],
)
def test_what_the_person_said_is_kept(name, text, said):
    assert result_facts(name, text, is_error=False).said == said


@pytest.mark.parametrize(
    ("name", "text", "job"),
    [
        ("run_shell_command", "Command moved to background (PID: 4711). Output hidden.", "4711"),
        ("run_shell_command", "Background command started. PID: 4711", "4711"),
        ("run_shell_command", "Background shell started.\nid: bg_a1\npid: 4711", "bg_a1"),
        ("run_shell", '{"task_id": "bg-1", "command": "make", "status": "running", "note": "poll"}', "bg-1"),
        ("task", '<task id="ses_1" state="running">\n<task_result>\nworking\n</task_result>\n</task>', "ses_1"),
        ("terminal", f"half\n[The command has no new output after 30 seconds. {WAIT}", "terminal"),
    ],
)
def test_what_goes_on_in_the_background_has_an_id(name, text, job):
    told = result_facts(name, text, is_error=False)
    assert (told.status, told.job) == ("running in background", job)


def test_a_command_in_the_terminal_is_a_job_until_it_ended():
    running = f"half\n[The command has no new output after 30 seconds. {WAIT}"
    work = Work().user().tool("terminal", {"command": "npm test"}, running).tool("terminal", {"command": "", "is_input": True}, running)
    assert [job.target for job in collect(work.entries).jobs] == ["npm test"]
    work.tool("terminal", {"command": "", "is_input": True}, terminal("1 failed", 1))
    state = collect(work.entries)
    assert (state.jobs, [(command.command, command.status) for command in state.commands]) == ((), [("npm test", "exit 1")])


def test_a_job_of_the_shell_is_over_when_it_exited_or_was_stopped():
    started = {"command": "npm run dev", "run_in_background": True}
    work = Work().user().tool("run_shell", started, '{"task_id": "bg-1", "status": "running"}')
    work.tool("run_shell", {"command": "make", "run_in_background": True}, '{"task_id": "bg-2", "status": "running"}')
    work.tool("shell_task_output", {"task_id": "bg-1"}, '{"task_id": "bg-1", "status": "running", "exit_code": null, "output": ""}')
    assert [job.target for job in collect(work.entries).jobs] == ["npm run dev", "make"]
    work.tool("shell_task_output", {"task_id": "bg-1"}, '{"task_id": "bg-1", "status": "exited", "exit_code": 1, "output": "no port"}')
    work.tool("shell_task_kill", {"task_id": "bg-2"}, '{"task_id": "bg-2", "status": "killed", "exit_code": -15}')
    state = collect(work.entries)
    assert (state.jobs, [command.status for command in state.commands]) == ((), ["exit 1", "stopped"])


def test_an_edit_that_failed_leaves_no_changed_file_without_a_mark_on_its_result():
    work = Work().user().tool("edit", {"filePath": "a.py"}, "Could not find oldString in the file.")
    work.tool("edit", {"path": "b.py"}, "Successfully replaced 1 block(s) in b.py.")
    assert [(file.path, file.action) for file in collect(work.entries).files] == [("b.py", FileAction.EDITED)]
