"""The search page and the search of a session: who may, what is shown, what it costs, what is written down."""

import html
import json
import re
from pathlib import Path

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from sessions_app.engine.entries import Entry, Part
from sessions_app.engine.terms import Kind, PartKind, Role
from sessions_app.models import Event
from sessions_app.services import search_index
from tests.stored import store_session

QUERY_COUNTS = json.loads((Path(__file__).resolve().parents[1] / "query_counts.json").read_text())
HOSTILE = '<script>alert("x")</script> <img src=x onerror=y> carrier \u202e\x1b[31m'


def entry(index: int, text: str) -> Entry:
    return Entry(index=index, role=Role.USER, kind=Kind.MESSAGE, parts=(Part(kind=PartKind.TEXT, text=text),))


@pytest.fixture
def session(db):
    session = store_session([entry(0, "the carrier retries"), entry(1, HOSTILE), entry(2, "nothing")], title="A <b>carrier</b> & more")
    search_index.index_lagging()
    return session


def test_hits_are_shown_with_what_was_found_marked(operator_page: Client, session):
    shown = operator_page.get("/search/", {"q": "retries"}).content.decode()
    assert "the carrier <mark>retries</mark>" in shown


def test_a_hit_leads_to_its_entry_with_the_search_in_it(operator_page: Client, session):
    shown = operator_page.get("/search/", {"q": "retries"}).content.decode()
    address = html.unescape(re.search(r'class="hit__link" href="([^"]+at=0[^"]*)"', shown)[1])
    there = operator_page.get(address.partition("#")[0])
    assert there.status_code == 200
    assert 'id="e0"' in there.content.decode()
    assert 'value="retries"' in there.content.decode()


@pytest.mark.parametrize("place", ["all sessions", "one session"])
def test_texts_and_titles_of_transcripts_become_no_markup(operator_page: Client, session, place):
    address = "/search/" if place == "all sessions" else reverse("session-detail", args=[session.pk])
    shown = operator_page.get(address, {"q": "carrier"}).content.decode()
    hits = re.search(r'<ol class="hits".*?</ol>', shown, re.DOTALL)[0]
    assert "alert(&quot;x&quot;)" in hits
    for forbidden in ("<script>alert", "<img src=x", "<b>"):
        assert forbidden not in shown
    assert "\u202e" not in hits
    assert "\x1b" not in hits


def test_what_is_searched_for_becomes_no_markup(operator_page: Client, session):
    shown = operator_page.get("/search/", {"q": '"><script>alert(1)</script>'}).content.decode()
    assert "<script>alert" not in shown


@pytest.mark.parametrize("query", ["", '"', "a AND (", "-", "*", "%00", "\x00", "NEAR(", "x" * 5_000])
def test_no_text_is_an_error(operator_page: Client, session, query):
    assert operator_page.get("/search/", {"q": query}).status_code == 200
    assert operator_page.get(reverse("session-detail", args=[session.pk]), {"q": query}).status_code == 200


@pytest.mark.parametrize("query", [{"role": "king"}, {"since": "yesterday"}, {"session": "x"}, {"after": "nonsense", "q": "carrier"}])
def test_a_filter_with_a_value_that_it_cannot_have_is_refused_in_a_sentence(operator_page: Client, session, query):
    response = operator_page.get("/search/", query)
    assert response.status_code == 400


def test_whoever_is_in_no_group_finds_nothing_and_is_not_told_what_there_is(client: Client, outsider, session):
    client.force_login(outsider)
    response = client.get("/search/", {"q": "carrier"})
    assert response.status_code == 404
    assert "retries" not in response.content.decode()
    assert not Event.objects.filter(type="search.performed").exists()


def test_without_a_sign_in_there_is_no_search(client: Client, session):
    assert client.get("/search/", {"q": "carrier"}).status_code == 302


def test_a_search_that_shows_text_is_written_down_once_a_minute(operator_page: Client, session):
    for _ in range(3):
        operator_page.get("/search/", {"q": "carrier"})
    operator_page.get("/search/", {"q": "no such text"})
    operator_page.get("/search/", {"q": "retries"})
    operator_page.get(reverse("session-detail", args=[session.pk]), {"q": "carrier"})
    events = list(Event.objects.filter(type="search.performed").order_by("seq"))
    assert [(event.payload["query"], event.target_id) for event in events] == [
        ("carrier", ""),
        ("retries", ""),
        ("carrier", str(session.pk)),
    ]
    assert all(event.stream.startswith("access:") and event.actor_name == "olga" for event in events)


def test_entries_that_are_not_indexed_yet_are_told_of(operator_page: Client, session):
    store_session([entry(0, "late carrier")])
    cache.clear()
    assert "1 entry is not indexed yet" in operator_page.get("/search/", {"q": "carrier"}).content.decode()


def test_a_page_of_hits_costs_a_fixed_number_of_queries(operator_page: Client, session, django_assert_num_queries):
    store_session([entry(index, f"carrier number {index}") for index in range(300)])
    search_index.index_lagging()
    operator_page.get("/search/", {"q": "carrier"})
    with django_assert_num_queries(QUERY_COUNTS["search, fifty hits"]):
        operator_page.get("/search/", {"q": "carrier"})


def test_the_bar_at_the_top_leads_to_the_search(operator_page: Client, session):
    shown = operator_page.get("/").content.decode()
    assert 'action="/search/"' in shown


def test_the_way_from_hit_to_hit_stands_on_the_page(operator_page: Client, db):
    session = store_session([entry(index, "carrier" if index % 10 == 0 else "other") for index in range(50)])
    search_index.index_lagging()
    shown = operator_page.get(reverse("session-detail", args=[session.pk]), {"q": "carrier", "at": 20}).content.decode()
    assert "3 of 5 entries" in shown
    assert re.search(r'href="[^"]*at=10[^"]*#e10"[^>]*data-key="N"', shown)
    assert re.search(r'href="[^"]*at=30[^"]*#e30"[^>]*data-key="n"', shown)


def test_where_whole_words_are_many_parts_of_words_are_left_out_and_that_is_said(operator_page: Client, db):
    session = store_session([entry(index, "carrier" if index % 2 else "carriers") for index in range(60)])
    search_index.index_lagging()
    address = reverse("session-detail", args=[session.pk])
    assert "30 entries with whole words" in operator_page.get(address, {"q": "carrier"}).content.decode()
    assert "30 entries<" in operator_page.get(address, {"q": '"carrier"'}).content.decode()


def test_signs_that_no_index_has_are_said_to_be_read_for(operator_page: Client, db):
    store_session([entry(index, "word") for index in range(11_000)])
    search_index.index_lagging()
    assert "stand in no index" in operator_page.get("/search/", {"q": "&&"}).content.decode()
