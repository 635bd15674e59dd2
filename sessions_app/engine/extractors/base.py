"""What an extractor says of one tool call and of one result, in words that no agent owns."""

import re
from collections.abc import Mapping
from enum import StrEnum

import msgspec

Arguments = Mapping[str, object]


class FileAction(StrEnum):
    READ = "read"
    EDITED = "edited"
    WRITTEN = "written"
    DELETED = "deleted"

    @property
    def changes(self) -> bool:
        return self is not FileAction.READ


class TodoStatus(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"

    @classmethod
    def of(cls, word: object) -> "TodoStatus":
        """The status that an agent's own word means; an unknown word is pending."""
        return _STATUSES.get(word.lower(), _PENDING) if isinstance(word, str) else _PENDING


_PENDING = TodoStatus.PENDING
_STATUSES = {
    "in_progress": TodoStatus.IN_PROGRESS,
    "active": TodoStatus.IN_PROGRESS,
    "completed": TodoStatus.COMPLETED,
    "done": TodoStatus.COMPLETED,
}


class Todo(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    text: str
    status: TodoStatus
    key: str = ""  # the agent's own id of it, where it has one


class CallFacts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One call. `target` names it for people: its file, its command, its query.

    `todos` replaces the whole list when `replaces_todos`, else changes those with the same key.
    """

    target: str = ""
    action: FileAction | None = None
    paths: tuple[str, ...] = ()
    command: str = ""
    urls: tuple[str, ...] = ()
    todos: tuple[Todo, ...] = ()
    replaces_todos: bool = False
    job: str = ""  # id of the job in the background that it looks at, or
    ends_job: str = ""  # of the one that it stops


ENDED_JOB = {"completed": "ok", "failed": "failed", "killed": "stopped", "stopped": "stopped"}
"""How a job in the background came out, by the words for it in notices and answers."""


class ResultFacts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One result. `status` is `ok`, `exit N`, `failed`, `refused`, `interrupted`, `stopped` or `running in background`."""

    status: str = "ok"
    message: str = ""  # the line that says what went wrong
    said: str = ""  # what the person said when refusing, or answered when asked
    job: str = ""  # id of what goes on in the background
    job_ended: bool = False  # the job that was looked at; `status` is then how that came out
    todo_key: str = ""  # id that the tool gave to the to-do of its call

    @property
    def is_failure(self) -> bool:
        return self.status.startswith("exit ") or self.status == "failed"


OK = ResultFacts()
"""Nothing but that it went well: what most results come to."""


def string(arguments: Arguments, *names: str) -> str:
    """The first of the named arguments that is a text (or a list of words), else the empty text."""
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str):
            if said := value.strip():
                return said
        elif value and isinstance(value, list) and all(isinstance(word, str) for word in value):
            return " ".join(value)
    return ""


def one_line(text: str, limit: int) -> str:
    """The text on one line, at most `limit` characters, with an ellipsis where it was cut."""
    if len(text) <= limit and text.isprintable() and "  " not in text:
        return text.strip()  # as nearly all are: no white space but single spaces
    plain = " ".join(text[: limit * 4].split())
    return plain if len(plain) <= limit and len(text) <= limit * 4 else plain[: limit - 1].rstrip() + "…"


# What most agents' calls come to. Each takes what its own names of arguments gave.


def file_call(action: FileAction, path: str) -> CallFacts:
    return CallFacts(target=path, action=action, paths=(path,) if path else ())


def files_call(action: FileAction, paths: tuple[str, ...]) -> CallFacts:
    return CallFacts(target=one_line(", ".join(paths), 160), action=action if paths else None, paths=paths)


def command_call(command: str) -> CallFacts:
    return CallFacts(target=one_line(command, 160), command=command)


def search_call(what: str, where: str = "") -> CallFacts:
    return CallFacts(target=one_line(f"{what} in {where}" if where else what, 160))


def fetch_call(*urls: str) -> CallFacts:
    return CallFacts(target=one_line(", ".join(urls), 160), urls=tuple(url for url in urls if url.startswith("http")))


def agent_call(task: str) -> CallFacts:
    return CallFacts(target=one_line(task, 160))


def job_call(key: str) -> CallFacts:
    return CallFacts(target=f"job {key}", job=key)


def todos_call(raw: object, *names: str) -> CallFacts:
    """A call that hands over the whole list; `names` are those of the text of an item. What was cancelled is off the list."""
    items = raw if isinstance(raw, list) else []
    todos = tuple([todo for item in items if (todo := _todo(item, names)) is not None])
    return CallFacts(target="to-do list", todos=todos, replaces_todos=isinstance(raw, list))


def _todo(item: object, names: tuple[str, ...]) -> Todo | None:
    if isinstance(item, str):
        return Todo(one_line(item, 200), _PENDING) if item.strip() else None
    if not isinstance(item, dict) or item.get("status") == "cancelled":
        return None
    text = one_line(string(item, *names), 200)
    return Todo(text, TodoStatus.of(item.get("status"))) if text else None


def identifier(arguments: Arguments, *names: str) -> str:
    """The first of the named arguments that is an id: a short text, or a number."""
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()[:60]
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)[:60]
    return ""


_ANSWERED = re.compile(r"\AUser has answered your questions?: (.+?)(?:\. You can now continue[^\"]*)?\Z", re.DOTALL)


def answers(text: str) -> ResultFacts | None:
    """What the person said to the questions of an agent, where the result tells it in the usual sentence."""
    answered = _ANSWERED.match(text[:2_000])
    return ResultFacts(said=one_line(answered.group(1), 900)) if answered else None


def exited(code: str, message: str = "", *, job_ended: bool = False) -> ResultFacts:
    """The facts of a command that ended with this status."""
    if code == "0":
        return ResultFacts(job_ended=True) if job_ended else OK
    return ResultFacts(status=f"exit {code}", message=message, job_ended=job_ended)
