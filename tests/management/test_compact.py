"""`manage.py compact`: the same gate, the same service, progress on standard error."""

import json
import time
import uuid

import pytest
from django.core.management import CommandError

from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.models import Event, SessionStatus
from sessions_app.services.compactions.cancel import cancel
from sessions_app.services.compactions.request import request
from tests.management.commands import run
from tests.services.compaction_scenes import fresh, long_session, make_slow, set_policy
from tests.stored import store_session

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody")]


def compact(session, **options) -> tuple[str, str]:
    out, err, end = run("compact", getattr(session, "pk", session), **options)
    assert end == Exit.OK
    return out, err


def test_it_tells_progress_while_it_happens_and_then_the_result(summaries, monkeypatch):
    session = long_session()
    make_slow(session)
    looks: list[str] = []

    def let_what_was_told_go_on(_seconds: float) -> None:
        running = fresh(session).running
        looks.append(running.phase if running is not None else "")
        if looks[:-1].count("summarise"):  # between then and now it was looked at
            summaries.let_all()
        time.sleep(0.02)

    monkeypatch.setattr("sessions_app.management.commands.compact.pause", let_what_was_told_go_on)
    out, err = compact(session, instructions="Keep the names.")
    assert out.startswith("#1 committed: ")
    assert "a1 requested" in err
    assert "a1 summarise" in err
    assert fresh(session).active_console.instructions == "Keep the names."


def test_what_it_does_is_an_event_of_the_person_at_the_command_line():
    session = long_session()
    compact(session)
    event = Event.objects.get(type="compaction.requested")
    assert (event.actor_kind, event.actor_role) == ("cli", "admin")


def test_nothing_to_fold_is_said_and_has_a_code_of_its_own():
    out, _, end = run("compact", store_session().pk)
    assert out.startswith("a1 skipped: ")
    assert end == Exit.NOTHING_TO_DO


def test_no_wait_leaves_it_to_a_worker():
    session = long_session()
    out, _ = compact(session, wait=False)
    assert (out, fresh(session).running.status) == ("a1 requested\n", "requested")


def test_it_joins_what_is_under_way(support_actor):
    session = long_session()
    request(actor=support_actor, session=session)
    out, err = compact(session)
    assert "started by ana" in err
    assert out.startswith("#1 committed")


def test_it_waits_for_a_busy_session(monkeypatch):
    monkeypatch.setattr("sessions_app.management.commands.compact.SWEEP_S", 0)
    session = long_session(status=SessionStatus.WORKING)
    session.last_activity_at = session.last_activity_at.replace(year=2001)
    session.save()
    out, err = compact(session)
    assert "a1 waiting for idle" in err
    assert out.startswith("#1 committed")


def test_an_attempt_that_fails_is_an_error_that_says_why():
    session = long_session()
    make_slow(session)
    set_policy(session, total_timeout_s=1, call_timeout_s=1)
    with pytest.raises(CommandFailure, match=r"Nothing was changed") as failure:
        compact(session)
    assert (failure.value.end, failure.value.code) == (Exit.FAILED, "timed_out")


def test_a_refusal_names_the_right_and_an_unknown_session_is_said_to_be_none(operator):
    session = long_session()
    for options, said, end in (
        ({"acting_as": operator.username}, "may not compact", Exit.REFUSED),
        ({"acting_as": "nobody"}, "no active user", Exit.NOT_FOUND),
    ):
        with pytest.raises(CommandFailure, match=said) as failure:
            compact(session, **options)
        assert failure.value.end == end
    for named in (uuid.uuid4(), "seven"):
        with pytest.raises(CommandFailure, match="There is no such session") as failure:
            compact(named)
        assert failure.value.end == Exit.NOT_FOUND
    assert not Event.objects.filter(type="compaction.requested").exists()
    assert Event.objects.filter(type="access.refused").count() == 3


def test_a_busy_session_ends_it_at_once_when_nobody_wants_to_wait():
    with pytest.raises(CommandFailure, match="Nothing was started") as failure:
        compact(long_session(status=SessionStatus.WORKING), when="now")
    assert failure.value.end == Exit.BUSY


def test_a_cancel_from_elsewhere_ends_it_as_cancelled(support_actor):
    session = long_session()
    make_slow(session)
    said = iter(("a1 summarise",))

    def cancel_it(_seconds: float) -> None:
        running = fresh(session).running
        if running is not None and running.phase == "summarise" and next(said, ""):
            cancel(actor=support_actor, session=session, compaction_id=running.pk)
        time.sleep(0.02)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sessions_app.management.commands.compact.pause", cancel_it)
        out, _, end = run("compact", session.pk)
    assert (out, end) == ("a1 cancelled\n", Exit.CANCELLED)


def test_its_json_is_the_attempt_and_its_progress_is_json_too():
    session = long_session()
    out, err = compact(session, as_json=True)
    attempt = json.loads(out)
    assert (attempt["object"], attempt["session_id"]) == ("compaction", str(session.pk))
    assert (attempt["status"], attempt["generation"]) == ("completed", 1)
    assert attempt["tokens_before"]["scope"] == attempt["tokens_after"]["scope"] == "view"
    assert {json.loads(line)["compaction_id"] for line in err.splitlines()} == {attempt["id"]}


def test_an_option_that_cannot_be_met_is_refused_in_words():
    with pytest.raises(CommandError, match="Instructions may have 2,000 characters"):
        compact(long_session(), instructions="x" * 2_001)
