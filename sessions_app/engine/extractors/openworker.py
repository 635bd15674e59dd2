"""Facts from calls of OpenWorker's own tools, and from the JSON objects with which they answer."""

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
    files_call,
    identifier,
    job_call,
    one_line,
    search_call,
    string,
    todos_call,
)
from sessions_app.engine.extractors.generic import failed, telling_line
from sessions_app.engine.foreign_json import NotJson, decode

_FILE_TOOLS = {
    "read_file": FileAction.READ,
    "read_file_lines": FileAction.READ,
    "write_file": FileAction.WRITTEN,
    "replace_in_file": FileAction.EDITED,
}
_NOT_RUN = re.compile(r'\A\{"error":\s?"tool call not executed",\s?"reason":\s?"([^"]{0,400})')
_DIFFED = re.compile(r"^--- ([^\n]{1,1000})\n\+\+\+ ([^\n]{1,1000})", re.MULTILINE)
_NOTHING = "/dev/null"
_STOPPED = "interrupted by user"


def _file(name: str, arguments: Arguments) -> CallFacts | None:
    path = string(arguments, "path")  # others have tools of these names as well
    return file_call(_FILE_TOOLS[name], path) if path else None


def _diff(_name: str, arguments: Arguments) -> CallFacts:
    pairs = [(_path(before, "a/"), _path(after, "b/")) for before, after in _DIFFED.findall(string(arguments, "diff"))]
    actions = {
        FileAction.DELETED if after == _NOTHING else FileAction.WRITTEN if before == _NOTHING else FileAction.EDITED
        for before, after in pairs
    }
    paths = tuple(dict.fromkeys(path for before, after in pairs if (path := before if after == _NOTHING else after)))
    return files_call(actions.pop() if len(actions) == 1 else FileAction.EDITED, paths)


def _path(line: str, prefix: str) -> str:
    """The path in a head of a unified diff: a time may stand behind it."""
    return line.partition("\t")[0].strip().removeprefix(prefix)


def _command(_name: str, arguments: Arguments) -> CallFacts:
    return command_call(string(arguments, "command"))


def _search(_name: str, arguments: Arguments) -> CallFacts:
    what, where = string(arguments, "pattern", "query"), string(arguments, "path", "glob")
    return search_call(what, where) if what else search_call(where)


def _fetch(_name: str, arguments: Arguments) -> CallFacts:
    return fetch_call(string(arguments, "url"))


def _agent(_name: str, arguments: Arguments) -> CallFacts | None:
    task = string(arguments, "task")
    return agent_call(task) if task else None


def _todos(_name: str, arguments: Arguments) -> CallFacts:
    return todos_call(arguments["todos"] if "todos" in arguments else arguments.get("items"), "content")


def _job_read(_name: str, arguments: Arguments) -> CallFacts:
    return job_call(identifier(arguments, "task_id"))


def _job_ended(_name: str, arguments: Arguments) -> CallFacts:
    key = identifier(arguments, "task_id")
    return CallFacts(target=f"job {key}", ends_job=key)


_TOOLS: dict[str, Callable[[str, Arguments], CallFacts | None]] = {
    **dict.fromkeys(_FILE_TOOLS, _file),
    **dict.fromkeys(("search_files", "list_files", "grep", "web_search"), _search),
    **dict.fromkeys(("explore", "delegate"), _agent),
    "apply_unified_diff": _diff,
    "run_shell": _command,
    "shell_task_output": _job_read,
    "shell_task_kill": _job_ended,
    "web_fetch": _fetch,
    "todo_write": _todos,
}
NAMES: frozenset[str] = frozenset((*_TOOLS, "apply_patch", "ask_user", "propose_plan", "request_directory"))


def call_facts(name: str, arguments: Arguments) -> CallFacts | None:
    """What the call does, or None when it is no tool of OpenWorker."""
    tool = _TOOLS.get(name)
    return tool(name, arguments) if tool else None


def _command_ended(told: Arguments) -> ResultFacts | None:
    output, code = string(told, "output"), identifier(told, "exit_code")
    if told.get("timed_out") is True:
        return ResultFacts(status="failed", message="timed out")
    if told.get("status") == "running":
        return ResultFacts(status="running in background", job=identifier(told, "task_id"))
    return exited(code, telling_line(output) if code != "0" else "") if code else None


def _job_told(told: Arguments) -> ResultFacts | None:
    code = identifier(told, "exit_code")
    if told.get("status") != "exited" or not code:
        return None
    return exited(code, telling_line(string(told, "output")) if code != "0" else "", job_ended=True)


def _answered(told: Arguments) -> ResultFacts | None:
    return ResultFacts(said=one_line(answer, 900)) if (answer := string(told, "answer")) else None


def _decided(told: Arguments) -> ResultFacts | None:
    if told.get("approved") is False or told.get("granted") is False:
        return ResultFacts(status="refused", said=one_line(string(told, "feedback"), 600))
    return None


_RESULTS: dict[str, Callable[[Arguments], ResultFacts | None]] = {
    "run_shell": _command_ended,
    "shell_task_output": _job_told,
    "ask_user": _answered,
    "propose_plan": _decided,
    "request_directory": _decided,
}


def result_facts(name: str, text: str, *, is_error: bool) -> ResultFacts | None:  # noqa: ARG001  as the others
    """How the call ended where OpenWorker has its own words for it, else None."""
    if not text.startswith("{"):
        return None
    if refused := _NOT_RUN.match(text):
        reason = refused[1]
        if reason in ("denied by user", _STOPPED):
            return ResultFacts(status="interrupted" if reason == _STOPPED else "refused")
        return ResultFacts(status="failed", message=one_line(reason, 240))
    known = _RESULTS.get(name)
    if name not in NAMES or (known is None and not text.startswith('{"error"')):
        return None
    try:
        told = decode(text)
    except NotJson:
        return None
    if not isinstance(told, dict):
        return None
    error = string(told, "error")
    if error == _STOPPED:
        return ResultFacts(status="interrupted")
    if known and (facts := known(told)):
        return facts
    return failed(error) if error else OK if known else None
