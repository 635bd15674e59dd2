import io
import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.readers import lines
from sessions_app.readers.base import ProblemKind
from sessions_app.readers.lines import Piece, iter_pieces


def pieces(data: bytes) -> list[Piece]:
    return list(iter_pieces(io.BytesIO(data)))


def told(data: bytes) -> list[tuple[object, list[str]]]:
    return [(piece.value, [kind.value for kind in piece.problems]) for piece in pieces(data)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"a":1}{"b":2}\n', [({"a": 1}, ["spliced"]), ({"b": 2}, ["spliced"])]),
        (b'\0\0{"a":1}\0\n', [({"a": 1}, ["nul_bytes"])]),
        (b"\0\0\0\n", [(None, ["nul_bytes"])]),
        (b'{"a":1}\n{"b":', [({"a": 1}, []), (None, ["truncated"])]),
        (b'{"a":\n{"b":1}\n', [(None, ["unreadable"]), ({"b": 1}, [])]),
        (b'{"type":"user","mess{"type":"user"}\n', [(None, ["unreadable"]), ({"type": "user"}, ["spliced"])]),
        (b'{"a":{"inner":1},"b":\n', [(None, ["unreadable"])]),
        (b"[1,2]\n", [(None, ["not_an_object"])]),
        (b'{"a":"\\ud83d"}\n', [({"a": "�"}, ["invalid_text"])]),
        (b'{"a":"x\\u0000y"}\n', [({"a": "x�y"}, ["invalid_text"])]),
        (b'{"a":"\\\\u0000"}\n', [({"a": "\\u0000"}, [])]),
        (b'{"a":"\xff"}\n', [({"a": "�"}, ["invalid_text"])]),
        (b'{"a":1,"a":2}\n', [({"a": 2}, ["duplicate_keys"])]),
        (b'{"o": {"k": 1, "k": 2}}\n', [({"o": {"k": 2}}, ["duplicate_keys"])]),
        (b'{"a": "\\"b\\": 1", "c" : 2}\n', [({"a": '"b": 1', "c": 2}, [])]),
        ('{"a":"x\u2028y\u2029z\x85"}\n'.encode(), [({"a": "x\u2028y\u2029z\x85"}, [])]),
        (b'{"a":1}\r\n\r\n', [({"a": 1}, []), (None, [])]),
        (b'\xef\xbb\xbf{"a":1}\n', [({"a": 1}, [])]),
        (b"", []),
    ],
)
def test_a_line_gives_what_can_be_had_of_it(data, expected):
    assert told(data) == expected


@pytest.mark.parametrize(
    "data", [b'{"a":' * 20_000 + b"\n", b"[" * 100_000 + b"\n", b'{"' * 30_000 + b"\n", b'{"a":' + b"9" * 6_000 + b"}\n"]
)
def test_hostile_nesting_and_numbers_end_quickly_and_lose_nothing(data):
    assert b"".join(piece.raw for piece in pieces(data)) == data


_line = st.one_of(
    st.binary(max_size=40),
    st.dictionaries(st.text(max_size=4), st.one_of(st.text(max_size=20), st.integers(), st.none()), max_size=4).map(
        lambda value: json.dumps(value).encode()
    ),
    st.sampled_from([b"\0\0", b"{", b"}", b'{"', b"\\ud83d", b"\r", b"\xff", b"}{", b'{"a":"\\ud83d"}', b" "]),
)


@given(st.lists(_line, max_size=12), st.sampled_from([b"", b"\n"]), st.integers(1, 64))
def test_pieces_cover_any_bytes_without_a_gap_however_they_are_read(parts, joint, read_size):
    data = joint.join(parts)
    before = lines.READ_SIZE
    lines.READ_SIZE = read_size
    try:
        found = pieces(data)
    finally:
        lines.READ_SIZE = before
    assert b"".join(piece.raw for piece in found) == data
    assert all(data[piece.offset : piece.offset + len(piece.raw)] == piece.raw for piece in found)
    assert all(piece.line == data[: piece.offset].count(b"\n") + 1 for piece in found)
    for piece in found:
        json.dumps(piece.value, ensure_ascii=False).encode()  # what is passed on can be stored


def test_a_line_over_the_cap_is_kept_in_bounded_pieces_and_reading_goes_on(monkeypatch):
    monkeypatch.setattr(lines, "MAX_LINE", 1_000)
    monkeypatch.setattr(lines, "READ_SIZE", 256)
    data = b'{"a":1}\n{"long":"' + b"x" * 5_000 + b'"}\n{"b":2}\n'
    found = pieces(data)
    assert b"".join(piece.raw for piece in found) == data
    assert (found[0].value, found[-1].value) == ({"a": 1}, {"b": 2})
    assert {piece.problems for piece in found[1:-1]} == {(ProblemKind.TOO_LONG,)}
    assert max(len(piece.raw) for piece in found) <= 256
    assert [found[1].line, found[-1].line] == [2, 3]


class _Endless(io.RawIOBase):
    """A source of many lines that never exists as a whole."""

    def __init__(self, size: int) -> None:
        self.left = size
        self.line = b'{"type":"progress","data":"' + b"x" * 2_000 + b'"}\n'

    def read(self, size: int = -1) -> bytes:
        block = (self.line * (size // len(self.line) + 1))[: min(size, self.left)]
        self.left -= len(block)
        return block


def test_memory_does_not_grow_with_the_source():
    tracemalloc.start()
    try:
        count = sum(1 for _ in iter_pieces(_Endless(80_000_000)))  # type: ignore[arg-type]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count > 30_000
    assert peak < 16_000_000


def test_reading_stops_between_blocks_when_it_is_cancelled():
    answers = iter([False, True])
    found = list(iter_pieces(_Endless(50_000_000), cancelled=lambda: next(answers, True)))  # type: ignore[arg-type]
    assert 0 < len(found) < 1_000
