"""What texts name: found in many of them at once, and exactly what a plain search in each finds."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from sessions_app.engine import mentions
from sessions_app.engine.mechanical import Collector
from tests.engine import plain_mentions
from tests.engine.histories import histories

PIECES = [
    *" \n-.,%#/_:?…()é語٣\u00a0\ud83d07asx",
    *("12", "1,024", "3.5", "ms", "MiB", "lines", "tokens", "Hz", "B", "UTF-8", "PAY-12", "P1-3", "APAY-12", "#7", "acme/app#7", "A1"),
    *("https://example.org/a", "http://a", "://", "0a1b2c3", "deadbeef", "1234567", "0a1b2c3d" * 5, "0" * 41, "max_retries", "MaxRetries"),
    *("123e4567-e89b-12d3-a456-426614174000", "-e89b-12d3-a456-426614174000", "Max", "HTTPServer", "GitHub"),
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=14).map("".join) | st.text(max_size=30)


def named(text: str, *, spoken: bool) -> tuple[list[str], list[str], list[str]]:
    return plain_mentions.urls(text), plain_mentions.identifiers(text, spoken=spoken), plain_mentions.quantities(text)


@settings(max_examples=400)
@given(st.lists(st.tuples(TEXTS, st.booleans()), max_size=6))
@example([("see https://a.example/x", False), ("y", False)])
@example([("cut at 5", False), ("ms later", False)])
@example([("0a1b", False), ("2c3d4", False)])
@example([("acme/app", True), ("#7 and %20 s or 5%6 s", True)])
def test_many_texts_at_once_name_what_each_names_alone(texts):
    found = mentions.named_in([text for text, _ in texts], [spoken for _, spoken in texts])
    names = {place: (one.urls, one.identifiers, one.quantities) for place, one in found.items()}
    expected = {place: named(text, spoken=spoken) for place, (text, spoken) in enumerate(texts)}
    assert names == {place: told for place, told in expected.items() if any(told)}


@settings(max_examples=400)
@given(TEXTS, st.booleans())
def test_one_text_names_what_the_plain_search_finds(text, spoken):
    assert list(mentions.urls(text)) == plain_mentions.urls(text)
    assert list(mentions.identifiers(text, spoken=spoken)) == plain_mentions.identifiers(text, spoken=spoken)
    assert list(mentions.quantities(text)) == plain_mentions.quantities(text)


@settings(max_examples=60, deadline=None)
@given(histories())
def test_a_page_at_once_is_collected_as_its_entries_one_by_one(entries):
    by_page, one_by_one = Collector(), Collector()
    by_page.add_all(entries)
    for entry in entries:
        one_by_one.add(entry)
    assert by_page.state() == one_by_one.state()
    assert by_page.facts() == one_by_one.facts()
