"""What a shell command comes to: whether it only looks something up, and what its exit status means."""

import pytest

from sessions_app.engine import commands
from sessions_app.engine.mechanical import collect
from tests.engine.test_mechanical import Work

LOOK_UPS = (
    'rg -n "trace|Trace|agentv\\.v1" docs src',
    "sed -n '80,180p' src/index.ts; rg -n \"a|b && c\" src",
    "git -C /srv/app log --oneline | head -5",
    "git rev-parse HEAD && git ls-files | wc -l",
    "cat a.txt 2>/dev/null",
    'grep -rn "a > b" src 2>&1',
    "LC_ALL=C sort words.txt | uniq -c",
    "rg -n 'cut in the middle; rm -rf",
)
DEEDS = (
    "echo done > notes.txt",
    "cat a >> b",
    "find . -name '*.pyc' -delete",
    "sort -u words.txt -o words.txt",
    "grep x a && rm a",
    "git remote add origin x",
    "git log && git push",
    "pytest -q",
    "printenvelope",
)


@pytest.mark.parametrize("command", LOOK_UPS)
def test_a_command_that_only_reads_is_a_look_up_whatever_its_quotes_hold(command):
    assert commands.is_look_up(command)


@pytest.mark.parametrize("command", DEEDS)
def test_a_command_that_changes_something_or_is_unknown_is_none(command):
    assert not commands.is_look_up(command)


@pytest.mark.parametrize(
    ("command", "status", "meaning"),
    [
        ("cd /srv && rg -n 'a|b' src", "exit 1", "no match"),
        ("make && git grep -q x", "exit 1", "no match"),
        ("diff -u a b", "exit 1", "differs"),
        ("rg -n x src", "exit 2", "exit 2"),
        ("rg -n x src | python3 check.py", "exit 1", "exit 1"),
        ("npm test", "exit 1", "exit 1"),
        ("rg -n x src", "ok", "ok"),
    ],
)
def test_an_exit_status_of_one_from_a_search_or_a_comparison_is_an_answer(command, status, meaning):
    assert commands.verdict_of(command, status) == meaning


def test_a_search_that_finds_nothing_is_no_failure_of_the_session():
    state = collect(Work().user().tool("Bash", {"command": "grep -rn later src"}, "Exit code 1", is_error=True).entries)
    assert [command.status for command in state.commands] == ["no match"]
    assert state.errors == ()


@pytest.mark.parametrize(
    ("ended", "status"),
    [("<status>completed</status>\n<exit_code>0</exit_code>", "ok"), ("<status>failed</status>\n<exit_code>2</exit_code>", "exit 2")],
)
def test_a_command_in_the_background_is_told_with_how_it_came_out(ended, status):
    work = Work().user().tool("Bash", {"command": "make all"}, "Command running in background with ID: b1")
    work.tool("TaskOutput", {"task_id": "b1"}, "<status>running</status>")
    assert [job.job for job in collect(work.entries).jobs] == ["b1"]
    state = collect(work.tool("TaskOutput", {"task_id": "b1"}, ended).entries)
    assert [(command.command, command.status) for command in state.commands] == [("make all", status)]
    assert state.jobs == ()
    assert [(error.target, error.status) for error in state.errors] == ([("make all", status)] if status != "ok" else [])


def test_a_terminal_session_that_ended_is_told_of_the_command_that_began_it():
    work = Work().user().tool("exec_command", {"cmd": "bun run build"}, "Process running with session ID 12\nOutput:\n")
    work.tool("write_stdin", {"session_id": 12, "chars": ""}, "Process exited with code 1\nOutput:\nerror: no such module\n")
    state = collect(work.entries)
    assert [(command.command, command.status) for command in state.commands] == [("bun run build", "exit 1")]
    assert [(error.target, error.message) for error in state.errors] == [("bun run build", "error: no such module")]


def test_a_directory_that_only_the_shell_knows_is_not_called_the_working_directory():
    work = Work().user().tool("Bash", {"command": "cd /srv/app && ls"}).tool("Bash", {"command": 'cd "$(git rev-parse --git-dir)" && ls'})
    work.tool("Bash", {"command": "cd $HOME/x && ls"}).tool("Bash", {"command": "cd /tmp/$NAME && ls"})
    assert collect(work.entries).cwd == "/srv/app"
