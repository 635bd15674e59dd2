"""Bytes to JSON objects, line by line, without losing one: whatever can't be decoded is kept with its place."""

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

import orjson

from sessions_app.readers.base import ProblemKind
from sessions_app.readers.recovery import has_duplicate_keys, recover, size_of, without_invalid_text

READ_SIZE = 1 << 20
MAX_LINE = 64_000_000
"""Bytes of the longest line that is decoded. A longer one is kept in pieces of at most `READ_SIZE`."""

MAX_JOINED = 4_000_000
"""Bytes of the longest object that is put together from lines."""

_BARE = 64  # bytes of the longest line that may hold a brace alone


class Piece(NamedTuple):
    """One object, or one stretch without one, of a source. `raw` is exactly the bytes at `offset`.

    Pieces cover the source without a gap: `raw` includes the line end, NUL runs and blanks around the object.
    `value` is the object, or `None` when there is none.
    """

    line: int  # from 1
    offset: int
    raw: bytes
    value: dict[str, Any] | None
    problems: tuple[ProblemKind, ...] = ()


def iter_pieces(source: BinaryIO, *, line: int = 1, offset: int = 0, cancelled: Callable[[], bool] = lambda: False) -> Iterator[Piece]:
    """Every piece of a source, in order. Memory stays below a few times the longest decoded line.

    `line` and `offset`: where the source stands, when its beginning was read before.

    Stops early, between reads, when `cancelled` answers yes. Raises `OSError` when the source can't be read.
    """
    for raw, is_whole in _iter_joined(_iter_raw_lines(source, cancelled)):
        if is_whole:
            for start, end, value, problems in decode(raw):
                yield Piece(line, offset + start, raw[start:end] if end - start < len(raw) else raw, value, problems)
        else:
            yield Piece(line, offset, raw, None, (ProblemKind.TOO_LONG,))
        offset += len(raw)
        line += raw.count(b"\n")


def _iter_joined(lines: Iterator[tuple[bytes, bool]]) -> Iterator[tuple[bytes, bool]]:
    """The same, with the lines of an object that was written over many of them joined into one."""
    for raw, is_whole in lines:
        if is_whole and len(raw) <= _BARE and raw.strip() == b"{":
            yield from _joined(raw, lines)
        else:
            yield raw, is_whole


def _joined(first: bytes, lines: Iterator[tuple[bytes, bool]]) -> Iterator[tuple[bytes, bool]]:
    """One object from a line with its brace alone to the line with the other one; line by line where that is none."""
    held, size = [first], len(first)
    end = first.rstrip()[:-1] + b"}"  # as far in as the first
    for raw, is_whole in lines:
        held.append(raw)
        size += len(raw)
        if not is_whole or size > MAX_JOINED:
            yield from ((one, True) for one in held[:-1])
            yield raw, is_whole
            return
        if raw.rstrip() == end:
            break
        if raw.startswith(b'{"'):
            break  # a row of its own: what came before it was cut
    whole = b"".join(held)
    if _is_object(whole):
        yield whole, True
    else:
        yield from ((one, True) for one in held)


def _is_object(raw: bytes) -> bool:
    try:
        return isinstance(orjson.loads(raw), dict)
    except ValueError:
        return False


def _iter_raw_lines(source: BinaryIO, cancelled: Callable[[], bool]) -> Iterator[tuple[bytes, bool]]:
    """(bytes, whole line?) pairs, split on newlines only: U+2028 and carriage returns are text."""
    held: list[bytes] = []
    held_bytes = 0
    is_too_long = False
    while not cancelled() and (block := source.read(READ_SIZE)):
        for part in _split_keeping(block):
            held.append(part)
            held_bytes += len(part)
            is_end = part.endswith(b"\n")
            if is_too_long or held_bytes > MAX_LINE:
                is_too_long = not is_end
                yield from ((piece, False) for piece in held)
            elif is_end:
                yield (part if len(held) == 1 else b"".join(held)), True
            else:
                continue
            held, held_bytes = [], 0
    if held:
        yield b"".join(held), not is_too_long


def _split_keeping(block: bytes) -> list[bytes]:
    if b"\r" not in block:
        return block.splitlines(keepends=True)  # of bytes it splits on \n, \r and \r\n alone
    *lines, last = block.split(b"\n")
    kept = [line + b"\n" for line in lines]
    return [*kept, last] if last else kept


def decode(raw: bytes) -> list[tuple[int, int, dict[str, Any] | None, tuple[ProblemKind, ...]]]:
    """(start, end, object or None, problems) for each piece of one line; nearly always exactly one."""
    try:
        value = orjson.loads(raw)
    except ValueError:
        return recover(raw)
    if type(value) is not dict:
        return [(0, len(raw), None, (ProblemKind.NOT_AN_OBJECT,))]
    size = size_of(value)
    if size is None:
        return [(0, len(raw), None, (ProblemKind.UNREADABLE,))]
    problems: tuple[ProblemKind, ...] = ()
    if b"\\u0000" in raw:
        value, changed = without_invalid_text(value)
        if changed:
            problems = (ProblemKind.INVALID_TEXT,)
    if size + 1 < len(raw) and has_duplicate_keys(raw, value):
        problems = (*problems, ProblemKind.DUPLICATE_KEYS)
    return [(0, len(raw), value, problems)]
