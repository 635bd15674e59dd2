"""The list of sessions: what stands in it, in which order, and what it refuses to guess."""

import html
import json
import re
from pathlib import Path

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from sessions_app.models import Compaction, Project, SessionRelation
from sessions_app.selectors import session_filters
from tests.views.conftest import NOON

QUERY_COUNTS = json.loads((Path(__file__).resolve().parents[1] / "query_counts.json").read_text())


def titles(response) -> list[str]:
    return [html.unescape(title) for title in re.findall(r'class="title__text"[^>]*>([^<]*)</a>', response.content.decode())]


def link(response, relation: str) -> str:
    found = re.search(rf'<a href="([^"]+)"[^>]*rel="{relation}"', response.content.decode())
    return html.unescape(found[1]) if found else ""


def test_the_latest_active_session_comes_first(operator_page: Client, make_session):
    make_session("first made")
    make_session("most recent", last_activity_at=NOON)
    assert titles(operator_page.get("/")) == ["most recent", "first made"]


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("title", ["a", "b", "c"]),
        ("-title", ["c", "b", "a"]),
        ("entries", ["b", "a", "c"]),
        ("-entries", ["c", "a", "b"]),
        ("context", ["c", "b", "a"]),
        ("-context", ["a", "b", "c"]),
        ("-active", ["c", "b", "a"]),
    ],
)
def test_every_order_has_two_directions(operator_page: Client, make_session, sort, expected):
    make_session("a", entry_count=5, pressure=0.1)
    make_session("b", entry_count=9, pressure=0.2)
    make_session("c", entry_count=1, pressure=0.3)
    assert titles(operator_page.get("/", {"sort": sort})) == expected


def test_sub_agents_archived_and_half_imported_sessions_are_not_listed(operator_page: Client, make_session):
    parent = make_session("parent")
    make_session("sub-agent", parent=parent, relation=SessionRelation.SUB_AGENT)
    make_session("archived", archived=True)
    make_session("half imported", is_complete=False)
    assert titles(operator_page.get("/")) == ["parent"]


@pytest.mark.parametrize(
    "query",
    [
        {"q": "WANTED"},
        {"agent": "codex"},
        {"model": "gpt-5"},
        {"status": "failed"},
        {"kind": "inline"},
        {"pressure": "90"},
        {"view": "attention"},
        {"view": "pressure"},
        {"q": "wanted", "agent": "codex", "pressure": "50"},
    ],
)
def test_a_filter_leaves_only_what_has_all_of_it(operator_page: Client, make_session, query):
    make_session("something else")
    make_session("wanted", agent="codex", model="gpt-5", status="failed", kind="inline", pressure=0.95, signal_tokens=121_600)
    response = operator_page.get("/", query)
    assert titles(response) == ["wanted"]
    assert "1 matches" in response.content.decode()


def test_a_project_filters_by_its_id(operator_page: Client, make_session):
    project = Project.objects.create(key="/srv/parcels", name="parcels")
    make_session("elsewhere")
    make_session("here", project=project)
    assert titles(operator_page.get("/", {"project": str(project.pk)})) == ["here"]


def test_the_text_filter_takes_wildcards_literally(operator_page: Client, make_session):
    make_session("100 % sure")
    make_session("100 apples")
    assert titles(operator_page.get("/", {"q": "100 %"})) == ["100 % sure"]


def test_pages_follow_each_other_without_gap_or_repeat_and_lead_back(operator_page: Client, make_session):
    made = [make_session(f"session {number:03}", last_activity_at=NOON).title for number in range(205)]
    seen: list[str] = []
    address, addresses = "/", []
    while address:
        addresses.append(address)
        response = operator_page.get(address)
        seen += titles(response)
        address = link(response, "next")
    assert len(addresses) == 3
    assert sorted(seen) == made
    assert len(seen) == len(set(seen))
    second = operator_page.get(link(response, "prev"))
    assert titles(second) == titles(operator_page.get(addresses[1]))
    assert "101–200 of 205" in second.content.decode()


@pytest.mark.parametrize("cursor", ["x", "!!!", "WyJ0aXRsZSIsImEiLCJiIiwxXQ", "W10", "ZZZZ"])
def test_a_damaged_cursor_is_answered_400_with_a_sentence(operator_page: Client, cursor):
    response = operator_page.get("/", {"after": cursor})
    assert response.status_code == 400
    assert "Start again from the first page" in response.content.decode()


@pytest.mark.parametrize("query", [{"status": "asleep"}, {"pressure": "much"}, {"sort": "colour"}, {"project": "x"}, {"view": "mine"}])
def test_a_value_that_a_filter_cannot_have_is_answered_400(operator_page: Client, query):
    response = operator_page.get("/", query)
    assert response.status_code == 400
    assert next(iter(query)) in response.content.decode()


def test_a_running_compaction_is_shown_by_form_word_and_chunk(operator_page: Client, make_session):
    session = make_session("compacting")
    session.running = Compaction.objects.create(
        session=session, attempt=1, lineage="console", trigger="manual", status="running", chunk_index=3, chunk_count=7, requested_at=NOON
    )
    session.save()
    page = operator_page.get("/").content.decode()
    assert "status--compacting" in page
    assert "chunk 4 of 7" in page  # the fourth is under way when three are done


def test_an_unknown_signal_is_called_unknown_never_zero(operator_page: Client, make_session):
    make_session(signal_tokens=None)
    row = re.search(r'<span class="meter .*?</td>', operator_page.get("/").content.decode())
    assert row is not None
    assert "unknown" in row[0]
    assert "0 %" not in row[0].replace("80 %", "")


def test_titles_and_labels_of_transcripts_never_become_markup(operator_page: Client, make_session):
    make_session("<script>alert(1)</script>", labels=["<img src=x>"], model='"><b>', agent="<i>")
    page = operator_page.get("/").content.decode()
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "<b>" not in page
    assert "<i>" not in page


def test_htmx_gets_the_results_alone_and_caches_are_told_apart(operator_page: Client, make_session):
    make_session()
    part = operator_page.get("/", headers={"HX-Request": "true"})
    assert part.content.decode().lstrip().startswith('<div id="results"')
    assert "HX-Request" in part["Vary"]
    assert "HX-Request" in operator_page.get("/")["Vary"]
    boosted = operator_page.get("/", headers={"HX-Request": "true", "HX-Boosted": "true"})
    assert "<!doctype html>" in boosted.content.decode()


def test_the_number_of_queries_does_not_depend_on_the_number_of_rows(operator_page: Client, make_session, django_assert_num_queries):
    project = Project.objects.create(key="/srv/parcels", name="parcels")
    for size in (3, 60):
        for number in range(size):
            make_session(f"{size} {number}", project=project)
        cache.clear()
        with django_assert_num_queries(QUERY_COUNTS["session-list, nothing cached"]):
            operator_page.get("/?agent=claude-code")
        with django_assert_num_queries(QUERY_COUNTS["session-list, counts cached"]):
            operator_page.get("/")


def test_who_is_in_no_group_finds_nothing_and_is_told_why(client: Client, outsider, make_session):
    make_session("secret")
    client.force_login(outsider)
    response = client.get("/")
    assert response.status_code == 404
    assert "Your account is in no group" in response.content.decode()
    assert "secret" not in response.content.decode()


def test_without_sign_in_the_list_leads_to_it(client: Client):
    response = client.get("/?q=x")
    assert response.status_code == 302
    assert response["Location"] == "/sign-in/?next=%2F%3Fq%3Dx"


def test_filters_offer_the_projects_with_the_most_sessions_however_many_there_are(operator_page: Client, make_session, monkeypatch):
    cache.clear()
    monkeypatch.setattr(session_filters, "OFFERED_PROJECTS", 2)
    for name, size in (("small", 1), ("large", 3), ("middle", 2)):
        project = Project.objects.create(key=f"/srv/{name}", name=name)
        for number in range(size):
            make_session(f"{name} {number}", project=project)
    page = operator_page.get("/").content.decode()
    offered = re.findall(r'<option value="[0-9a-f-]{36}"[^>]*>([^<]+)</option>', page)
    assert offered == ["large", "middle"]
    with CaptureQueriesContext(connection) as queries:
        cache.clear()
        session_filters.facets_and_matching(session_filters.SessionFilters())
    grouped = [query["sql"] for query in queries if "GROUP BY" in query["sql"]]
    assert all("LIMIT" in sql for sql in grouped if "project_id" in sql.split("FROM")[0])
    cache.clear()
