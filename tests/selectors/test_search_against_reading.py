"""What a search finds is what reading every text would find, by the rules that the operator's guide states; on either database."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from sessions_app.models import Session
from sessions_app.selectors.search import search_page
from sessions_app.selectors.search_query import SearchQuery, Term, parse_query
from sessions_app.selectors.search_session import session_hits
from sessions_app.selectors.search_sql import SearchFilters
from sessions_app.selectors.search_words import plain, words_of
from sessions_app.services import search_index
from tests.selectors.test_search import entry
from tests.stored import store_session

pytestmark = pytest.mark.django_db

ATOMS = [
    *("the", "The", "error", "errors", "in", "terror", "snake_case", "CamelCase", "src/app/main.py", "a1b2c3d4", "https://x.org/a?b=c"),
    *("&&", "->", "::", "--flag", "*", '"', "-", "_", "%", "\\", "'", "C", "ls"),
    *("→", "─", "────", "│", "👍", "👍🏽", "👩\u200d💻", "👩", "🇩🇪", "🇫🇷🇩🇪", "🇷", "⚠\ufe0f", "⚠", "∑", "≠", "§", "…", "“", "—", "\ue0b0"),
    *("検索", "日本語", "が", "か", "압축", "세션을", "กิน", "กัน", "हिन्दी", "Straße", "STRASSE", "İ", "i", "é", "e\u0301", "ёлка", "й"),
    *("ＡＰＩ", "api", "ﬁ", "fi", "كَتَبَ", "كتب", "\u200d", "\u00ad", "\u202e"),
]
GLUE = st.sampled_from(["", "", " ", " ", " ", "\n", ", "])


@st.composite
def texts(draw: st.DrawFn, most: int = 7) -> str:
    return "".join(draw(st.sampled_from(ATOMS)) + draw(GLUE) for _ in range(draw(st.integers(1, most))))


@st.composite
def queries(draw: st.DrawFn) -> str:
    terms = []
    for _ in range(draw(st.integers(1, 3))):
        form = draw(st.sampled_from(["{}", "{}", "{}", '"{}"', "-{}", "{}*", '-"{}"']))
        terms.append(form.format(draw(texts(most=2)).replace("{", "")))
    return " ".join(terms)


def has_words(term: Term, text: str) -> bool:
    words, count = words_of(plain(text)), len(term.words)
    if not count:
        return has_text(term, text)
    for place in range(len(words) - count + 1):
        *before, last = words[place : place + count]
        if tuple(before) == term.words[:-1] and (last == term.words[-1] or (term.is_prefix and last.startswith(term.words[-1]))):
            return True
    return False


def has_text(term: Term, text: str) -> bool:
    needle = " ".join(plain(term.text).split())
    return needle in " ".join(plain(text).split())


def is_of_signs(term: Term) -> bool:
    return bool(term.words) and all(not char.isalnum() and not ("\u0e00" <= char <= "\u0eff") for word in term.words for char in word)


def is_found_by_reading(query: SearchQuery, text: str) -> bool:
    if any(has_words(term, text) for term in query.excluded):
        return False
    if all(has_words(term, text) for term in query.wanted):
        return True
    if not query.looks_inside_words or not (query.pieces or query.signs):
        return False
    return all(has_words(term, text) or (not is_of_signs(term) and has_text(term, text)) for term in query.wanted)


def found(query: SearchQuery) -> list[int]:
    after, indexes = "", []
    while True:
        page = search_page(query, SearchFilters(), after)
        indexes += [hit.index for hit in page.hits]
        if not page.next:
            return indexes
        after = page.next


class AgainstReading(TestCase):
    @settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(texts(), min_size=1, max_size=12), queries())
    @example(["🇫🇷🇩🇪", "🇷"], "🇷")
    @example(["compact session"], "compact-session pact")
    @example(["a && b", "a b"], 'a -"&&"')
    @example(["&&हिन्दी", "calls &&"], "&& हिन्दी,")
    @example(["calls &&"], "ls &&")
    def test_the_index_finds_what_reading_finds(self, said: list[str], wanted: str) -> None:
        session = store_session([entry(index, text) for index, text in enumerate(said)])
        search_index.index_lagging()
        query = parse_query(wanted)
        expected = [index for index, text in enumerate(said) if is_found_by_reading(query, text)] if query.wanted else []
        hits = found(query)
        assert sorted(hits) == expected
        assert list(session_hits(Session.objects.get(pk=session.pk), query, None).indexes) == expected
        for hit in search_page(query, SearchFilters()).hits:
            marked = [piece.text for piece in hit.pieces if piece.is_match]
            assert marked, (said[hit.index], query)
            shown = "".join(piece.text for piece in hit.pieces)
            assert shown.strip("…") in " ".join(said[hit.index].split(" ")).replace("\n", " ") or "\n" in said[hit.index]
