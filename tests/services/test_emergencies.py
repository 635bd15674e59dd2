"""A view for the turn of a failed attempt: looked for under its lease, left off at a cancel, and not by a process that ends."""

import time
import uuid

import pytest

from sessions_app.engine.terms import Outcome, Status
from sessions_app.models import Compaction, Lease, Session, SessionKind, SessionStatus
from sessions_app.services.compactions import automatic, emergencies, lease
from sessions_app.services.compactions.automatic import before_turn
from sessions_app.services.compactions.cancel import cancel
from tests.services.compaction_scenes import fresh, long_session

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody")]


@pytest.fixture
def session(monkeypatch) -> Session:
    """A full one, whose attempts all fail."""

    def breaks(*_args, **_more):
        raise RuntimeError("a fault of the test")

    monkeypatch.setattr("sessions_app.services.compactions.run.engine_run", breaks)
    return long_session(40, kind=SessionKind.INLINE, status=SessionStatus.WORKING, model="m")


def looking(monkeypatch, meanwhile) -> list[str]:
    """Does something while a view is looked for, and keeps what the search saw."""
    seen: list[str] = []
    trim = emergencies.engine_trim

    def trimming(task, *, should_stop):
        meanwhile()
        while (stop := should_stop()) is None:
            time.sleep(0.01)
        seen.append(str(stop))
        return trim(task, should_stop=should_stop)

    monkeypatch.setattr(emergencies, "engine_trim", trimming)
    return seen


def test_a_cancel_ends_the_search_and_no_view_is_served(session, support_actor, monkeypatch):
    def press():
        running = Compaction.objects.get(session=session)
        assert Lease.objects.get(session=session).token == running.lease_token
        cancel(actor=support_actor, session=session, compaction_id=running.pk)

    seen = looking(monkeypatch, press)
    decision = before_turn(session=session, actor=support_actor, turn_id=uuid.uuid4())
    assert seen == ["cancelled"]
    assert (decision.view, decision.compaction.status, decision.compaction.outcome) == (None, Status.FAILED, Outcome.FAILED)
    assert fresh(session).status == SessionStatus.WORKING


def test_a_process_that_ends_leaves_it_at_once(session, support_actor, monkeypatch):
    seen = looking(monkeypatch, lambda: None)
    decision = before_turn(session=session, actor=support_actor, turn_id=uuid.uuid4(), must_end=lambda: True)
    assert (seen, decision.view) == (["lease_lost"], None)


def test_who_lost_the_lease_meanwhile_serves_nothing(session, support_actor, monkeypatch):
    def lose():
        Compaction.objects.filter(session=session).update(lease_token=uuid.uuid4())

    seen = looking(monkeypatch, lose)
    decision = before_turn(session=session, actor=support_actor, turn_id=uuid.uuid4())
    assert (seen, decision.view) == (["lease_lost"], None)


def test_an_attempt_whose_lease_was_held_for_a_moment_is_run_all_the_same(support_actor, monkeypatch):
    session = long_session(40, kind=SessionKind.INLINE, status=SessionStatus.WORKING, model="m")
    claim, refused = lease.claim, [None, None]
    monkeypatch.setattr(lease, "claim", lambda compaction_id: refused.pop() if refused else claim(compaction_id))
    monkeypatch.setattr(automatic, "JOIN_LOOK_S", 0.01)
    assert before_turn(session=session, actor=support_actor, turn_id=uuid.uuid4()).compaction.status == Status.COMPLETED
