"""What code knows of a history without a model. `mechanical.py` collects it."""

import msgspec

from sessions_app.engine.extractors.base import FileAction, Todo, TodoStatus


class FileRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """`action` is the last one, at entry `index`; `changed` the number of calls that changed the file."""

    path: str
    action: FileAction
    index: int
    changed: int = 0


class CommandRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    command: str
    status: str
    index: int


class Mention(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    text: str
    index: int


class CommitRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    sha: str
    subject: str
    branch: str
    index: int


class ErrorRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """`fixed_index`: the later entry by which the same thing succeeded."""

    index: int
    tool: str
    target: str
    status: str
    message: str = ""
    fixed_index: int | None = None


class Refusal(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A call that the person did not allow, with what they said instead."""

    index: int
    tool: str
    target: str
    said: str = ""


class OpenCall(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A call without a result, or a job that still runs in the background (`job` is its id)."""

    index: int
    tool: str
    target: str
    job: str = ""


class UserMessage(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """`answered_index`: the assistant's closing statement of the turn. `chars` is the whole length."""

    index: int
    text: str
    chars: int
    answered_index: int | None = None
    images: int = 0


class MechanicalState(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Everything in order of appearance, except files (by last action). Plain data: `msgspec.to_builtins` makes it JSON."""

    entries: int = 0
    goal: str = ""  # that somebody set for the session; without one its messages tell it
    cwd: str = ""
    branch: str = ""
    files: tuple[FileRecord, ...] = ()
    commands: tuple[CommandRecord, ...] = ()
    commands_run: int = 0
    tools: dict[str, int] = {}
    urls: tuple[Mention, ...] = ()
    identifiers: tuple[Mention, ...] = ()
    commits: tuple[CommitRecord, ...] = ()
    errors: tuple[ErrorRecord, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    answers: tuple[Mention, ...] = ()  # what the person chose when a tool asked
    todos: tuple[Todo, ...] = ()
    done: tuple[Mention, ...] = ()  # to-dos that were completed or dropped, also those of lists that others replaced since
    jobs: tuple[OpenCall, ...] = ()
    pending_calls: tuple[OpenCall, ...] = ()
    user_messages: tuple[UserMessage, ...] = ()

    @property
    def open_todos(self) -> tuple[Todo, ...]:
        return tuple(todo for todo in self.todos if todo.status is not TodoStatus.COMPLETED)

    @property
    def open_errors(self) -> tuple[ErrorRecord, ...]:
        return tuple(error for error in self.errors if error.fixed_index is None)
