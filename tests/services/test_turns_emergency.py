"""Turns that an emergency view serves: what was measured of it says nothing of the view in force."""

import pytest

from sessions_app.engine.breaker import OPENS_AT
from sessions_app.engine.triggers import Reason
from sessions_app.models import Entry, Event, Session, TurnStatus
from sessions_app.services import signals
from sessions_app.services.compactions.breakers import database_time
from sessions_app.services.turns.run import run_turn
from sessions_app.services.turns.send import send
from sessions_app.services.turns.sessions import begin
from tests.services.compaction_scenes import WINDOW, fresh, grow

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody", "no_pauses")]


def test_while_the_breaker_rests_the_meter_goes_on_telling_the_view_in_force(support_actor):
    session = begin(actor=support_actor, model="scripted")
    Session.objects.filter(pk=session.pk).update(window_override=WINDOW)
    grow(session, turns=40)
    signals.refresh(session.pk)
    before = fresh(session).signal_tokens
    assert before > session.trigger_tokens
    Session.objects.filter(pk=session.pk).update(breaker_failures=OPENS_AT, breaker_failed_at=database_time())
    for number in range(2):
        turn = fresh(send(actor=support_actor, session=session, text=f"What is next, {number}?"))
        assert run_turn(session.pk)
        assert fresh(turn).status == TurnStatus.COMPLETED
        assert fresh(session).evaluation["reason"] == Reason.CIRCUIT_OPEN
        assert session.signal_tokens > before
        # What was billed for stands with the turn; the history has no measure of a view that it does not have.
        assert 0 < turn.usage["input"] < session.trigger_tokens
        assert Event.objects.filter(type="turn.completed").latest("seq").payload["usage"] == turn.usage
        assert not Entry.objects.filter(session=session, usage__isnull=False).exists()
