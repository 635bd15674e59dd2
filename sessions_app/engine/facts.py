"""Facts that a history states and a view of it should still hold, in ten classes, taken by code."""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

import msgspec

from sessions_app.engine import asks, commands, sentences
from sessions_app.engine.asks import AskKind
from sessions_app.engine.extractors import Todo, TodoStatus, one_line
from sessions_app.engine.state import CommandRecord, ErrorRecord, FileRecord, UserMessage

MAX_FACTS = 2_000
"""Of each class: the newest. How many more there were is counted."""

_ASK_CHARS, _COMMAND_CHARS = 200, 120


class FactClass(StrEnum):
    """The classes, in the order in which a report lists them."""

    ASK = "user_ask"
    CONSTRAINT = "stated_constraint"
    TO_DO = "open_todo"
    FILE_EDITED = "file_edited"
    FILE_READ = "file_read"
    COMMAND = "command"
    ERROR = "error_line"
    URL = "url"
    IDENTIFIER = "identifier"
    NUMBER = "number_with_unit"

    @property
    def is_said(self) -> bool:
        """Whether it is a sentence, which other words may tell as well; a name or a number stands there or does not."""
        return self in _SAID

    @property
    def is_essential(self) -> bool:
        """Whether work goes wrong without it."""
        return self in _ESSENTIAL


_SAID = frozenset({FactClass.ASK, FactClass.CONSTRAINT, FactClass.TO_DO, FactClass.COMMAND, FactClass.ERROR})
_ESSENTIAL = frozenset({FactClass.ASK, FactClass.CONSTRAINT, FactClass.TO_DO, FactClass.FILE_EDITED})


class Fact(msgspec.Struct, frozen=True):
    """`index`: the entry that states it. `note`: how a command ended, what became of a file."""

    kind: FactClass
    text: str
    index: int
    note: str = ""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Each fact once, by class and in order. `beyond`: how many older ones a class had."""

    found: tuple[Fact, ...] = ()
    beyond: dict[FactClass, int] = {}

    def among(self, indexes: frozenset[int]) -> tuple[tuple[Fact, ...], tuple[Fact, ...]]:
        """Those that these entries state, and the others."""
        inside = tuple(fact for fact in self.found if fact.index in indexes)
        return inside, tuple(fact for fact in self.found if fact.index not in indexes)


class Collected(msgspec.Struct, kw_only=True):
    """What one pass over a history gathers, each list in order and uncut."""

    files: Iterable[FileRecord] = ()
    commands: Sequence[CommandRecord] = ()
    errors: Sequence[ErrorRecord] = ()
    urls: dict[str, int] = {}
    identifiers: dict[str, int] = {}
    numbers: dict[str, int] = {}
    users: Sequence[UserMessage] = ()
    todos: Iterable[tuple[Todo, int]] = ()


def gather(seen: Collected) -> Facts:
    """The facts. Linear in what was collected; of each class only the newest `MAX_FACTS` are kept."""
    files = list(seen.files)
    asked = [(message.index, ask.text) for message in reversed(seen.users) if (ask := asks.read(message.text)).kind is AskKind.WORDS]
    newest_first: dict[FactClass, Iterator[Fact]] = {
        FactClass.ASK: _asks(asked),
        FactClass.CONSTRAINT: _constraints(asked),
        FactClass.TO_DO: _todos(seen.todos),
        FactClass.FILE_EDITED: _files(FactClass.FILE_EDITED, files),
        FactClass.FILE_READ: _files(FactClass.FILE_READ, files),
        FactClass.COMMAND: _commands(seen.commands),
        FactClass.ERROR: _errors(seen.errors),
        FactClass.URL: _named(FactClass.URL, seen.urls),
        FactClass.IDENTIFIER: _named(FactClass.IDENTIFIER, seen.identifiers),
        FactClass.NUMBER: _named(FactClass.NUMBER, seen.numbers),
    }
    found: list[Fact] = []
    beyond: dict[FactClass, int] = {}
    for kind, told in newest_first.items():
        once: dict[str, Fact] = {}
        for fact in told:
            once.setdefault(fact.text.casefold(), fact)
        facts = list(once.values())
        found += facts[:MAX_FACTS][::-1]
        if len(facts) > MAX_FACTS:
            beyond[kind] = len(facts) - MAX_FACTS
    return Facts(found=tuple(found), beyond=beyond)


def _asks(asked: Sequence[tuple[int, str]]) -> Iterator[Fact]:
    for index, text in asked:
        if text:
            yield Fact(FactClass.ASK, _opening(text, _ASK_CHARS), index)


def _constraints(asked: Sequence[tuple[int, str]]) -> Iterator[Fact]:
    for index, text in asked:
        said = [sentence for sentence in sentences.split(text) if sentences.is_quotable(sentence) and sentences.is_constraint(sentence)]
        yield from (Fact(FactClass.CONSTRAINT, sentence, index) for sentence in reversed(said))


def _todos(todos: Iterable[tuple[Todo, int]]) -> Iterator[Fact]:
    for todo, index in reversed(list(todos)):
        if todo.status is not TodoStatus.COMPLETED and todo.text:
            yield Fact(FactClass.TO_DO, todo.text, index, todo.status.value.replace("_", " "))


def _files(kind: FactClass, files: Sequence[FileRecord]) -> Iterator[Fact]:
    for file in reversed(files):
        if bool(file.changed) is (kind is FactClass.FILE_EDITED):
            yield Fact(kind, file.path, file.index, file.action.value)


def _commands(ran: Sequence[CommandRecord]) -> Iterator[Fact]:
    for command in reversed(ran):
        text = commands.essence(command.command)
        if text and not (command.status == "ok" and commands.is_look_up(text)):
            yield Fact(FactClass.COMMAND, _opening(text, _COMMAND_CHARS), command.index, command.status)


def _errors(errors: Sequence[ErrorRecord]) -> Iterator[Fact]:
    for error in reversed(errors):
        if error.message:
            yield Fact(FactClass.ERROR, error.message.rstrip("…").rstrip(), error.index, error.status)


def _named(kind: FactClass, named: dict[str, int]) -> Iterator[Fact]:
    for text, index in reversed(named.items()):
        yield Fact(kind, text, index)


def _opening(text: str, limit: int) -> str:
    """What it begins with, on one line, whole words only and nothing for what was cut."""
    plain = one_line(text, limit)
    return plain if not plain.endswith("…") else plain[:-1].rpartition(" ")[0] or plain[:-1]
