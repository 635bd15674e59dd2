"""Tokens are estimated from lengths, per kind of part."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.engine import counting
from sessions_app.engine.entries import Part
from sessions_app.engine.terms import PartKind

COUNTED = st.sampled_from([PartKind.TEXT, PartKind.THINKING, PartKind.CALL, PartKind.RESULT])


@given(st.integers(0, 10**9), st.integers(0, 10**6), COUNTED)
def test_a_longer_text_never_counts_less(chars, more, kind):
    assert counting.estimate_chars(chars, kind) <= counting.estimate_chars(chars + more, kind)


@given(st.text(), st.text(), COUNTED)
def test_the_parts_of_a_text_count_as_the_whole_but_for_rounding(head, tail, kind):
    apart = counting.estimate_text(head, kind) + counting.estimate_text(tail, kind)
    assert counting.estimate_text(head + tail, kind) <= apart <= counting.estimate_text(head + tail, kind) + 1


@pytest.mark.parametrize(
    ("kind", "per_token"), [(PartKind.TEXT, 3.91), (PartKind.THINKING, 4.70), (PartKind.CALL, 3.60), (PartKind.RESULT, 3.39)]
)
def test_each_kind_has_a_divisor_of_its_own(kind, per_token):
    assert counting.estimate_chars(1_000_000, kind) == pytest.approx(1_000_000 / per_token, abs=1)


def test_one_character_is_one_token_and_nothing_is_none():
    assert counting.estimate_text("a") == 1
    assert counting.estimate_text("") == 0
    assert counting.estimate_parts(()) == 0
    assert counting.estimate_parts((Part(kind=PartKind.TEXT),)) == 0


def test_an_entry_costs_its_parts_and_its_frame():
    parts = (Part(kind=PartKind.TEXT, text="x" * 391), Part(kind=PartKind.CALL, name="Bash", text="y" * 356))
    assert counting.estimate_parts(parts) == 100 + 100 + counting.ENTRY_OVERHEAD


def test_a_text_in_a_blob_counts_whole():
    short = Part(kind=PartKind.RESULT, text="x" * 4_000, blob="ab", chars=339_000)
    assert counting.estimate_part(short) == 100_000


@given(st.integers(0, 10**9))
def test_an_image_counts_by_its_pixels_and_not_by_its_bytes(size):
    assert counting.estimate_part(Part(kind=PartKind.IMAGE, blob="ab", size_bytes=size, width=750, height=200)) == 200
    assert counting.estimate_part(Part(kind=PartKind.IMAGE, blob="ab", size_bytes=size)) == 1_500


def test_a_huge_image_counts_as_what_providers_scale_it_to():
    assert counting.estimate_part(Part(kind=PartKind.IMAGE, width=20_000, height=20_000)) == 1_600


def test_a_document_counts_by_its_pages():
    one, many = Part(kind=PartKind.DOCUMENT), Part(kind=PartKind.DOCUMENT, size_bytes=500_000)
    assert counting.estimate_part(many) == 10 * counting.estimate_part(one)


def test_ciphertext_counts_as_the_reasoning_behind_it():
    plain, sealed = Part(kind=PartKind.THINKING, text="x" * 300), Part(kind=PartKind.THINKING, text="x" * 400, encrypted=True)
    assert counting.estimate_part(plain) == counting.estimate_part(sealed)
