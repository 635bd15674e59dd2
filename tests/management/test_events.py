"""`manage.py events`: the audit log for admins, and one session's events for those who may read it."""

import json

import pytest

from sessions_app.events import log
from sessions_app.events.types import EventType
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.models import Event
from sessions_app.permissions import command_actor
from sessions_app.services.access import seen
from tests.management.commands import run
from tests.stored import store_session

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _nothing_was_looked_at_lately() -> None:
    seen.clear()


def written(number: int, stream: str = "security") -> list[int]:
    """Writes so many events; the ids of all that there are in the stream."""
    for place in range(number):
        log.append(stream, EventType.USER_CREATED, actor=command_actor(), payload={"name": f"u{place}"})
    return list(Event.objects.filter(stream=stream).order_by("pk").values_list("pk", flat=True))


def ids(out: str) -> list[int]:
    return [event["id"] for event in json.loads(out)["data"]]


def test_the_latest_come_last_and_older_ones_before_them():
    made = written(250)
    out, _, _ = run("events", as_json=True, limit=120, action="user.created")
    assert ids(out) == made[-120:]
    older, _, _ = run("events", as_json=True, limit=500, before=json.loads(out)["next"], action="user.created")
    assert ids(older) == made[:-120]
    assert json.loads(older)["has_more"] is False


def test_reading_it_is_an_event_and_filters_are_those_of_the_page():
    written(3)
    out, _, _ = run("events", as_jsonl=True, family="security", q="created", limit=2)
    assert [json.loads(line)["seq"] for line in out.splitlines()] == [2, 3]
    viewed = Event.objects.get(type="audit.viewed")
    assert viewed.payload["filters"] == {"family": "security", "q": "created"}


def test_an_operator_sees_the_events_of_a_session_and_nothing_else(operator):
    session = store_session()
    written(2, log.session_stream(session.pk))
    written(2)
    out, _, _ = run("events", as_jsonl=True, session=str(session.pk), acting_as=operator.username)
    assert {json.loads(line)["stream"] for line in out.splitlines()} == {log.session_stream(session.pk)}
    for options in ({}, {"session": str(session.pk), "actor": "ada"}, {"export": "csv", "family": "security"}):
        with pytest.raises(CommandFailure, match="may not audit") as failure:
            run("events", acting_as=operator.username, **options)
        assert failure.value.end == Exit.REFUSED
    assert Event.objects.filter(type="session.viewed").count() == 1
    assert {event.reason for event in Event.objects.filter(type="access.refused")} == {"role operator may not audit"}


def test_an_export_is_that_of_the_page_and_an_event():
    made = written(3)
    out, _, _ = run("events", export="jsonl", family="security")
    *events, last = [json.loads(line) for line in out.splitlines()]
    assert [event["id"] for event in events] == made
    assert last == {"complete": True, "events": 3}
    assert Event.objects.filter(type="audit.exported").count() == 1


def test_new_ones_are_followed_until_ctrl_c(monkeypatch):
    written(2)
    looks = iter(range(3))

    def look(_seconds: float) -> None:
        if next(looks, None) is None:
            raise KeyboardInterrupt  # as Ctrl-C does, also where whoever started the tests has it ignored
        written(1)

    monkeypatch.setattr("sessions_app.management.commands.events.time.sleep", look)
    out, _, end = run("events", follow=True, as_json=True, family="security")
    assert [json.loads(line)["seq"] for line in out.splitlines()] == [1, 2, 3, 4, 5]
    assert end == Exit.OK


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"limit": 0}, "At least one event"),
        ({"since": "yesterday"}, "--since cannot be 'yesterday': Enter a valid date/time. Nothing was done."),
        ({"compaction": "x"}, "--compaction cannot be 'x'"),
        ({"action": "compaction.request"}, "--action: there is no 'compaction.request'. Near it are compaction.requested, "),
        ({"action": "nothing like it"}, "There are access.refused, "),
        ({"stream": "secruity"}, "--stream: there is no 'secruity'. Near it is security. Nothing was done."),
        ({"stream": "session:0190aaaa"}, "--stream: there is no 'session:0190aaaa'. There are "),
    ],
)
def test_what_cannot_be_met_is_refused(options, sentence):
    with pytest.raises(CommandFailure) as failure:
        run("events", **options)
    assert sentence in str(failure.value)
    assert failure.value.end == Exit.USAGE


@pytest.mark.parametrize("stream", ["security", "imports", "access:2020-01-01"])
def test_a_stream_that_holds_nothing_yet_is_no_mistake(stream):
    assert ids(run("events", stream=stream, as_json=True)[0]) == []
