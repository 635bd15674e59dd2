"""Turns of sessions that are held here: delivered in order and once, answered, stopped, tried again."""

import pytest

from sessions_app.models import Entry, Session, SessionStatus, Turn, TurnStatus
from sessions_app.services.turns.run import run_turn
from sessions_app.services.turns.send import send
from sessions_app.services.turns.sessions import begin

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def queued(monkeypatch) -> list[tuple[str, ...]]:
    """What would have been given to workers."""
    tasks: list[tuple[str, ...]] = []
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *task: tasks.append(task))
    return tasks


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr("sessions_app.providers.scripted_model.PAUSE_S", 0)


def said(session: Session) -> list[tuple[str, str]]:
    return [(entry.role, entry.parts) for entry in Entry.objects.filter(session=session).order_by("index")]


def test_a_message_is_delivered_and_answered(support_actor):
    session = begin(actor=support_actor, model="scripted", system="Be brief.")
    turn = send(actor=support_actor, session=session, text="Plan the release of 4.2.")
    assert Entry.objects.filter(session=session).count() == 1  # it is queued, and no entry yet
    assert run_turn(session.pk)
    turn.refresh_from_db()
    session.refresh_from_db()
    assert (turn.status, turn.user_index, turn.answer_index, turn.calls) == (TurnStatus.COMPLETED, 1, 2, 1)
    assert [role for role, _ in said(session)] == ["system", "user", "assistant"]
    assert session.status == SessionStatus.IDLE
    assert session.title == "Plan the release of 4.2."
    assert session.signal_origin == "measured"
    assert not run_turn(session.pk)
    assert Turn.objects.count() == 1
