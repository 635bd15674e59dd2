"""What commands print: JSON of a stable shape, or text that is safe in a terminal."""

import errno
import json
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
from django.core.management.base import OutputWrapper

from sessions_app.engine.unseen import UNSEEN
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.rendering.ansi import strip_ansi
from sessions_app.rendering.plain import ESCAPE, visible

Values = Mapping[str, object]

PIPED_WIDTH = 10_000
"""Columns of a line where nobody watches: nothing is cut."""

# Harmless inside JSON, but not on the screen that it is printed on: DEL, C1, bidirectional controls, line separators.
_UNSAFE_IN_JSON = re.compile(f"[\u2028\u2029\ud800-\udfff]|{UNSEEN.pattern}")


def json_text(value: object) -> str:
    """A value as JSON on one line; every character that could act on a terminal is escaped."""
    text = json.dumps(msgspec.to_builtins(value, enc_hook=str), ensure_ascii=False, separators=(", ", ": "))
    return _UNSAFE_IN_JSON.sub(lambda match: json.dumps(match[0])[1:-1], text)


def error_document(failure: CommandFailure) -> str:
    """`{"error": {"code", "message", "field"?, "retryable"}}`."""
    error: dict[str, Any] = {"code": failure.code, "message": str(failure)}
    if failure.field:
        error["field"] = failure.field
    return json_text({"error": error | {"retryable": failure.end == Exit.BUSY}})


def plain_text(text: str) -> str:
    """Text of several lines on which nothing acts on the terminal; colours and other sequences are taken out."""
    return visible(strip_ansi(text) if ESCAPE in text else text)


def plain_line(text: object) -> str:
    """Text as one line on which nothing acts on the terminal."""
    return " ".join(plain_text(str(text)).split())


def width_of(text: str) -> int:
    """Columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def fitted(text: str, width: int) -> str:
    """At most `width` columns of a text, with an ellipsis where something is missing."""
    if width_of(text) <= width:
        return text
    taken, columns = [], 0
    for letter in text:
        columns += width_of(letter)
        if columns > width - 1:
            break
        taken.append(letter)
    return "".join(taken) + "…"


@dataclass(frozen=True)
class Column:
    """A column of a table. Where the terminal is narrow, the columns with the highest `rank` go first; 0 stays.

    The column that `stretches` gives up width before any goes, down to `least`.
    """

    name: str
    rank: int = 0
    right: bool = False
    stretches: bool = False
    least: int = 16


class Output:
    """Where a command's result goes: JSON, JSON lines, or text."""

    def __init__(self, out: OutputWrapper, err: OutputWrapper, *, as_json: bool, as_jsonl: bool = False) -> None:
        self._out = out
        self._err = err
        self.as_jsonl = as_jsonl
        self.is_json = as_json or as_jsonl
        self.is_terminal = bool(getattr(out, "isatty", lambda: False)())
        self.width = shutil.get_terminal_size((100, 24)).columns if self.is_terminal else PIPED_WIDTH

    def document(self, value: object) -> None:
        """One JSON document."""
        self._out.write(json_text(value))

    def write(self, text: str) -> None:
        """Text as it is, without a line end: only for what is safe already, or asked for raw."""
        self._out.write(text, ending="")

    def raw(self, block: bytes) -> None:
        """Bytes of a file, as they are."""
        stream = getattr(self._out, "buffer", None)
        if stream is None:
            self.write(block.decode())
            return
        self._out.flush()
        stream.write(block)

    def line(self, text: object = "") -> None:
        """One line of text, made safe."""
        self._out.write(plain_line(text))

    def text(self, text: str, *, raw: bool = False) -> None:
        """Text of several lines: made safe, its terminal colours taken out; `raw` gives it as it is."""
        self._out.write(text if raw else plain_text(text))

    def note(self, text: object, **facts: object) -> None:
        """Something on standard error: progress, a hint. Under `--json` an object: `{"note": text, …facts}`."""
        said = json_text({"note": str(text)} | facts) if self.is_json else plain_line(text)
        self._err.write(said, style_func=str)

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> None:
        """Rows under their heads, as wide as the terminal allows."""
        cells = [[plain_line(cell) for cell in row] for row in rows]
        for text in table_lines(columns, cells, self.width):
            self._out.write(text)

    def objects(self, items: Iterable[dict[str, Any]], head: Values | None = None, tail: Values | None = None) -> None:
        """A list: one document `{"object": "list", …head, "data": [...], …tail}`, written as it comes; or an object a line.

        A function without arguments in `tail` is called when its value is written.
        """
        if self.as_jsonl:
            for item in items:
                self._out.write(json_text(item))
            return
        self.stream({"object": "list", **(head or {})}, "data", items, tail or {})

    def stream(self, head: Values, name: str, items: Iterable[dict[str, Any]], tail: Values) -> None:
        """One document with a long list in it, written as the list comes."""
        self.write("{" + "".join(f"{json_text(key)}: {json_text(value)}, " for key, value in head.items()) + f'"{name}": [')
        for place, item in enumerate(items):
            self.write((",\n" if place else "\n") + json_text(item))
        self.write("\n]")
        for key, value in tail.items():
            self.write(f", {json_text(key)}: {json_text(value() if callable(value) else value)}")
        self.write("}\n")

    def block(self, lines: Iterable[str]) -> None:
        """Lines that are safe already, or asked for raw."""
        self.write("".join(f"{line}\n" for line in lines))


def table_lines(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """The lines of a table that is at most `width` columns wide, unless the columns that stay need more."""
    wide = [max([width_of(column.name), *(width_of(row[place]) for row in cells)]) for place, column in enumerate(columns)]
    shown = list(range(len(columns)))
    while (over := sum(wide[place] for place in shown) + 2 * (len(shown) - 1) - width) > 0:
        stretching = next((place for place in shown if columns[place].stretches and wide[place] > columns[place].least), None)
        if stretching is not None:
            wide[stretching] = max(columns[stretching].least, wide[stretching] - over)
            continue
        last = max(shown, key=lambda place: columns[place].rank)
        if not columns[last].rank:
            break
        shown.remove(last)
    for row in ([column.name for column in columns], *cells):
        yield "  ".join(_cell(row[place], wide[place], right=columns[place].right) for place in shown).rstrip()


def _cell(text: str, width: int, *, right: bool) -> str:
    text = fitted(text, width)
    space = " " * (width - width_of(text))
    return space + text if right else text + space


@contextmanager
def leave_quietly() -> Iterator[None]:
    """Ends with `Exit.OUTPUT_CLOSED`, without a word, when whoever reads the output went away."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
    except OSError as error:
        if error.errno != errno.EPIPE:
            raise
        _drop_output()


def _drop_output() -> None:
    # What the interpreter flushes at its end goes nowhere, or it would complain.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(Exit.OUTPUT_CLOSED)
