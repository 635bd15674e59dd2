"""`manage.py sessions`: the page's list, filters, order and pages."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.core.cache import cache

from sessions_app.forms import SessionListForm
from sessions_app.management.commands.sessions import Command
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.models import Event, Project, Session
from tests.management.commands import run
from tests.stored import store_session

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def some(number: int = 5) -> list[str]:
    """So many sessions, each an hour older than the one before; their ids, the latest first."""
    made = [
        store_session(
            title=f"Session {place}", last_activity_at=NOON - timedelta(hours=place), agent="codex" if place % 2 else "claude-code"
        )
        for place in range(number)
    ]
    return [str(session.pk) for session in made]


def listed(**options) -> dict:
    out, _, end = run("sessions", as_json=True, **options)
    assert end == Exit.OK
    return json.loads(out)


def test_it_lists_the_latest_first_and_says_where_a_number_comes_from():
    store_session(
        title="Full", signal_tokens=150_000, signal_origin="measured", signal_scope="whole_request", window=200_000, pressure=0.75
    )
    (session,) = listed()["data"]
    assert session["signal"] == {"tokens": 150_000, "origin": "measured", "scope": "whole_request"}
    assert (session["window"], session["pressure"]) == (200_000, 0.75)
    assert datetime.fromisoformat(session["active_at"]).tzinfo is not None


def test_pages_follow_each_other_without_a_gap():
    ids = some()
    seen, cursor = [], ""
    while True:
        page = listed(limit=2, after=cursor)
        seen += [session["id"] for session in page["data"]]
        assert (page["first_id"], page["last_id"]) == (page["data"][0]["id"], page["data"][-1]["id"])
        assert page["matching"] == len(ids)
        cursor = page["next"]
        assert bool(cursor) == page["has_more"]
        if not cursor:
            break
    assert seen == ids


def test_all_of_them_come_an_object_a_line(monkeypatch):
    monkeypatch.setattr("sessions_app.management.commands.sessions.PAGE", 2)
    ids = some()
    out, _, _ = run("sessions", as_jsonl=True, limit=0)
    assert [json.loads(line)["id"] for line in out.splitlines()] == ids


def test_filters_and_order_are_those_of_the_page():
    ids = some()
    assert [session["id"] for session in listed(agent="codex")["data"]] == ids[1::2]
    assert [session["id"] for session in listed(q="session 3")["data"]] == [ids[3]]
    assert [session["id"] for session in listed(sort="title", reverse=True)["data"]] == ids[::-1]
    assert set(SessionListForm.base_fields) - {"after", "sort"} <= set(Command().create_parser("", "").parse_args([]).__dict__)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"pressure": "150"}, "--pressure cannot be '150': Ensure this value is less than or equal to 100. Nothing was done."),
        ({"after": "zzz"}, "Start again from the first page"),
        ({"agent": "clude-code"}, "--agent: there is no 'clude-code'. Near it are claude-code, codex. Nothing was done."),
        ({"model": "opus-9"}, "--model: there is no 'opus-9'."),
    ],
)
def test_a_value_that_a_filter_cannot_have_is_refused(options, sentence):
    some()
    with pytest.raises(CommandFailure) as failure:
        run("sessions", **options)
    assert sentence in str(failure.value)
    assert failure.value.end == Exit.USAGE


def test_a_project_is_named_as_for_every_other_command():
    Session.objects.filter(pk=some()[0]).update(project=Project.objects.create(key="-srv-payments", name="Payments"))
    assert [session["project"] for session in listed(project="payments")["data"]] == ["Payments"]
    with pytest.raises(CommandFailure, match="There is no project 'seven'") as failure:
        run("sessions", project="seven")
    assert failure.value.end == Exit.NOT_FOUND


def test_an_agent_that_no_session_has_yet_is_no_mistake():
    assert listed(agent="codex")["data"] == []
    cache.clear()
    some()
    assert listed(agent="anthropic-messages")["data"] == []


def test_a_table_tells_the_rest_and_where_it_goes_on():
    some()
    out, err, _ = run("sessions", limit=2)
    head, *rows = out.splitlines()
    assert head.split()[:2] == ["ID", "TITLE"]
    assert len(rows) == 2
    assert "2 of 5. Go on with --after " in err


def test_whoever_has_no_role_is_refused_and_it_is_an_event(outsider):
    some(1)
    with pytest.raises(CommandFailure) as failure:
        run("sessions", acting_as=outsider.username)
    assert failure.value.end == Exit.NOT_FOUND
    assert Event.objects.get().type == "access.refused"
