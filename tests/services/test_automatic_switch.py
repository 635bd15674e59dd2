"""A session goes over to another model: at once where its view fits, after a compaction where it does not, or not at all."""

import uuid

import pytest

from sessions_app.engine.breaker import OPENS_AT
from sessions_app.engine.terms import Outcome, Status, Trigger
from sessions_app.engine.triggers import Reason
from sessions_app.models import Compaction, Event, Session, SessionKind, SessionStatus
from sessions_app.services.compactions.automatic import NotOurs, switch_model
from sessions_app.services.compactions.lease import database_time
from sessions_app.services.compactions.request import CompactUnavailable, SessionBusy, request
from sessions_app.services.compactions.revert import CompactionUnderWay
from tests.services.compaction_scenes import fresh, long_session, set_policy, view_hash

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody")]


@pytest.fixture
def session() -> Session:
    return long_session(40, kind=SessionKind.INLINE, model="claude-sonnet-4", provider="anthropic", window_override=None)


def test_a_view_that_fits_goes_over_at_once_and_its_meter_follows(support_actor, session):
    decision = switch_model(session=session, actor=support_actor, model="gpt-4o", provider="openai")
    assert (decision.refusal, decision.compaction, decision.verdict.reason) == ("", None, Reason.VIEW_FITS)
    assert (fresh(session).model, session.provider, session.window) == ("gpt-4o", "openai", 128_000)
    event = Event.objects.get(type="session.model_changed")
    assert (event.before["model"], event.after["model"]) == ("claude-sonnet-4", "gpt-4o")


def test_a_smaller_window_is_compacted_for_before_the_old_model_is_left(support_actor, session):
    decision = switch_model(session=session, actor=support_actor, model="small", window=8_000)
    assert decision.refusal == ""
    attempt = decision.compaction
    assert (attempt.status, attempt.trigger, attempt.evaluation["window"]) == (Status.COMPLETED, Trigger.MODEL_SWITCH, 8_000)
    assert attempt.outcome == Outcome.COMMITTED
    assert attempt.tokens_after <= 0.6 * 0.8 * 8_000
    assert (fresh(session).model, session.window) == ("small", 8_000)
    assert session.signal_tokens < session.trigger_tokens


@pytest.mark.parametrize("window", [1_200, 2_000])
def test_a_window_that_nothing_fits_into_is_refused_and_nothing_changes(support_actor, session, window):
    set_policy(session, protected_recent_messages=40)
    before = view_hash(session)
    decision = switch_model(session=session, actor=support_actor, model="tiny", window=window)
    assert decision.refusal.startswith("The session stays with claude-sonnet-4")
    assert (fresh(session).model, session.active_console, view_hash(session)) == ("claude-sonnet-4", None, before)
    assert not Event.objects.filter(type="session.model_changed").exists()


def test_off_is_off_and_an_open_circuit_rests_so_both_refuse(support_actor, session):
    set_policy(session, enabled=False)
    assert "switched off" in switch_model(session=session, actor=support_actor, model="small", window=8_000).refusal
    set_policy(session, enabled=True)
    Session.objects.filter(pk=session.pk).update(breaker_failures=OPENS_AT, breaker_failed_at=database_time())
    assert "rests" in switch_model(session=session, actor=support_actor, model="small", window=8_000).refusal
    assert not Compaction.objects.exists()
    assert fresh(session).evaluation["reason"] == Reason.CIRCUIT_OPEN


def test_a_model_is_chosen_only_between_turns_and_where_the_console_holds_the_session(support_actor, session):
    Session.objects.filter(pk=session.pk).update(status=SessionStatus.WORKING)
    with pytest.raises(SessionBusy):
        switch_model(session=session, actor=support_actor, model="small")
    Session.objects.filter(pk=session.pk).update(status=SessionStatus.IDLE)
    request(actor=support_actor, session=fresh(session))
    with pytest.raises(CompactionUnderWay):
        switch_model(session=session, actor=support_actor, model="small")
    with pytest.raises(NotOurs):
        switch_model(session=long_session(5), actor=support_actor, model="small")


@pytest.mark.parametrize("values", [{"require_model": True}, {"summarisers": ["anthropic:claude-haiku"]}])
def test_compact_is_unavailable_where_the_policy_wants_a_model_and_there_is_none(support_actor, monkeypatch, values):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    session = long_session(40, kind=SessionKind.INLINE)
    set_policy(session, **values)
    with pytest.raises(CompactUnavailable, match="/compact is unavailable"):
        request(actor=support_actor, session=session)
    assert not Compaction.objects.exists()
    Session.objects.filter(pk=session.pk).update(model="claude-sonnet-4")
    assert request(actor=support_actor, session=fresh(session)).compaction.status == Status.REQUESTED


def test_a_redelivered_turn_does_not_compact_twice(support_actor, session):
    from sessions_app.services.compactions.automatic import before_turn

    Session.objects.filter(pk=session.pk).update(window=8_000, window_override=8_000, trigger_tokens=6_400)
    turn = uuid.uuid4()
    assert before_turn(session=fresh(session), actor=support_actor, turn_id=turn).made_room
    assert not before_turn(session=session, actor=support_actor, turn_id=turn).verdict.fires
    assert Compaction.objects.count() == 1
