"""Tokens by a real vocabulary, and how near the estimate from characters comes to them."""

import io
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.engine import counting
from sessions_app.engine.bpe import PIECE_CHARS, BpeCounter
from sessions_app.engine.entries import Part
from sessions_app.engine.terms import PartKind, Role
from sessions_app.readers.base import ParsedEntry
from sessions_app.readers.detect import HEAD_BYTES, reader_for

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
FORMATS = ("claude-code", "codex", "openai-chat", "anthropic-messages")
FILES = sorted(path for name in FORMATS for path in (CORPUS / name).rglob("*") if path.is_file())
LEAST_TOKENS = 500
"""A session of a few sentences says nothing about an estimator."""


@pytest.fixture(scope="module")
def bpe(tmp_path_factory) -> BpeCounter:
    return BpeCounter(tmp_path_factory.mktemp("vocabulary"))


def test_tokens_are_those_of_the_vocabulary(bpe):
    assert bpe.count("") == 0
    assert bpe.count("hello world") == 2
    assert bpe.count("<|endoftext|>") > 1  # text of a transcript, no order to the encoder


@pytest.mark.parametrize("text", [" " * 1_000_000, "a" * 300_000, "\ud83d half an emoji", "\x00" * 50])
def test_what_breaks_an_encoder_is_counted_all_the_same(bpe, text):
    assert 0 < bpe.count(text) <= len(text)


@settings(max_examples=30)
@given(text=st.text(max_size=200))
def test_a_long_text_is_the_sum_of_its_pieces(bpe, text):
    whole = text.ljust(PIECE_CHARS, "x") + text
    assert bpe.count(whole) == bpe.count(whole[:PIECE_CHARS]) + bpe.count(text)


@pytest.mark.parametrize(
    "text",
    [
        "Please run all the tests of the repository and fix those that fail. Do not change the public interface. " * 5,
        "请把仓库里的测试全部跑一遍，然后修复失败的用例，并且不要修改公共接口。我们需要在周五之前发布这个版本。" * 5,
        "リポジトリのテストをすべて実行して、失敗したケースを修正してください。" * 5,
        "Пожалуйста, запусти все тесты в репозитории и исправь упавшие случаи. Не меняй интерфейс. " * 5,
        "def parse(line: bytes) -> dict[str, object]:\n    if not line.strip():\n        return {}\n    return orjson.loads(line)\n" * 5,
        "3f2a9c0d77e1b5aa90cc41d2e8f7a6b4c3d2e1f00112233445566778899aabb\n" * 5,
    ],
    ids=["English", "Chinese", "Japanese", "Russian", "Python", "hashes"],
)
def test_the_estimate_of_a_text_is_near_whatever_it_is_written_in(bpe, text):
    assert counting.estimate_text(text) == pytest.approx(bpe.count(text), rel=0.2)


def sessions() -> list[tuple[str, list[ParsedEntry]]]:
    found = []
    for path in FILES:
        raw = path.read_bytes()
        reader = reader_for(raw[:HEAD_BYTES])
        if reader is not None:
            found.append((path.name, [record.entry for record in reader.read(io.BytesIO(raw), path=path.name) if record.entry]))
    return found


def whole_text(part: Part, entry: ParsedEntry) -> str:
    return part.name + (entry.blobs[part.blob][1].decode() if part.chars and part.blob else part.text)


@pytest.mark.skipif(not FILES, reason=f"the recordings are not there ({CORPUS})")
def test_the_estimate_of_every_recorded_session_is_within_a_tenth_of_the_vocabulary(bpe):
    far: dict[str, float] = {}
    for name, entries in sessions():
        estimated = counted = 0
        for entry in entries:
            for part in entry.parts:
                if part.kind in (PartKind.IMAGE, PartKind.DOCUMENT) or part.encrypted:
                    continue
                estimated += counting.estimate_part(part, entry.blobs)
                counted += bpe.count(whole_text(part, entry))
        if counted >= LEAST_TOKENS and abs(estimated / counted - 1) > 0.1:
            far[name] = round(estimated / counted, 3)
    assert far == {}


@pytest.mark.skipif(not FILES, reason=f"the recordings are not there ({CORPUS})")
def test_the_estimate_of_each_kind_of_part_is_near_the_vocabulary_over_all_sessions(bpe):
    estimated: Counter[str] = Counter()
    counted: Counter[str] = Counter()
    for _, entries in sessions():
        for entry in entries:
            for part in entry.parts:
                if part.kind in (PartKind.IMAGE, PartKind.DOCUMENT) or part.encrypted:
                    continue
                kind = "system" if entry.role is Role.SYSTEM else part.kind.value
                estimated[kind] += counting.estimate_part(part, entry.blobs)
                counted[kind] += bpe.count(whole_text(part, entry))
    assert set(counted) == {"system", "text", "thinking", "call", "result"}
    assert {kind: round(estimated[kind] / counted[kind], 3) for kind in counted if abs(estimated[kind] / counted[kind] - 1) > 0.08} == {}
