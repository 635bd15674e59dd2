"""Where the messages of JSON documents lie, byte for byte: a scan in pieces, whatever the size of a document."""

import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import BinaryIO, NamedTuple

from sessions_app.readers.base import ProblemKind
from sessions_app.readers.lines import MAX_LINE, READ_SIZE

MESSAGE_ARRAYS = frozenset({b'"messages"', b'"traj"', b'"loglines"'})
"""Keys of an object under which its messages stand."""

HOLDERS = frozenset({b'"request"', b'"body"'})
"""Keys of an object that holds the object with the messages."""

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|(\\?\Z))|[{}\[\]]', re.DOTALL)
_REST_OF_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_LONGEST_KEY = max(map(len, MESSAGE_ARRAYS | HOLDERS))
_QUOTE, _BRACKET, _END_BRACKET = b'"[]'
_OPENING = b"{["


class Place(StrEnum):
    """What a stretch of a source is."""

    OPEN = "open"  # the bracket of an array that holds messages or conversations
    HEAD = "head"  # a conversation's object up to its first message
    ITEM = "item"
    TAIL = "tail"  # a conversation's object behind its last message
    CLOSE = "close"
    LOST = "lost"  # of no use: cut off, or longer than what is decoded


class Span(NamedTuple):
    """One stretch. `raw` are exactly the bytes at `offset`; of them the first `size` are its own, then come separators."""

    place: Place
    line: int  # from 1
    offset: int
    raw: bytes
    size: int
    problem: ProblemKind | None = None  # the source ends within it, or it is too long


class _State(StrEnum):
    TOP = "top"
    ARRAY = "array"  # in an outermost array, between its items
    OBJECT = "object"  # in an object that is a message, or a conversation whose messages are still to come
    MESSAGES = "messages"  # between messages
    MESSAGE = "message"
    BEHIND = "behind"  # in a conversation's object, behind its messages


def starts_of_items(raw: bytes, key: bytes, *, depth: int) -> list[int]:
    """Where the objects and arrays begin that are items of the array at this depth under this key (with its quotes).

    Of several such arrays the first counts; the outermost object has depth 1, its arrays 2.
    """
    starts: list[int] = []
    level, last, inside = 0, b"", False
    for token in _TOKEN.finditer(raw):
        char = raw[token.start()]
        if char == _QUOTE:
            last = token[0] if token.end() - token.start() == len(key) else b""
        elif char in _OPENING:
            level += 1
            if inside and level == depth + 1:
                starts.append(token.start())
            inside = inside or (char == _BRACKET and level == depth and last == key)
        else:
            if inside and level == depth:
                break
            level -= 1
    return starts


class JsonScanner:
    """Scans values that stand one after another: messages, conversations, or arrays of either. Spans leave no gap.

    Holds the span under way, at most `MAX_LINE` bytes, and what was read last.
    """

    def __init__(self, source: BinaryIO, *, start: int = 0, line: int = 1, cancelled: Callable[[], bool] = lambda: False) -> None:
        self._source = source
        self._cancelled = cancelled
        self._base = start  # offset of the first byte in the buffer; all places below count from it
        self._line = line
        self._buffer = b""
        self._done = self._scanned = 0
        self._pending: tuple[Place, int] | None = None  # a finished span and its end: separators may follow
        self._state = self._outer = self._around = _State.TOP
        self._depth = 0
        self._is_held = False  # the object at depth 2 may hold the messages
        self._behind = 1  # depth behind the messages
        self._string = (0, 0)
        self._in_string = self._is_too_long = False

    def __iter__(self) -> Iterator[Span]:
        """The spans in order. Stops early, between reads, when `cancelled` answers yes. Raises `OSError`."""
        while not self._cancelled() and self._refill():
            yield from self._scan()
            if len(self._buffer) - self._done > MAX_LINE:
                yield from self._give_up()
        if not self._cancelled():
            yield from self._finish()

    def _refill(self) -> bool:
        read_to = self._base + len(self._buffer)
        self._source.seek(read_to)  # others read the same source in between
        block = self._source.read(READ_SIZE)
        done = self._done
        self._buffer = self._buffer[done:] + block
        self._base += done
        self._scanned -= done
        self._string = (self._string[0] - done, self._string[1] - done)
        if self._pending is not None:
            self._pending = (self._pending[0], self._pending[1] - done)
        self._done = 0
        return bool(block)

    def _scan(self) -> Iterator[Span]:
        """Goes on to the end of the buffer."""
        if self._in_string and not self._ends_string():
            return
        buffer = self._buffer
        for token in _TOKEN.finditer(buffer, self._scanned):
            start = token.start()
            char = buffer[start]
            if char == _QUOTE:
                self._string = token.span()
                if token.lastindex:
                    self._in_string = True
                    self._scanned = token.start(1)
                    return
            elif char in _OPENING:
                if self._state in (_State.MESSAGE, _State.BEHIND):
                    self._depth += 1
                else:
                    yield from self._open(char, start)
            elif self._depth > 1:
                self._depth -= 1
            else:
                yield from self._close(char, start)
        self._scanned = len(buffer)

    def _ends_string(self) -> bool:
        rest = _REST_OF_STRING.match(self._buffer, self._scanned)
        end = rest.end() if rest else self._scanned
        if self._buffer[end : end + 1] != b'"':
            self._scanned = end  # before a backslash, should that be the last byte
            return False
        self._in_string = False
        self._string = (self._string[0], end + 1)
        self._scanned = end + 1
        return True

    def _open(self, char: int, start: int) -> Iterator[Span]:
        if self._state is _State.OBJECT:
            self._depth += 1
            if char == _BRACKET and (self._depth == 2 or (self._depth == 3 and self._is_held)) and self._key() in MESSAGE_ARRAYS:
                self._behind = self._depth - 1
                self._state, self._around, self._depth = _State.MESSAGES, self._outer, 0
                self._pending = (Place.HEAD, start + 1)
            elif self._depth == 2:
                self._is_held = char != _BRACKET and self._key() in HOLDERS
            return
        yield from self._flush(start)
        if self._state is _State.TOP and char == _BRACKET:
            self._state = _State.ARRAY
            self._pending = (Place.OPEN, start + 1)
            return
        if self._state is not _State.MESSAGES:
            self._outer = self._state
            self._state = _State.MESSAGE if char == _BRACKET else _State.OBJECT
        else:
            self._outer = _State.MESSAGES
            self._state = _State.MESSAGE
        self._depth = 1

    def _close(self, char: int, start: int) -> Iterator[Span]:
        self._depth = 0
        if self._state in (_State.OBJECT, _State.MESSAGE, _State.BEHIND):
            place = Place.TAIL if self._state is _State.BEHIND else Place.ITEM
            self._pending = (place, start + 1)
            self._state = self._outer
        elif char == _END_BRACKET and self._state is _State.MESSAGES:
            yield from self._flush(start)
            self._state, self._depth, self._outer = _State.BEHIND, self._behind, self._around
        elif char == _END_BRACKET and self._state is _State.ARRAY:
            yield from self._flush(start)
            self._pending, self._state = (Place.CLOSE, start + 1), _State.TOP

    def _key(self) -> bytes:
        start, end = self._string
        return self._buffer[start:end] if start >= 0 and end - start <= _LONGEST_KEY else b""

    def _flush(self, end: int) -> Iterator[Span]:
        """Gives the finished span with the separators up to `end`. What comes before a first one belongs to it."""
        if self._pending is not None:
            place, own = self._pending
            self._pending = None
            yield self._span(place, end, own, ProblemKind.TOO_LONG if self._is_too_long else None)
            self._is_too_long = False

    def _span(self, place: Place, end: int, own: int, problem: ProblemKind | None = None) -> Span:
        raw = self._buffer[self._done : end]
        span = Span(place, self._line, self._base + self._done, raw, max(0, own - self._done), problem)
        self._line += raw.count(b"\n")
        self._done = end
        return span

    def _give_up(self) -> Iterator[Span]:
        """Gives what is too long in pieces, as bytes."""
        end = self._scanned  # a backslash may wait behind it for what it escapes
        if self._pending is not None:
            yield from self._flush(self._pending[1])
        while self._done < end:
            piece = min(end, self._done + READ_SIZE)
            yield self._span(Place.LOST, piece, piece, ProblemKind.TOO_LONG)
        self._is_too_long = self._state in (_State.OBJECT, _State.MESSAGE, _State.BEHIND)

    def _finish(self) -> Iterator[Span]:
        end = len(self._buffer)
        if self._state in (_State.TOP, _State.ARRAY, _State.MESSAGES) and self._pending is not None:
            place, own = self._pending
            self._pending = None
            yield self._span(place, end, own, None if self._state is _State.TOP else ProblemKind.TRUNCATED)
        if self._done < end:
            yield self._span(Place.LOST, end, end, ProblemKind.TRUNCATED)
