"""Facts from calls of the tools of Gemini CLI and Qwen Code, and from the lines with which they answer for them."""

import re
from collections.abc import Callable

from sessions_app.engine.extractors.base import (
    OK,
    Arguments,
    CallFacts,
    FileAction,
    ResultFacts,
    Todo,
    TodoStatus,
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
    "write_file": FileAction.WRITTEN,
    "replace": FileAction.EDITED,
    "edit": FileAction.EDITED,
}
_WRAPPED = re.compile(r'\A\{"(?:output|error)":')
_CANCELLED = re.compile(r'\A(?:\{"error":\s?")?\[Operation Cancelled\] Reason: (.{1,200})')
_CUT_OFF = re.compile(r"\ACommand was cancelled (?:by user )?before it could complete\b")
_TIMED_OUT = re.compile(r"\ACommand was automatically cancelled because it exceeded the timeout of .{1,80}")
_BACKGROUND = re.compile(
    r"\A(?:Command moved to background \(PID: |Background command started\. PID: |Background shell started\.\s+id: )([\w-]{1,60})"
)
_ENDED = re.compile(
    r"(?:\A|\n)(?:Exit Code: (?P<code>-?\d{1,6}|\(none\))(?:\nSignal: (?P<signal>[^\n]{1,40}))?|Signal: (?P<only_signal>[^\n]{1,40}))"
    r"(?:\nBackground PIDs: [^\n]{0,400})?(?:\nProcess Group PGID: [^\n]{0,40})?\s*\Z"
)
_NO_ERROR = re.compile(r"\nError: \(none\)\s*\Z")
_NOT_EDITED = re.compile(r"\A(?:Error: )?(?:Failed to edit\b|File not found: |File already exists, cannot create: )")
_URL = re.compile(r"https?://[^\s\"'<>`]{1,2000}")
_TASK_CREATED = re.compile(r'\ATask created successfully\..{0,200}?"id": ?"([^"]{1,60})"', re.DOTALL)


def _file(name: str, arguments: Arguments) -> CallFacts | None:
    path = string(arguments, "file_path", "absolute_path")  # others have tools of these names as well
    return file_call(_FILE_TOOLS[name], path) if path else None


def _files(_name: str, arguments: Arguments) -> CallFacts:
    for name in ("include", "paths"):
        told = arguments.get(name)
        if isinstance(told, list):
            return files_call(FileAction.READ, tuple(dict.fromkeys(path for path in told[:100] if isinstance(path, str) and path)))
    return CallFacts()


def _command(_name: str, arguments: Arguments) -> CallFacts:
    return command_call(string(arguments, "command"))


def _search(_name: str, arguments: Arguments) -> CallFacts:
    what = string(arguments, "pattern", "query")
    where = string(arguments, "dir_path", "path", "include_pattern", "include", "glob")
    return search_call(what, where) if what else search_call(where)


def _fetch(_name: str, arguments: Arguments) -> CallFacts:
    url, prompt = string(arguments, "url"), string(arguments, "prompt")
    if url:
        return fetch_call(url)
    urls = tuple(dict.fromkeys(found.rstrip(".,;:!?)]}") for found in _URL.findall(prompt[:20_000])))
    return fetch_call(*urls[:20]) if urls else search_call(prompt)


def _agent(_name: str, arguments: Arguments) -> CallFacts:
    return agent_call(string(arguments, "description", "objective", "prompt"))


def _todos(_name: str, arguments: Arguments) -> CallFacts:
    return todos_call(arguments.get("todos"), "description", "content")


def _task_created(_name: str, arguments: Arguments) -> CallFacts:
    title = one_line(string(arguments, "title"), 200)
    return CallFacts(target=title, todos=(Todo(title, TodoStatus.PENDING),) if title else ())


def _task_changed(_name: str, arguments: Arguments) -> CallFacts:
    key, title = identifier(arguments, "taskId"), one_line(string(arguments, "title"), 200)
    if not key or ("status" not in arguments and not title):
        return CallFacts(target=f"task {key}")
    status = arguments.get("status")
    meant = TodoStatus.COMPLETED if status == "cancelled" else TodoStatus.of(status)
    return CallFacts(target=f"task {key}", todos=(Todo(title, meant, key),))


def _job_read(_name: str, arguments: Arguments) -> CallFacts:
    return job_call(identifier(arguments, "pid"))


_TOOLS: dict[str, Callable[[str, Arguments], CallFacts | None]] = {
    **dict.fromkeys(_FILE_TOOLS, _file),
    **dict.fromkeys(("glob", "grep_search", "search_file_content", "list_directory", "google_web_search", "web_search"), _search),
    **dict.fromkeys(("agent", "codebase_investigator"), _agent),
    **dict.fromkeys(("write_todos", "todo_write"), _todos),
    "read_many_files": _files,
    "run_shell_command": _command,
    "read_background_output": _job_read,
    "web_fetch": _fetch,
    "task_create": _task_created,
    "task_update": _task_changed,
}
NAMES: frozenset[str] = frozenset((*_TOOLS, "task"))


def call_facts(name: str, arguments: Arguments) -> CallFacts | None:
    """What the call does, or None when it is no tool of Gemini CLI or Qwen Code."""
    tool = _TOOLS.get(name)
    if name == "todo_write" and "todos" not in arguments:
        return None
    return tool(name, arguments) if tool else None


def _command_ended(text: str) -> ResultFacts | None:
    if _CUT_OFF.match(text):
        return ResultFacts(status="interrupted")
    if late := _TIMED_OUT.match(text):
        return ResultFacts(status="failed", message=one_line(late[0], 240))
    if running := _BACKGROUND.match(text):
        return ResultFacts(status="running in background", job=running[1])
    ended = _ENDED.search(text[-600:])
    if ended is None:
        return OK if text.startswith("Output: ") else None
    code, signal = ended["code"], ended["signal"] or ended["only_signal"]
    if code and code != "(none)":
        return exited(code, telling_line(_put_out(text[: len(text) - len(ended[0])])) if code != "0" else "")
    return ResultFacts(status="failed", message=f"signal {signal}") if signal and signal != "(none)" else None


def _put_out(text: str) -> str:
    """What the command itself put out."""
    rest = _NO_ERROR.sub("", text)
    return rest.partition("Output: ")[2] or rest


def _unwrapped(text: str) -> tuple[str, bool] | None:
    """The answer in `{"output": …}` or `{"error": …}`, and whether it is an error."""
    if not _WRAPPED.match(text):
        return None
    try:
        told = decode(text)
    except NotJson:
        return None
    if isinstance(told, dict) and len(told) == 1:  # others answer with larger objects
        ((key, said),) = told.items()
        return (said, key == "error") if isinstance(said, str) else None
    return None


def result_facts(name: str, text: str, *, is_error: bool) -> ResultFacts | None:
    """How the call ended where Gemini CLI or Qwen Code has its own words for it, else None."""
    if cancelled := _CANCELLED.match(text):
        return ResultFacts(status="interrupted" if cancelled[1].startswith(("User cancelled", "Operation cancelled")) else "refused")
    if name not in NAMES:
        return None
    wrapped = _unwrapped(text)
    said, has_failed = wrapped or (text, is_error)
    if name == "run_shell_command" and (ended := _command_ended(said)):
        return ended
    if name == "task_create" and (created := _TASK_CREATED.match(said)):
        return ResultFacts(todo_key=created[1])
    if name in ("replace", "edit", "write_file") and _NOT_EDITED.match(said):
        return failed(said)
    if wrapped:
        return failed(said) if has_failed else OK
    return None
