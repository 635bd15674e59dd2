"""Every kind of damage that the field knows, in every format: what is whole is read, what is not is kept and told with its place."""

import io
import json
import random
import re
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions_app.readers.anthropic_messages import AnthropicMessagesReader
from sessions_app.readers.base import Reader
from sessions_app.readers.claude_code import ClaudeCodeReader
from sessions_app.readers.codex import CodexReader
from sessions_app.readers.detect import reader_for
from sessions_app.readers.openai_chat import OpenAIChatReader
from sessions_app.readers.others import looks_like
from tests.readers import codex_rollouts
from tests.readers.rows import answer, prompt

WORDS = [f"word{number}!" for number in range(8)]
VICTIM = 3


def _claude() -> list[dict]:
    return [(answer if n % 2 else prompt)(f"u{n}", f"u{n - 1}" if n else None, word) for n, word in enumerate(WORDS)]


def _codex() -> list[dict]:
    rows = [(codex_rollouts.said if n % 2 else codex_rollouts.user)(word) for n, word in enumerate(WORDS)]
    return [codex_rollouts.meta(base_instructions={"text": WORDS[0]}), *rows[1:]]


def _openai() -> list[dict]:
    return [{"role": "assistant" if n % 2 else "user", "content": word, "name": f"n{n}"} for n, word in enumerate(WORDS)]


def _anthropic() -> list[dict]:
    blocks = [[{"type": "text", "text": word}, {"type": "thinking", "thinking": ".", "signature": "s"}] for word in WORDS]
    return [{"role": "assistant" if n % 2 else "user", "content": content} for n, content in enumerate(blocks)]


FORMATS: dict[str, tuple[Reader, list[dict]]] = {
    "claude-code": (ClaudeCodeReader(), _claude()),
    "codex": (CodexReader(), _codex()),
    "openai-chat": (OpenAIChatReader(), _openai()),
    "anthropic-messages": (AnthropicMessagesReader(), _anthropic()),
}


def lines_of(rows: list[dict]) -> list[bytes]:
    return [json.dumps(row).encode() for row in rows]


def joined(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def at_victim(change: Callable[[bytes], bytes]) -> Callable[[list[bytes]], bytes]:
    return lambda lines: joined([*lines[:VICTIM], change(lines[VICTIM]), *lines[VICTIM + 1 :]])


def within(more: bytes) -> Callable[[bytes], bytes]:
    """More bytes behind the word of a row."""
    return lambda line: line.replace(b"word3!", b"word3!" + more)


def field(more: bytes) -> Callable[[bytes], bytes]:
    """A further field of the message that holds the word: all formats take a `metadata`."""
    return lambda line: b'{"metadata":' + more + b"," + line[1:]


# What is done to the lines → (how, the words that are lost, the problems that are told)
DAMAGES: dict[str, tuple[Callable[[list[bytes]], bytes], set[int], dict[str, int]]] = {
    "nothing": (joined, set(), {}),
    "no newline at the end": (lambda lines: joined(lines)[:-1], set(), {}),
    "a cut tail": (lambda lines: joined(lines)[:-20], {7}, {"truncated": 1}),
    "a NUL run before a row": (at_victim(lambda line: b"\0" * 500 + line), set(), {"nul_bytes": 1}),
    "a NUL run behind a row": (at_victim(lambda line: line + b"\0" * 500), set(), {"nul_bytes": 1}),
    "a NUL run within a text": (at_victim(within(b"\0" * 40)), set(), {"nul_bytes": 1}),
    "a line of NUL": (at_victim(lambda line: b"\0" * 4096 + b"\n" + line), set(), {"nul_bytes": 1}),
    "two rows on a line": (
        at_victim(lambda line: line + line.replace(b"word3!", b"word8!").replace(b'"u3"', b'"u9"')),
        set(),
        {"spliced": 2},
    ),
    "a missing newline": (lambda lines: joined(lines).replace(b"}\n{", b"}{", 1), set(), {"spliced": 2}),
    "a cut row, and the next on its line": (
        at_victim(lambda line: line[:-9] + line.replace(b"word3!", b"word8!").replace(b'"u3"', b'"u9"')),
        {3},
        {"unreadable": 1, "spliced": 1},
    ),
    "a cut row": (at_victim(lambda line: line[:-9]), {3}, {"unreadable": 1}),
    "a lone surrogate": (at_victim(within(b"\\ud83d")), set(), {"invalid_text": 1}),
    "an escaped NUL": (at_victim(within(b"\\u0000")), set(), {"invalid_text": 1}),
    "bytes that are not UTF-8": (at_victim(within(b"\xff\xc3")), set(), {"invalid_text": 1}),
    "raw control characters": (at_victim(within(b"\x01\x0b\t")), set(), {"invalid_text": 1}),
    "an invalid escape": (at_victim(within(b"\\x")), {3}, {"unreadable": 1}),
    "an object over many lines": (at_victim(lambda line: json.dumps(json.loads(line), indent=2).encode()), set(), {}),
    "every object over many lines": (lambda lines: joined([json.dumps(json.loads(line), indent=2).encode() for line in lines]), set(), {}),
    "line separators of Unicode": (at_victim(within("\u2028\u2029\x85".encode())), set(), {}),
    "a byte order mark": (lambda lines: b"\xef\xbb\xbf" + joined(lines), set(), {}),
    "carriage returns": (lambda lines: joined([line + b"\r" for line in lines]), set(), {}),
    "a line in UTF-16": (at_victim(lambda line: line.decode().encode("utf-16-le")), set(), {"nul_bytes": 1}),
    "empty lines": (lambda lines: joined([part for line in lines for part in (line, b"", b"  ")]), set(), {}),
    "a line of 10 MB": (at_victim(within(b"x" * 10_000_000)), set(), {}),
    "nesting without end": (at_victim(field(b"[" * 100_000 + b"]" * 100_000)), {3}, {"unreadable": 1}),
    "nesting that a decoder takes": (at_victim(field(b"[" * 900 + b"]" * 900)), {3}, {"unreadable": 1}),
    "nesting with a NUL in it": (at_victim(field(b'"\\u0000",' + b'"user":' + b"[" * 700 + b"]" * 700)), {3}, {"unreadable": 1}),
    "huge numbers": (at_victim(field(b"[1e999,-1e400," + b"9" * 300 + b"]")), set(), {}),
    "a huge number beside a lone surrogate": (at_victim(field(b'["\\ud83d",' + b"9" * 6000 + b"]")), set(), {"invalid_text": 1}),
    "no numbers": (at_victim(field(b"[NaN,Infinity,-Infinity]")), set(), {}),
    "a key twice": (at_victim(field(b'1,"metadata":2')), set(), {"duplicate_keys": 1}),
    "no object": (at_victim(lambda line: line + b'\n["word"]\n7\nnull\n"x"'), set(), {"not_an_object": 4}),
    "no JSON": (at_victim(lambda line: line + b"\nSegmentation fault (core dumped)"), set(), {"unreadable": 1}),
}
_NOT_OF_BYTES = {
    "unknown_type",
    "bad_shape",
    "orphan",
    "unanswered_call",
    "foreign_session",
    "naive_time",
    "duplicate",
    "cycle",
    "dead_boundary",
}


def read(reader: Reader, data: bytes, name: str = "x.jsonl"):
    """A finished reading, after what holds of every one: no byte is lost, and each record says where it stands."""
    reading = reader.read(io.BytesIO(data), path=name)
    records = list(reading)
    reading.facts(), reading.child_sessions(), reading.checkpoints(), reading.off_branch(), list(reading.usage_corrections())
    report = reading.report()
    assert b"".join(record.raw for record in records) == data
    assert all(data[record.offset : record.offset + record.length] == record.raw for record in records)
    assert all(record.line == data[: record.offset].count(b"\n") + 1 for record in records)
    assert (report.bytes_read, report.records) == (len(data), len(records))
    assert report.entries == sum(record.entry is not None for record in records)
    return reading, records


def words_in(records) -> set[str]:
    texts = [
        record.entry.blobs[part.blob][1].decode() if part.blob else part.text
        for record in records
        if record.entry is not None
        for part in record.entry.parts
    ]
    return {word for word in [*WORDS, "word8!"] for text in texts if word in text}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("form", FORMATS)
def test_damaged_lines_give_what_can_be_had_of_them(form, damage):
    reader, rows = FORMATS[form]
    how, lost, told = DAMAGES[damage]
    data = how(lines_of(rows))
    reading, records = read(reader, data)
    wanted = {word for number, word in enumerate(WORDS) if number not in lost} | ({"word8!"} if b"word8!" in data else set())
    assert words_in(records) == wanted
    assert {str(kind): count for kind, count in reading.report().by_problem.items() if kind not in _NOT_OF_BYTES} == told
    for problem in reading.report().problems:
        assert problem.line == data[: problem.offset].count(b"\n") + 1


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("form", ["claude-code", "codex"])
def test_a_damaged_file_is_still_known_by_its_other_rows(form, damage):
    reader, rows = FORMATS[form]
    found = reader_for(DAMAGES[damage][0](lines_of(rows))[: 1 << 18])
    assert found is not None
    assert found.name == reader.name


def test_a_file_in_utf_16_is_refused_by_its_name():
    data = joined(lines_of(_claude())).decode().encode("utf-16")
    assert reader_for(data) is None
    assert "UTF-16" in looks_like(data)


DOCUMENT_DAMAGES: dict[str, tuple[Callable[[bytes], bytes], set[int], set[str]]] = {
    "nothing": (lambda data: data, set(), set()),
    "a byte order mark": (lambda data: b"\xef\xbb\xbf" + data, set(), set()),
    "carriage returns": (lambda data: data.replace(b"\n", b"\r\n"), set(), set()),
    "a cut tail": (lambda data: data[: data.index(b"word7!")], {7}, {"truncated"}),
    "a lone surrogate": (within(b"\\ud83d"), set(), {"invalid_text"}),
    "an escaped NUL": (within(b"\\u0000"), set(), {"invalid_text"}),
    "a NUL run": (within(b"\0" * 40), set(), {"nul_bytes"}),
    "an invalid escape": (within(b"\\x"), {3}, {"unreadable"}),
    "line separators of Unicode": (within("\u2028\u2029\x85".encode()), set(), set()),
    "a long text": (within(b"x" * 5_000_000), set(), set()),
    "a missing comma": (lambda data: re.sub(rb'\},(\s*\{\s*"role")', rb"}\1", data, count=1), set(), set()),
    "a foreign item": (lambda data: data.replace(b"[", b"[7, null, ", 1), set(), set()),
    "deep nesting": (lambda data: data.replace(b'"word3!"', b'"word3!","metadata":' + b"[" * 900 + b"]" * 900), {3}, {"unreadable"}),
    "no numbers": (lambda data: data.replace(b'"word3!"', b'"word3!","metadata":[NaN,1e999]'), set(), set()),
}


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("around", ["list", "request"])
@pytest.mark.parametrize("damage", DOCUMENT_DAMAGES)
@pytest.mark.parametrize("form", ["openai-chat", "anthropic-messages"])
def test_damaged_documents_give_what_can_be_had_of_them(form, damage, around, indent):
    reader, rows = FORMATS[form]
    how, lost, told = DOCUMENT_DAMAGES[damage]
    data = how(json.dumps(rows if around == "list" else {"messages": rows, "model": "m"}, indent=indent).encode())
    reading, records = read(reader, data, "x.json")
    assert words_in(records) == {word for number, word in enumerate(WORDS) if number not in lost}
    assert told <= {str(kind) for kind in reading.report().by_problem}


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    form=st.sampled_from(list(FORMATS)),
    at=st.integers(0, 10_000),
    length=st.integers(0, 60),
    noise=st.one_of(
        st.binary(max_size=40),
        st.sampled_from([b"\n{\n", b"}{", b'{"', b"\0\0", b"\n\n", b'"', b"\\", b"[[[", b"}\n", b'\n{"type":"user"\n', b"\r", b"\\ud83d"]),
    ),
)
def test_damage_anywhere_loses_no_row_that_it_did_not_touch(form, at, length, noise):
    reader, rows = FORMATS[form]
    data = joined(lines_of(rows))
    at %= len(data)
    # Rows that share a byte with the damage, or whose newline it took.
    starts = [0]
    for line in lines_of(rows):
        starts.append(starts[-1] + len(line) + 1)
    touched = {number for number in range(len(rows)) if starts[number] < at + max(length, 1) and at <= starts[number + 1]}
    _, records = read(reader, data[:at] + noise + data[at + length :])
    assert words_in(records) >= {word for number, word in enumerate(WORDS) if number not in touched}


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32), form=st.sampled_from(["openai-chat", "anthropic-messages"]), indent=st.sampled_from([None, 1]))
def test_documents_survive_damage_at_any_place(seed, form, indent):
    rng = random.Random(seed)
    data = bytearray(json.dumps({"messages": FORMATS[form][1], "model": "m"}, indent=indent).encode())
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(data))
        data[at : at + rng.randint(0, 20)] = rng.choice([b"", b"\0", b"{", b"}", b"[", b"]", b'"', b"\\", b"\n", rng.randbytes(8)])
    read(FORMATS[form][0], bytes(data), "x.json")
