"""Tokens are estimated from the characters of a text, and from the size of what is no text."""

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sessions_app.engine import counting
from sessions_app.engine.entries import Part
from sessions_app.engine.terms import PartKind
from tests.engine import plain_counting

ANY_CHARACTER = st.text(alphabet=st.characters(exclude_categories=[]))  # lone surrogates are in what agents write
MIXED = st.lists(
    st.sampled_from(["word", " ", "  ", "   ", "\n", "_", "9", "{", "→", "é", "語", "😀", "\ud83d", "Ab3", "QUJD", "\t", "\x00"]),
    max_size=60,
).map("".join)


@given(ANY_CHARACTER | MIXED, st.integers(1, 40))
@example("A", 200)  # from here on it may be coded bytes
@example("9", 4_000)
@example("😀", 1_871)
@example("→ ", 1_000)
def test_the_estimate_is_that_of_the_plain_rule_to_the_token(text, times):
    assert counting.estimate_text(text * times) == plain_counting.estimate(text * times)


@pytest.mark.parametrize("alphabet", ["→", "9", "{ab", "ab c", "Ab3+/", "a  b9.", "語é😀 9"])
def test_a_text_of_any_length_is_summed_in_full(alphabet):
    chosen = random.Random(alphabet)
    for length in (1_870, 1_871, 1_872, 3_742, 3_743, 65_521, 200_003):
        text = "".join(chosen.choices(alphabet, k=length))
        assert counting.estimate_text(text) == plain_counting.estimate(text)


@given(st.text(), st.text())
def test_a_text_never_counts_more_than_its_parts(head, tail):
    assert counting.estimate_text(head + tail) <= counting.estimate_text(head) + counting.estimate_text(tail)


@given(st.text(max_size=150), st.text(alphabet="abc d", max_size=40))
def test_a_longer_text_counts_no_less_but_for_a_space_that_joins_another(text, more):
    assert counting.estimate_text(text + more) >= counting.estimate_text(text) - 1


def test_marks_digits_and_foreign_signs_count_more_than_letters():
    letters = counting.estimate_text("x" * 100)
    assert all(counting.estimate_text(sign * 100) > 2 * letters for sign in ("7", "{", "→", "語"))


def test_a_megabyte_of_spaces_is_next_to_nothing_and_one_of_base64_is_not():
    assert counting.estimate_text(" " * 1_000_000) < 30_000
    assert counting.estimate_text("aGVsbG8gd29ybGQs" * 62_500) > 500_000


def test_one_character_is_one_token_and_nothing_is_none():
    assert counting.estimate_text("a") == 1
    assert counting.estimate_text("") == 0
    assert counting.estimate_parts(()) == 0
    assert counting.estimate_parts((Part(kind=PartKind.TEXT),)) == 0


def test_an_entry_costs_its_parts_and_its_frame():
    parts = (Part(kind=PartKind.TEXT, text="some words"), Part(kind=PartKind.CALL, name="Bash", text='{"command": "ls"}'))
    assert counting.estimate_parts(parts) == sum(map(counting.estimate_part, parts)) + counting.ENTRY_OVERHEAD
    assert counting.estimate_part(parts[1]) == counting.estimate_text("Bash") + counting.estimate_text(parts[1].text)


def test_a_text_in_a_blob_counts_whole():
    line = "a line of 32 characters, or so.\n"
    part = Part(kind=PartKind.RESULT, text=line * 100, blob="ab", chars=len(line) * 10_000)
    whole = counting.estimate_text(line * 10_000)
    assert counting.estimate_part(part, {"ab": ("text/plain", (line * 10_000).encode())}) == whole
    assert abs(counting.estimate_part(part) - whole) <= 1  # as dense as what is at hand


@given(st.integers(0, 10**9))
def test_an_image_counts_by_its_pixels_and_not_by_its_bytes(size):
    assert counting.estimate_part(Part(kind=PartKind.IMAGE, blob="ab", size_bytes=size, width=750, height=200)) == 200
    assert counting.estimate_part(Part(kind=PartKind.IMAGE, blob="ab", size_bytes=size)) == 1_500


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [
        (1, 1, 1),
        (200, 200, 54),
        (1_000, 1_000, 1_334),
        (1_568, 784, 1_600),  # within the longest side, but more than a picture may cost
        (20_000, 20_000, 1_600),
        (1_280, 8_000, 525),  # a whole page: 251 by 1,568 pixels are left of it
        (3_000, 300, 328),
        (100_000, 1, 1),
    ],
)
def test_a_picture_counts_as_what_providers_scale_it_to(width, height, tokens):
    assert counting.estimate_part(Part(kind=PartKind.IMAGE, width=width, height=height)) == tokens
    assert counting.estimate_part(Part(kind=PartKind.IMAGE, width=height, height=width)) == tokens


WORDS = "Nothing but words here. " * 20
EXAMPLES = {
    PartKind.TEXT: (Part(kind=PartKind.TEXT, text=WORDS), counting.estimate_text(WORDS)),
    PartKind.THINKING: (Part(kind=PartKind.THINKING, text=WORDS), counting.estimate_text(WORDS)),
    PartKind.CALL: (Part(kind=PartKind.CALL, name="read_file", text='{"path": "a.py"}'), 3 + 6),
    PartKind.RESULT: (Part(kind=PartKind.RESULT, name="read_file", text=WORDS), counting.estimate_text(WORDS)),
    PartKind.IMAGE: (Part(kind=PartKind.IMAGE, text=WORDS, width=750, height=100, size_bytes=10**6), 100),
    PartKind.DOCUMENT: (Part(kind=PartKind.DOCUMENT, blob="ab", size_bytes=150_000), 6_000),
}


@pytest.mark.parametrize("kind", PartKind)
def test_each_kind_of_part_counts_by_what_a_model_gets_of_it(kind):
    part, tokens = EXAMPLES[kind]
    assert counting.estimate_part(part) == tokens
    assert counting.estimate_parts((part, part)) == 2 * tokens + counting.ENTRY_OVERHEAD


def test_a_document_that_came_as_text_counts_as_its_text():
    assert counting.estimate_part(Part(kind=PartKind.DOCUMENT, text=WORDS, size_bytes=len(WORDS))) == counting.estimate_text(WORDS)


def test_a_document_counts_by_its_pages():
    one, many = Part(kind=PartKind.DOCUMENT), Part(kind=PartKind.DOCUMENT, size_bytes=500_000)
    assert counting.estimate_part(many) == 10 * counting.estimate_part(one)


def test_ciphertext_counts_as_the_reasoning_behind_it():
    plain, sealed = Part(kind=PartKind.THINKING, text="x" * 150), Part(kind=PartKind.THINKING, text="x" * 200, encrypted=True)
    assert counting.estimate_part(plain) == counting.estimate_part(sealed)
