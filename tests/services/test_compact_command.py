"""`manage.py compact`: the same gate, the same service, progress on standard error."""

import io
import uuid

import pytest
from django.core.management import CommandError, call_command

from sessions_app.models import Event, SessionStatus
from sessions_app.services.compactions.request import request
from tests.services.compaction_scenes import fresh, long_session, make_slow, set_policy
from tests.stored import store_session

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _queue_of_nobody(monkeypatch):
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *task: None)


def compact(session, **options) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("compact", str(getattr(session, "pk", session)), stdout=out, stderr=err, **options)
    return out.getvalue(), err.getvalue()


def test_it_tells_progress_while_it_happens_and_then_the_result():
    session = long_session()
    make_slow(session, delay_s=0.6)
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


def test_nothing_to_fold_is_said_and_is_no_error():
    out, _ = compact(store_session())
    assert out.startswith("a1 skipped: ")


def test_no_wait_leaves_it_to_a_worker():
    session = long_session()
    out, _ = compact(session, no_wait=True)
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
    with pytest.raises(CommandError, match=r"a1 timed out: .*Nothing was changed"):
        compact(session)


def test_a_refusal_names_the_right_and_an_unknown_session_is_said_to_be_none(operator):
    session = long_session()
    with pytest.raises(CommandError, match="may not compact"):
        compact(session, acting_as=operator.username)
    with pytest.raises(CommandError, match="There is no such session"):
        compact(uuid.uuid4())
    with pytest.raises(CommandError, match="no active user"):
        compact(session, acting_as="nobody")
    with pytest.raises(CommandError, match="invalid UUID value"):
        compact("seven")
    assert not Event.objects.filter(type="compaction.requested").exists()


def test_an_option_that_cannot_be_met_is_refused_in_words():
    with pytest.raises(CommandError, match="Instructions may have 2,000 characters"):
        compact(long_session(), instructions="x" * 2_001)
