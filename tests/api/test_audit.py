"""The audit log by the API: filtered, paged, exported, verified, each of it an event."""

import json

import pytest

from sessions_app.events import deferred
from sessions_app.models import Event
from tests.api.conftest import Api, error_of
from tests.services.compaction_scenes import long_session


@pytest.fixture
def many(as_admin, as_support, session) -> None:
    for number in range(12):
        as_support.patch(f"/sessions/{session.pk}", {"title": f"Title {number}"})
    deferred.flush()


def page(api: Api, query: str = "") -> dict:
    answer = api.get(f"/events?{query}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_events_are_paged_from_the_newest_on(as_admin, many):
    wanted = list(Event.objects.filter(type="session.edited").order_by("-at", "-pk").values_list("pk", flat=True))
    found, after = [], ""
    while True:
        told = page(as_admin, f"type=session.edited&limit=5{after}")
        found += [event["id"] for event in told["data"]]
        if not told["has_more"]:
            break
        after = f"&after={told['last_id']}"
    assert found == wanted
    before = page(as_admin, f"type=session.edited&limit=2&before={wanted[5]}")
    assert [event["id"] for event in before["data"]] == wanted[3:5]


def test_an_event_says_who_did_what(as_admin, many, session):
    event = page(as_admin, "type=session.edited&limit=1")["data"][0]
    assert event["actor"]["kind"] == "token"
    assert event["actor"]["name"] == "ana"
    assert (event["before"], event["after"]) == ({"title": "Title 10"}, {"title": "Title 11"})
    assert event["target"] == {"kind": "session", "id": str(session.pk)}


def test_reading_exporting_and_verifying_are_events(as_admin, many):
    page(as_admin)
    exported = b"".join(as_admin.get("/events/export?type=session.edited").streaming_content).splitlines()
    assert json.loads(exported[-1]) == {"complete": True, "events": 12}
    verified = as_admin.get("/events/verify").json()
    while not verified["is_done"]:
        verified = as_admin.get(f"/events/verify?state={verified['state']}").json()
    assert (verified["broken_count"], verified["faults"]) == (0, [])
    one = as_admin.get("/events/verify?stream=security").json()
    assert one["broken_at"] is None
    deferred.flush()
    assert {"audit.viewed", "audit.exported", "audit.verified"} <= set(Event.objects.values_list("type", flat=True))


def test_a_changed_event_is_found(as_admin, many):
    Event.objects.filter(type="session.edited").update(reason="nothing")
    assert as_admin.get("/events/verify").json()["broken_count"] == 1


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("after=999999", "after"),
        ("before=999999", "before"),
        ("after=1&before=1", "before"),
        ("since=yesterday", "since"),
        ("order=asc", "order"),
    ],
)
def test_what_is_not_understood_is_named(as_admin, query, field):
    answer = as_admin.get(f"/events?{query}")
    assert (answer.status_code, error_of(answer)["field"]) == (400, field)


def test_a_state_that_somebody_made_is_none(as_admin):
    answer = as_admin.get("/events/verify?state=mine")
    assert (answer.status_code, error_of(answer)["field"]) == (400, "state")


def test_the_log_is_for_admins(as_support, session):
    long_session(1, source_key="test:other")
    for address in ("/events", "/events/export", "/events/verify"):
        answer = as_support.get(address)
        assert (answer.status_code, error_of(answer)["code"]) == (403, "forbidden")
