"""Times that can't be true: records of clocks that were wrong. They are shown as they are, and put nothing out of its place."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.urls import reverse

from sessions_app.models import Compaction, Entry, Session
from sessions_app.services.imports import doubtful_times
from sessions_app.services.imports.outcomes import SourceState
from tests.readers import codex_rollouts
from tests.readers.rows import answer, boundary, encode, prompt, summary
from tests.services.import_scenes import take, the_session, write

NEVER = "9999-12-31T23:59:59.999Z"
WRONG = [
    NEVER,
    "9999-12-31T23:59:59-12:00",
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "1970-01-01T00:00:00.000Z",
    "2999-02-30T00:00:00Z",
]
RIGHT = "2026-11-30T10:00:05.000Z"


def claude_code(folder: Path, times: list[str]) -> Path:
    rows = [prompt(f"u{number}", f"u{number - 1}" if number else None, timestamp=at) for number, at in enumerate(times)]
    return write(folder, encode(rows))


def codex(folder: Path, times: list[str]) -> Path:
    rows = [codex_rollouts.meta(), *({**codex_rollouts.user(f"Do {number}"), "timestamp": at} for number, at in enumerate(times))]
    return write(folder, encode(rows), name=codex_rollouts.NAME)


def chat(folder: Path, times: list[str]) -> Path:
    rows = [{"role": "user", "content": f"Do {number}", "timestamp": at} for number, at in enumerate(times)]
    return write(folder, json.dumps(rows).encode(), name="chat.json")


def messages(folder: Path, times: list[str]) -> Path:
    cached = {"type": "text", "text": "Do it", "cache_control": {"type": "ephemeral"}}
    contents = [[cached, {"type": "text", "text": str(number)}] for number in range(len(times))]
    rows = [{"role": "user", "content": content, "timestamp": at} for content, at in zip(contents, times, strict=True)]
    return write(folder, json.dumps({"model": "claude-opus-4-5", "system": "You help.", "messages": rows}).encode(), name="messages.json")


FORMATS = pytest.mark.parametrize("form", [claude_code, codex, chat, messages])


def newest() -> Session:
    return Session.objects.get(parent=None)


def told(session: Session) -> list[str]:
    return list(session.entries.exclude(timestamp="").order_by("index").values_list("timestamp", flat=True))


def found(session: Session) -> int:
    return session.source_files.get().report.get("by_problem", {}).get("time_in_doubt", 0)


@pytest.mark.django_db
@FORMATS
@pytest.mark.parametrize("wrong", WRONG)
def test_a_session_stands_where_those_of_its_times_put_it_that_can_be_true(tmp_path, form, wrong):
    assert take(form(tmp_path, [RIGHT, wrong, RIGHT])).state is SourceState.NEW
    session = newest()
    assert session.last_activity_at == session.started_at == datetime.fromisoformat(RIGHT)
    assert told(session) == [RIGHT, wrong, RIGHT]
    assert found(session) == 1
    assert Entry.objects.filter(session=session, annex__time_in_doubt=True).count() == 1


@pytest.mark.django_db
@FORMATS
@pytest.mark.parametrize("wrong", WRONG)
def test_where_none_of_its_times_can_be_true_it_stands_where_it_was_imported(tmp_path, form, wrong):
    before = datetime.now(UTC)
    assert take(form(tmp_path, [wrong, wrong])).state is SourceState.NEW
    session = newest()
    assert before <= session.last_activity_at <= datetime.now(UTC)
    assert session.started_at is None
    assert (told(session), found(session)) == ([wrong, wrong], 2)


@pytest.mark.django_db
@FORMATS
def test_a_clock_that_is_ahead_by_less_than_a_day_or_jumps_back_is_believed(tmp_path, form):
    ahead = (datetime.now(UTC) + timedelta(hours=23)).isoformat()
    take(form(tmp_path, [ahead, RIGHT]))
    session = newest()
    assert (session.last_activity_at, found(session)) == (datetime.fromisoformat(ahead), 0)


@pytest.mark.django_db
def test_growth_brings_a_session_back_that_an_earlier_version_put_first_for_ever(tmp_path):
    path = claude_code(tmp_path, [NEVER])
    take(path)
    Session.objects.update(last_activity_at=datetime.fromisoformat("9999-12-01T00:00:00Z"))
    path.write_bytes(path.read_bytes() + encode([answer("a0", "u0", timestamp=NEVER)]))
    assert take(path).state is SourceState.GROWN
    assert abs(the_session().last_activity_at - datetime.now(UTC)) < timedelta(minutes=5)


@pytest.mark.django_db
def test_a_row_without_a_time_takes_that_of_the_last_that_can_be_true(tmp_path):
    timeless = {key: value for key, value in prompt("u2", "u1").items() if key != "timestamp"}
    take(write(tmp_path, encode([prompt("u0", None, timestamp=RIGHT), prompt("u1", "u0", timestamp=NEVER), timeless])))
    assert told(the_session()) == [RIGHT, NEVER, RIGHT]


@pytest.mark.django_db
def test_a_side_chain_and_a_compaction_of_a_wrong_clock_stand_where_they_were_imported(tmp_path):
    rows = [
        prompt("u1", None, timestamp=NEVER),
        prompt("s1", None, timestamp=NEVER, isSidechain=True),
        answer("a1", "u1", timestamp=NEVER),
        boundary("b", "a1") | {"timestamp": NEVER},
        summary("s", "b", "All was said.") | {"timestamp": NEVER},
    ]
    take(write(tmp_path, encode(rows)))
    soon = datetime.now(UTC) + timedelta(minutes=5)
    assert [session.last_activity_at < soon for session in Session.objects.all()] == [True, True]
    compaction = Compaction.objects.get()
    assert compaction.requested_at < soon
    assert compaction.detail["timestamp"] == NEVER


@pytest.mark.django_db
@pytest.mark.parametrize(("times", "expected"), [([RIGHT, NEVER], RIGHT), ([NEVER], "")])
def test_what_an_earlier_version_stored_can_be_set_right(tmp_path, times, expected):
    take(claude_code(tmp_path, times))
    Session.objects.update(last_activity_at=datetime.fromisoformat("9999-12-01T00:00:00Z"))
    session = doubtful_times.in_doubt().get()
    doubtful_times.set_right(session)
    assert not doubtful_times.in_doubt().exists()
    session.refresh_from_db()
    assert session.last_activity_at == (datetime.fromisoformat(expected) if expected else session.created_at)
    assert told(session) == times


@pytest.mark.django_db
@FORMATS
def test_the_pages_show_it_where_it_belongs_with_its_own_times(tmp_path, form, client, operator):
    take(form(tmp_path, WRONG))
    client.force_login(operator)
    assert client.get(reverse("session-list")).status_code == 200
    page = client.get(reverse("session-detail", args=[newest().pk]))
    assert page.status_code == 200
    assert all(wrong in page.content.decode() for wrong in WRONG)
