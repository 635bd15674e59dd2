"""Facts from calls of OpenHands' own tools, and from the lines in brackets with which it answers for them."""

import re
from collections.abc import Callable

from sessions_app.engine.extractors.base import (
    OK,
    Arguments,
    CallFacts,
    FileAction,
    ResultFacts,
    agent_call,
    command_call,
    exited,
    fetch_call,
    file_call,
    job_call,
    one_line,
    string,
    todos_call,
)
from sessions_app.engine.extractors.generic import failed, telling_line

_EDITOR = {
    "view": FileAction.READ,
    "create": FileAction.WRITTEN,
    "str_replace": FileAction.EDITED,
    "insert": FileAction.EDITED,
    "undo_edit": FileAction.EDITED,
}
_TERMINALS = ("terminal", "execute_bash")
_EDITORS = ("file_editor", "planning_file_editor", "str_replace_editor", "str_replace_based_edit_tool")
_JOB = "terminal"  # it runs one command at a time, so what goes on in it needs no other id
_KEY = re.compile(r"\AC-[a-z]\Z")
_REFUSED = re.compile(r"\AAction rejected: (.{0,1000})", re.DOTALL)
_NO_REASON = "User rejected the action"
_REJECTED = "[Last action has been rejected by the user]"
_ERROR = re.compile(r"\A(?:\[An error occurred during execution\.\]|ERROR:)\s*")
_ENDED = re.compile(
    r"^\[(?:The command completed|Command finished) with exit code (-?\d{1,6})\.?( CTRL\+[A-Z] was sent\.)?\](?:\n\[[^\n]*\])*\s*\Z",
    re.MULTILINE,
)
_RUNNING = re.compile(r"^\[The command (?:has no new output|timed out) after [\d.]{1,20} seconds\b", re.MULTILINE)
_NOT_RUN = re.compile(r'^\[Your command ".{0,4000}" is NOT executed\.', re.MULTILINE | re.DOTALL)
_PREVIOUS = "[Below is the output of the previous command.]"
_NOT_EDITED = re.compile(r"\A(?:No replacement was performed|Invalid `[a-z_]{1,40}` parameter)")


def _command(arguments: Arguments) -> CallFacts | None:
    command = arguments.get("command")
    if not isinstance(command, str):
        return None
    if arguments.get("is_input") in (True, "true") or not command.strip() or _KEY.match(command.strip()):
        return job_call(_JOB)
    return command_call(command.strip())


def _editor(arguments: Arguments) -> CallFacts:
    path, action = string(arguments, "path"), _EDITOR.get(string(arguments, "command"))
    return file_call(action, path) if action else CallFacts(target=path)


def _todos(arguments: Arguments) -> CallFacts:
    raw = arguments.get("task_list")
    if arguments.get("command") != "plan":
        return CallFacts(target="to-do list")
    return todos_call(raw, "title")


def _delegated(arguments: Arguments) -> CallFacts | None:
    tasks = arguments.get("tasks")
    if not isinstance(tasks, dict):
        return None
    return agent_call("; ".join([task for task in tasks.values() if isinstance(task, str)]))


def _fetch(arguments: Arguments) -> CallFacts:
    return fetch_call(string(arguments, "url"))


_TOOLS: dict[str, Callable[[Arguments], CallFacts | None]] = {
    **dict.fromkeys(_TERMINALS, _command),
    **dict.fromkeys(_EDITORS, _editor),
    "task_tracker": _todos,
    "delegate": _delegated,
    "browser_navigate": _fetch,
}
NAMES: frozenset[str] = frozenset((*_TOOLS, "apply_patch", "edit", "glob", "grep", "list_directory", "read_file", "task", "write_file"))


def call_facts(name: str, arguments: Arguments) -> CallFacts | None:
    """What the call does, or None when it is no tool that only OpenHands has."""
    tool = _TOOLS.get(name)
    return tool(arguments) if tool else None


def _command_ended(text: str) -> ResultFacts | None:
    tail = text[-3_000:]
    if ended := _ENDED.search(tail):
        if ended[2]:
            return ResultFacts(status="stopped", job_ended=True)
        message = telling_line(text[: len(text) - len(ended[0])]) if ended[1] != "0" else ""
        return exited(ended[1], message, job_ended=True)
    if _RUNNING.search(tail):
        # Whoever looks at a running command again starts no other.
        return ResultFacts(status="running in background", job="" if text.startswith(_PREVIOUS) else _JOB)
    if told := _NOT_RUN.search(text[-6_000:]):
        return ResultFacts(status="failed", message=one_line(told[0], 240))
    return None


def result_facts(name: str, text: str, *, is_error: bool) -> ResultFacts | None:
    """How the call ended where OpenHands has its own words for it, else None."""
    if refused := _REFUSED.match(text):
        said = refused[1].strip()
        return ResultFacts(status="refused", said="" if said == _NO_REASON else one_line(said, 600))
    if text.endswith(_REJECTED):
        return ResultFacts(status="refused")
    if name not in NAMES:
        return None
    if name in _TERMINALS and (ended := _command_ended(text)):
        return ended
    if error := _ERROR.match(text):
        return failed(text[error.end() :])
    if name in _EDITORS:
        return failed(text) if is_error or _NOT_EDITED.match(text) else OK
    return None
