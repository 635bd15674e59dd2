"""What a search finds, in which order, and that no text is a wrong query."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from sessions_app.engine.entries import Entry, Part
from sessions_app.engine.terms import Kind, PartKind, Role
from sessions_app.selectors.keyset import CursorError
from sessions_app.selectors.search import PAGE_HITS, search_page
from sessions_app.selectors.search_query import parse_query
from sessions_app.selectors.search_session import session_hits
from sessions_app.selectors.search_snippets import SNIPPET_CHARS, snippet
from sessions_app.selectors.search_sql import SearchFilters
from sessions_app.services import search_index
from tests.stored import store_session

pytestmark = pytest.mark.django_db

TEXTS = (
    "The carrier retries its webhook twice",
    "def compact_session(boundary): return boundary && ready",
    "検索が日本語で動かない。セッションを圧縮する",
    "세션을 압축합니다",
    "Crème brûlée für alle, ÄRGER",
    "use the検索API now",
    "nothing of interest, 🙂 though",
    "C and ls -la",
)


def entry(index: int, text: str, role: Role = Role.USER, kind: Kind = Kind.MESSAGE, part: PartKind = PartKind.TEXT, **values) -> Entry:
    return Entry(index=index, role=role, kind=kind, parts=(Part(kind=part, text=text),), **values)


@pytest.fixture
def session():
    session = store_session([entry(index, text) for index, text in enumerate(TEXTS)])
    search_index.index_lagging()
    return session


def found(text: str, filters: SearchFilters | None = None) -> list[int]:
    return [hit.index for hit in search_page(parse_query(text), filters or SearchFilters()).hits]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("carrier webhook", [0]),
        ("webhook CARRIER", [0]),
        ("carrier nothing", []),
        ('"carrier retries"', [0]),
        ('"retries carrier"', []),
        ("carrier -webhook", []),
        ("retr*", [0]),
        ("etries", [0]),  # a part of a word
        ("pact_sess", [1]),  # across a sign
        ("&&", [1]),
        ('ready -"&&"', []),
        ("->", []),
        ("boundary &&", [1]),
        ("compact_session(boundary)", [1]),
        ("日本語", [2]),
        ("検索", [2, 5]),
        ("圧", [2]),
        ("압축", [3]),
        ("creme", [4]),
        ("brulee", [4]),
        ("ärger", [4]),
        ("arger", [4]),
        ("API", [5]),
        ("検索API", [5]),
        ("🙂", [6]),
        ("🙂 though", [6]),
        ("🙂 carrier", []),
        ("nothing -🙂", []),
        ('"interest, 🙂 though"', [6]),
        ("ls", [7]),
        ("c", [7]),
        ("-carrier", []),
        ("", []),
    ],
)
def test_a_query_finds_what_holds_all_of_it(session, query, expected):
    assert sorted(found(query)) == expected


@pytest.mark.parametrize(
    "query", ['"', '"unclosed', "a AND (b", "NEAR(a b", "text:x", "*", "-", "--", "^x", "{a}", "a\0b", "\ud800", "' OR 1=1", "%", "_" * 300]
)
def test_no_text_is_a_wrong_query(session, query):
    found(query)
    session_hits(session, parse_query(query), None)


class AnyText(TestCase):
    @settings(max_examples=60)
    @given(st.text(max_size=60))
    @example("\U000fd801 \U000fdaa4")
    def test_any_text_that_an_entry_holds_finds_it_and_any_other_is_no_error(self, text):
        store_session([entry(0, f"before {text} after")])
        search_index.index_lagging()
        query = parse_query(text.replace('"', " ").replace("*", " "))
        hits = found(query.text)
        if query.wanted and not query.excluded and len(query.terms) < 16 and all(term.words for term in query.wanted):
            assert hits == [0]


def test_matches_are_marked_in_what_stands_around_them(session):
    (hit,) = search_page(parse_query("webhook"), SearchFilters()).hits
    assert [piece.text for piece in hit.pieces if piece.is_match] == ["webhook"]
    assert "".join(piece.text for piece in hit.pieces) == TEXTS[0]


@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("done 👍🏽, next", "👍", ["👍🏽"]),
        ("a 👩\u200d💻 codes", "💻", ["👩\u200d💻"]),
        ("warn ⚠\ufe0f here", "⚠", ["⚠\ufe0f"]),
        ("flags 🇫🇷🇩🇪 of two", "🇩🇪", ["🇩🇪"]),
        ("┌──────┐", "──", ["──────"]),
        ("use → it", "use→it", ["use → it"]),
        ("cafe\u0301s", "cafés", ["cafe\u0301s"]),
        ("die Straße", "STRASSE", ["Straße"]),
        ("ＡＰＩ kit", "api", ["ＡＰＩ"]),
        ("हिन्दी में", "हिन्दी", ["हिन्दी"]),
        ("1\ufe0f\u20e3 first", "1", ["1\ufe0f\u20e3"]),
    ],
)
def test_a_mark_covers_whole_characters(text, query, marked):
    pieces = snippet(text, parse_query(query).wanted)
    assert [piece.text for piece in pieces if piece.is_match] == marked
    assert "".join(piece.text for piece in pieces) == text


@pytest.mark.parametrize("shift", range(6))
def test_no_character_is_cut_where_a_snippet_begins_or_ends(shift):
    sign = "👩🏽\u200d💻"
    pieces = snippet("x" * shift + sign * 40 + " needle " + sign * 100, parse_query("needle").wanted)
    shown = "".join(piece.text for piece in pieces).strip("…")
    assert shown.replace(sign, "").replace("x", "") == " needle "


@pytest.mark.parametrize("shift", range(8))
def test_a_word_that_goes_on_behind_the_snippet_is_not_marked(shift):
    text = "the " + "x" * shift + " there" * 200
    pieces = snippet(text, parse_query("the").wanted)
    assert [piece.text for piece in pieces if piece.is_match] == ["the"]


@pytest.mark.parametrize("shift", range(12))
def test_a_snippet_ends_with_a_whole_word(shift):
    pieces = snippet("needle " + "x" * shift + " needle filler" * 200, parse_query("needle").wanted)
    assert {piece.text for piece in pieces if piece.is_match} == {"needle"}
    assert "".join(piece.text for piece in pieces).rstrip("…").split()[-1] in {"needle", "filler"}


def test_a_match_that_is_longer_than_a_snippet_is_marked_up_to_its_end():
    pieces = snippet("before " + "─" * 900, parse_query("──").wanted)
    assert [set(piece.text) for piece in pieces if piece.is_match] == [{"─"}]
    assert sum(len(piece.text) for piece in pieces) < 2 * SNIPPET_CHARS


def test_a_snippet_shows_where_most_of_the_terms_stand():
    text = "error " + "filler " * 100 + "an error in the carrier " + "filler " * 100
    pieces = snippet(text, parse_query("carrier error").wanted)
    assert [piece.text for piece in pieces if piece.is_match] == ["error", "carrier"]


def test_accents_and_case_do_not_hide_a_mark(session):
    (hit,) = search_page(parse_query("brulee"), SearchFilters()).hits
    assert [piece.text for piece in hit.pieces if piece.is_match] == ["brûlée"]


def test_a_match_far_inside_a_long_text_is_shown(session):
    store_session([entry(0, "word " * 5_000 + "needle in the middle " + "word " * 5_000)])
    search_index.index_lagging()
    (hit,) = search_page(parse_query("needle"), SearchFilters()).hits
    assert [piece.text for piece in hit.pieces if piece.is_match] == ["needle"]
    assert sum(len(piece.text) for piece in hit.pieces) < 400
    assert not hit.is_capped


def test_of_a_text_that_is_longer_than_the_cap_the_beginning_and_the_end_are_found_and_that_is_said():
    store_session([entry(0, "alpha " + "word " * 30_000 + "middle " + "word " * 30_000 + "omega")])
    search_index.index_lagging()
    assert (found("alpha"), found("middle"), found("omega")) == ([0], [], [0])
    page = search_page(parse_query("omega"), SearchFilters())
    assert page.hits[0].is_capped
    assert page.state.capped == 1


def test_what_a_call_says_is_found_as_it_reads_and_not_as_it_is_escaped():
    call = entry(0, '{"command": "first\\nsecond", "n": 3}', Role.ASSISTANT, Kind.CALL, PartKind.CALL)
    store_session([call])
    search_index.index_lagging()
    assert (found("second"), found("nsecond")) == ([0], [])


def test_what_a_provider_encrypted_is_not_in_the_index():
    store_session(
        [Entry(index=0, role=Role.ASSISTANT, kind=Kind.THINKING, parts=(Part(kind=PartKind.THINKING, text="ciphertext", encrypted=True),))]
    )
    search_index.index_lagging()
    assert found("ciphertext") == []


def test_filters_narrow_the_hits(session):
    other = store_session(
        [entry(0, "carrier", Role.TOOL, Kind.RESULT, PartKind.RESULT, timestamp="2026-03-05T10:00:00Z"), entry(1, "carrier")], agent="codex"
    )
    search_index.index_lagging()

    def narrowed(**values) -> int:
        return len(found("carrier", SearchFilters(**values)))

    assert narrowed() == 3
    assert narrowed(agent="codex") == 2
    assert narrowed(role="tool") == 1
    assert narrowed(kind="message") == 2
    assert narrowed(session=str(other.pk)) == 2
    from datetime import date

    assert narrowed(agent="codex", until=date(2026, 3, 5)) == 1
    assert narrowed(agent="codex", since=date(2026, 3, 6)) == 1


def test_pages_follow_each_other_without_a_gap_or_a_double():
    store_session(
        [entry(index, f"carrier {'and ' * (index % 7)}") for index in range(130)]
        + [entry(130 + index, f"xcarrierx {index}") for index in range(60)]
    )
    search_index.index_lagging()
    after, seen = "", []
    for _ in range(10):
        page = search_page(parse_query("carrier"), SearchFilters(), after)
        assert len(page.hits) <= PAGE_HITS
        assert page.first == len(seen) + 1
        seen += [hit.index for hit in page.hits]
        after = page.next
        if not after:
            break
    assert sorted(seen) == list(range(190))
    assert set(seen[:130]) == set(range(130))  # whole words come first


@pytest.mark.parametrize("after", ["nonsense", "W10", "bnVsbA", "eyJhIjogMX0"])
def test_a_damaged_place_is_refused(session, after):
    if after == "W10":  # an empty one is the beginning
        assert search_page(parse_query("carrier"), SearchFilters(), after).hits
        return
    with pytest.raises(CursorError):
        search_page(parse_query("carrier"), SearchFilters(), after)


def test_titles_are_found_too(session):
    named = store_session(title="The migration of invoices")
    page = search_page(parse_query("invoices migration"), SearchFilters())
    assert [hit.session_id for hit in page.titles] == [named.pk]


@pytest.mark.parametrize(
    ("title", "query", "is_found"),
    [
        ("Ärger mit der Straße", "ARGER strasse", True),
        ("Ship it 🚀 today", "🚀", True),
        ("Ship it 🚀 today", "ship 🔥", False),
        ("100% of _all_ \\ paths", "100%", True),
        ("100 of all", "100%", False),
        ("100% of _all_ \\ paths", "_all_ \\", True),
        ("Retries of webhooks", "webhook -retries", False),
        ("Retries of webhooks", '"retries of"', True),
        ("ＡＰＩ keys", "api", True),
    ],
)
def test_titles_are_found_by_the_rules_of_texts(title, query, is_found):
    store_session(title=title)
    page = search_page(parse_query(query), SearchFilters())
    assert bool(page.titles) == is_found
    assert all(any(piece.is_match for piece in hit.pieces) for hit in page.titles)


def test_hits_of_a_session_stand_in_its_order_with_the_way_to_the_next():
    session = store_session([entry(index, "carrier" if index % 10 == 0 else "other") for index in range(100)])
    store_session([entry(0, "carrier of another session")])
    search_index.index_lagging()
    hits = session_hits(session, parse_query("carrier"), 20)
    assert hits.indexes == tuple(range(0, 100, 10))
    assert (hits.position, hits.previous, hits.next) == (3, 10, 30)
    between = session_hits(session, parse_query("carrier"), 25)
    assert (between.position, between.previous, between.next) == (0, 20, 30)


def test_a_page_and_a_session_cost_a_fixed_number_of_queries(django_assert_max_num_queries):
    session = store_session([entry(index, f"carrier {index}") for index in range(500)])
    search_index.index_lagging()
    with django_assert_max_num_queries(10):
        search_page(parse_query("carrier"), SearchFilters())
    with django_assert_max_num_queries(8):
        session_hits(session, parse_query("carrier"), 250)


def test_signs_alone_read_a_bounded_part_of_a_long_session(django_assert_max_num_queries):
    session = store_session([entry(index, "word") for index in range(4_000)])
    search_index.index_lagging()
    with django_assert_max_num_queries(20):
        hits = session_hits(session, parse_query("&&"), None)
    assert hits.is_partial


@pytest.mark.parametrize("place", [0, 3_300, 3_320, 4_089, 4_090, 4_096, 20_000])
def test_a_match_is_shown_with_as_much_around_it_wherever_it_stands_in_a_text(place):
    pieces = snippet("é " * (place // 2) + " needle " + "z" * 2_000, parse_query("NEEDLE").wanted)
    matched = [number for number, piece in enumerate(pieces) if piece.is_match]
    assert [pieces[number].text for number in matched] == ["needle"]
    assert sum(len(piece.text) for piece in pieces) >= SNIPPET_CHARS - 60


def test_a_whole_word_far_behind_is_shown_before_a_part_of_a_word_near_the_beginning():
    pieces = snippet("needless " + "x " * 10_000 + "needle", parse_query("needle").wanted)
    assert [piece.text for piece in pieces if piece.is_match] == ["needle"]
