"""What a word is, and which texts are the same to a search."""

import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sessions_app.selectors.search_query import parse_query
from sessions_app.selectors.search_words import MAY_BE_ASCII, as_written, fold, plain, words_of

MIXED = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from(
            "aZ ßİſ①éäЙйёάςΣ\u0301\u0327\u00ad\u200d\ufe0f\u200b가각한がガｶﾞﾊﾟＡｂ１ﬁ👍🏽👩💻🇩🇪🇫─→│≠=\u0338काम\u093f\u094dกินم\u064eی\u200c"
        ),
    )
)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("Straße", "STRASSE"),
        ("İstanbul", "istanbul"),
        ("ΟΔΟΣ", "οδος"),
        ("Crème", "creme"),
        ("cre\u0300me", "crème"),
        ("ёлка", "елка"),
        ("ＡＰＩ１", "api1"),
        ("ｶﾞｲﾄﾞ", "ガイド"),
        ("ﬁle", "file"),
        ("한글", "\u1112\u1161\u11ab\u1100\u1173\u11af"),
        ("كَتَبَ", "كتب"),
        ("می\u200cخواهم", "میخواهم"),
        ("co\u00adoperate", "cooperate"),
        ("⚠\ufe0f", "⚠"),
        ("👩\u200d💻", "👩💻"),
        ("K", "\u212a"),
    ],
)
def test_these_are_the_same(text, other):
    assert plain(text) == plain(other)


@pytest.mark.parametrize(
    ("text", "other"), [("й", "и"), ("が", "か"), ("हिन्दी", "हन्द"), ("กิน", "กัน"), ("≠", "="), ("ı", "i"), ("🇩🇪", "🇩🇰"), ("가", "각")]
)
def test_these_are_not(text, other):
    assert words_of(plain(text)) != words_of(plain(other))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("compact_session(boundary) && ready", ["compact", "session", "boundary", "ready"]),
        ("use→it", ["use", "→", "it"]),
        ("👍🏽!", ["👍", "🏽"]),
        ("👩\u200d💻", ["👩", "💻"]),
        ("🇩🇪🇫🇷", ["🇩🇪", "🇫🇷"]),
        ("🇫🇷🇩", ["🇫🇷", "🇩"]),
        ("1\ufe0f\u20e3", ["1", "\u20e3"]),
        ("┌────┐", ["┌", "─", "─", "┐"]),
        ("検索 API", ["検", "索", "api"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("“quoted” — so…", ["quoted", "so"]),
        ("∑x² ≤ 5", ["∑", "x²", "≤", "5"]),
        ("§ 12", ["§", "12"]),
        ("\ue0b0 main", ["\ue0b0", "main"]),
    ],
)
def test_words(text, words):
    assert [as_written(word) for word in words_of(plain(text))] == words


@given(MIXED)
@example("a\u0301ß\u0301 x")
@example("\u0301\u0301")
def test_places_lead_back_into_the_text(text):
    folded = fold(text)
    assert folded.text == plain(text)
    before = 0
    for place in range(len(folded.text)):
        start, end = folded.source(place, place + 1)
        assert 0 <= start < end <= len(text)
        assert start >= before
        before = start
        assert folded.text[place] in plain(text[start:end])


def test_places_of_each_character_lead_back_between_others():
    """For each character there is, since which of them change their length is written down by hand."""
    for code in range(0x80, sys.maxunicode + 1):
        if 0xD800 <= code < 0xE000 or not unicodedata.name(chr(code), ""):
            continue
        text = f"ab{chr(code)}cd"
        folded = fold(text)
        assert folded.text == plain(text), hex(code)
        assert not folded.text.isascii() or MAY_BE_ASCII.fullmatch(text[2]), hex(code)
        assert folded.text.endswith("cd"), hex(code)
        assert folded.source(len(folded.text) - 2, len(folded.text)) == (3, 5), hex(code)


@given(MIXED, MIXED, MIXED)
def test_a_text_is_found_in_any_that_has_its_words_apart(before, text, after):
    query = parse_query('"' + text.replace('"', " ") + '"')
    for term in query.wanted:
        assert term.is_in(plain(f"{before} {term.text} {after}"), inside_words=False) or not term.words


@given(MIXED, MIXED)
def test_a_term_is_found_as_words_just_where_its_words_follow_each_other(text, wanted):
    for term in parse_query(wanted).wanted:
        if term.words and not term.is_prefix:
            words, count = words_of(plain(text)), len(term.words)
            follow = any(tuple(words[place : place + count]) == term.words for place in range(len(words) - count + 1))
            assert term.is_in(plain(text), inside_words=False) == follow
