"""Facts from calls of Claude Code's own tools, and from the sentences with which it answers for them."""

import re
from collections.abc import Callable

from sessions_app.engine.extractors.base import (
    ENDED_JOB,
    OK,
    Arguments,
    CallFacts,
    FileAction,
    ResultFacts,
    Todo,
    TodoStatus,
    answers,
    one_line,
    string,
)

_FILE_TOOLS = {
    "Read": FileAction.READ,
    "NotebookRead": FileAction.READ,
    "Write": FileAction.WRITTEN,
    "Edit": FileAction.EDITED,
    "MultiEdit": FileAction.EDITED,
    "NotebookEdit": FileAction.EDITED,
}
_REFUSED = re.compile(r"\AThe user doesn't want to (?:proceed|take this action)")
_SAID = re.compile(r"the user said:\s*(.+)", re.DOTALL)
_INTERRUPTED = "[Request interrupted by user"
_BACKGROUND_WORDS = "running in background with ID: "
_BACKGROUND = re.compile(_BACKGROUND_WORDS + r"([\w-]{1,60})")
_TASK_ENDED = re.compile(r"<status>(completed|failed|killed|stopped)</status>")
_EXIT_CODE = re.compile(r"<exit_code>(-?\d{1,6})</exit_code>")
_HEAD = 2_000  # characters of a result in which the sentences stand
_TASK_CREATED = re.compile(r"\ATask #(\w{1,40}) created")


def _file(name: str, arguments: Arguments) -> CallFacts:
    path = string(arguments, "file_path", "notebook_path", "path")
    return CallFacts(target=path, action=_FILE_TOOLS[name], paths=(path,) if path else ())


def _command(_name: str, arguments: Arguments) -> CallFacts:
    command = string(arguments, "command")
    return CallFacts(target=one_line(command, 160), command=command)


def _search(_name: str, arguments: Arguments) -> CallFacts:
    where = string(arguments, "path", "glob")
    return CallFacts(target=one_line(string(arguments, "pattern", "query") + (f" in {where}" if where else ""), 160))


def _fetch(_name: str, arguments: Arguments) -> CallFacts:
    url = string(arguments, "url")
    return CallFacts(target=one_line(url, 160), urls=(url,) if url else ())


def _agent(_name: str, arguments: Arguments) -> CallFacts:
    return CallFacts(target=one_line(string(arguments, "description", "prompt"), 160))


def _todo_list(_name: str, arguments: Arguments) -> CallFacts:
    raw = arguments.get("todos")
    todos = tuple([_todo(item) for item in raw if isinstance(item, dict)]) if isinstance(raw, list) else ()
    return CallFacts(target="to-do list", todos=todos, replaces_todos=True)


def _todo(item: Arguments) -> Todo:
    return Todo(one_line(string(item, "content", "activeForm"), 200), TodoStatus.of(item.get("status")))


def _task_created(_name: str, arguments: Arguments) -> CallFacts:
    subject = one_line(string(arguments, "subject", "description"), 200)
    return CallFacts(target=subject, todos=(Todo(subject, TodoStatus.PENDING),))


def _task_changed(_name: str, arguments: Arguments) -> CallFacts:
    key = string(arguments, "taskId", "task_id")
    if "status" not in arguments and "subject" not in arguments:
        return CallFacts(target=f"task {key}")
    status = TodoStatus.COMPLETED if arguments.get("status") == "deleted" else TodoStatus.of(arguments.get("status"))
    return CallFacts(target=f"task {key}", todos=(Todo(one_line(string(arguments, "subject"), 200), status, key),))


def _job_ended(_name: str, arguments: Arguments) -> CallFacts:
    key = string(arguments, "shell_id", "task_id", "bash_id")
    return CallFacts(target=f"job {key}", ends_job=key)


def _job_read(_name: str, arguments: Arguments) -> CallFacts:
    key = string(arguments, "bash_id", "task_id", "shell_id")
    return CallFacts(target=f"job {key}", job=key)


_TOOLS: dict[str, Callable[[str, Arguments], CallFacts]] = {
    **dict.fromkeys(_FILE_TOOLS, _file),
    "Bash": _command,
    "Grep": _search,
    "Glob": _search,
    "WebSearch": _search,
    "WebFetch": _fetch,
    "Task": _agent,
    "Agent": _agent,
    "TodoWrite": _todo_list,
    "TaskCreate": _task_created,
    "TaskUpdate": _task_changed,
    "KillBash": _job_ended,
    "KillShell": _job_ended,
    "TaskStop": _job_ended,
    "BashOutput": _job_read,
    "TaskOutput": _job_read,
}


def call_facts(name: str, arguments: Arguments) -> CallFacts | None:
    """What the call does, or None when it is no tool of Claude Code."""
    tool = _TOOLS.get(name)
    return tool(name, arguments) if tool else None


def _bash_ended(text: str, *, is_error: bool) -> ResultFacts | None:
    if is_error or text.find(_BACKGROUND_WORDS, 0, _HEAD) < 0:
        return None
    job = _BACKGROUND.search(text, 0, _HEAD)
    return ResultFacts(status="running in background", job=job.group(1)) if job else None


def _job_told(text: str, *, is_error: bool) -> ResultFacts | None:  # noqa: ARG001  as the others
    head = text[:_HEAD]
    ended = _TASK_ENDED.search(head)
    if ended is None:
        return None
    code = _EXIT_CODE.search(head)
    has_failed = code is not None and code.group(1) != "0"
    return ResultFacts(job_ended=True, status=f"exit {code.group(1)}" if code and has_failed else ENDED_JOB[ended.group(1)])


def _task_numbered(text: str, *, is_error: bool) -> ResultFacts | None:  # noqa: ARG001  as the others
    created = _TASK_CREATED.match(text[:_HEAD])
    return ResultFacts(todo_key=created.group(1)) if created else None


def _questions_answered(text: str, *, is_error: bool) -> ResultFacts | None:  # noqa: ARG001  as the others
    return answers(text)


def _somebodys_text(text: str, *, is_error: bool) -> ResultFacts | None:  # noqa: ARG001  as the others
    return None if is_error else OK  # an exit status in it is not theirs


_RESULTS: dict[str, Callable[..., ResultFacts | None]] = {
    "Bash": _bash_ended,
    "BashOutput": _job_told,
    "TaskOutput": _job_told,
    "TaskCreate": _task_numbered,
    "AskUserQuestion": _questions_answered,
    **dict.fromkeys(("Read", "Grep", "Glob", "WebFetch", "WebSearch"), _somebodys_text),
}


NAMES: frozenset[str] = frozenset((*_TOOLS, *_RESULTS))


def result_facts(name: str, text: str, *, is_error: bool) -> ResultFacts | None:
    """How the call ended where Claude Code has its own words for it, else None."""
    if text.startswith(_INTERRUPTED):
        return ResultFacts(status="interrupted")
    if is_error and _REFUSED.match(text):
        said = _SAID.search(text[:6_000])
        return ResultFacts(status="refused", said=one_line(said.group(1), 600) if said else "")
    told = _RESULTS.get(name)
    return told(text, is_error=is_error) if told else None
