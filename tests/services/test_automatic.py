"""Compactions that nobody asked for: before a turn, after an overflow, with a breaker that rests and a switch that is off."""

import uuid
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from sessions_app.engine import triggers, view
from sessions_app.engine.breaker import OPENS_AT
from sessions_app.engine.terms import Origin, Outcome, Rung, Status, SummarySource, Trigger
from sessions_app.models import Compaction, Event, Session, SessionKind, SessionStatus
from sessions_app.selectors import plans
from sessions_app.services.compactions import automatic, breakers
from sessions_app.services.compactions.automatic import before_turn, recover_overflow
from sessions_app.services.compactions.lease import database_time
from sessions_app.services.compactions.request import request
from tests.services.compaction_scenes import fresh, grow, history_digest, long_session, set_policy, steps_of, view_hash

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def queued(monkeypatch):
    tasks: list[tuple[str, ...]] = []
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *task: tasks.append(task))
    return tasks


def inline(turns: int = 40, **columns) -> Session:
    """A session that the console holds itself, in the middle of a turn; 40 turns are over its trigger of 6,400 tokens."""
    return long_session(turns, kind=SessionKind.INLINE, status=SessionStatus.WORKING, **columns)


def last(session: Session) -> Compaction:
    return Compaction.objects.filter(session=session).order_by("-attempt")[0]


def fail_always(monkeypatch, error: Exception | None = None):
    """Every attempt ends in something unforeseen."""

    def breaks(*args, **kwargs):
        raise error or RuntimeError("a fault of the test")

    monkeypatch.setattr("sessions_app.services.compactions.run.engine_run", breaks)


def test_a_full_view_is_compacted_before_the_turn_in_the_callers_thread(support_actor, queued):
    session, turn = inline(), uuid.uuid4()
    decision = before_turn(session=session, actor=support_actor, turn_id=turn)
    assert decision.made_room
    assert decision.view is None
    attempt = decision.compaction
    assert (attempt.status, attempt.trigger, attempt.turn_id) == (Status.COMPLETED, Trigger.THRESHOLD, turn)
    assert attempt.evaluation["tokens"] >= attempt.evaluation["limit"]
    assert attempt.tokens_after <= 0.6 * 6_400
    assert fresh(session).status == SessionStatus.WORKING
    assert queued == []


def test_a_view_under_its_trigger_is_left_alone_and_says_why(support_actor):
    session = inline(turns=5)
    decision = before_turn(session=session, actor=support_actor, turn_id=uuid.uuid4())
    assert not decision.verdict.fires
    assert decision.compaction is None
    assert fresh(session).evaluation["reason"] == triggers.Reason.UNDER_TRIGGER
    assert not Compaction.objects.exists()


def test_a_draft_that_waits_for_its_review_is_not_followed_by_another(support_actor):
    session = inline()
    set_policy(session, review_before_commit=True)
    assert before_turn(session=session, actor=support_actor, turn_id=uuid.uuid4()).compaction.status == Status.DRAFTED
    decision = before_turn(session=fresh(session), actor=support_actor, turn_id=uuid.uuid4())
    assert (decision.compaction, decision.verdict.reason) == (None, triggers.Reason.DRAFT_WAITS)
    assert decision.verdict.explanation == "It did not fire: the draft of a compaction waits to be reviewed."
    assert Compaction.objects.count() == 1


def test_off_is_off_before_a_turn_and_after_an_overflow(support_actor):
    """Invariant 12, and what an overflow then offers."""
    session = inline()
    set_policy(session, enabled=False)
    assert before_turn(session=session, actor=support_actor, turn_id=uuid.uuid4()).compaction is None
    decision = recover_overflow(session=session, actor=support_actor, turn_id=uuid.uuid4())
    assert not decision.made_room
    assert "switched off" in decision.refusal
    assert "Compact it by hand" in decision.refusal
    assert not Compaction.objects.exists()


def test_an_overflow_makes_room_without_a_model_even_where_the_view_was_believed_to_fit(support_actor):
    """The estimate said that it fits; the provider knows better."""
    session = inline(turns=12)
    set_policy(session, summarisers=["scripted"], scripted_delay_s=60.0)
    history = history_digest(session)
    decision = recover_overflow(session=session, actor=support_actor, turn_id=uuid.uuid4())
    assert decision.made_room
    assert (decision.compaction.outcome, decision.compaction.summary_source) == (Outcome.TRIMMED, SummarySource.TRIM)
    assert decision.compaction.tokens_after < decision.compaction.tokens_before / 2
    assert history_digest(session)[: len(history)] == history
    assert view.problems(plans.load_view(fresh(session))) == []


def test_an_overflow_is_recovered_from_once_a_turn(support_actor):
    session, turn = inline(), uuid.uuid4()
    assert recover_overflow(session=session, actor=support_actor, turn_id=turn).made_room
    again = recover_overflow(session=session, actor=support_actor, turn_id=turn)
    assert not again.made_room
    assert again.verdict.reason is triggers.Reason.ALREADY_ATTEMPTED
    assert Compaction.objects.count() == 1


def test_a_failure_serves_the_turn_from_a_view_that_nothing_stores(support_actor, monkeypatch):
    session, turn = inline(), uuid.uuid4()
    before, history = view_hash(session), history_digest(session)
    fail_always(monkeypatch)
    decision = before_turn(session=session, actor=support_actor, turn_id=turn)
    attempt = decision.compaction
    assert (attempt.status, attempt.outcome, attempt.reason) == (Status.EMERGENCY_EPHEMERAL, Outcome.EMERGENCY, "compact_failed")
    assert [status for _, _, status in steps_of(attempt)] == ["started", "emergency_ephemeral"]
    told = Event.objects.filter(compaction_id=attempt.pk, step__isnull=False).last().payload
    assert (told["applied"], told["durability"], told["user_visible"]) == (True, "request_scoped", True)
    assert told["turn_id"] == str(turn)
    shown = plans.view_of(session.pk, decision.view)
    assert view.problems(shown) == []
    assert len(shown) < len(plans.load_view(fresh(session)))
    assert (view_hash(session), history_digest(session)) == (before, history)
    assert not attempt.segments.exists()
    assert fresh(session).breaker_failures == 1
    assert attempt.rungs[-1]["rung"] == Rung.EMERGENCY


def test_an_emergency_view_holds_what_is_pinned_and_nothing_of_what_is_excluded(support_actor, monkeypatch):
    session = inline()
    Session.objects.filter(pk=session.pk).update(overrides={"pinned": [4], "excluded": [8, 156], "version": 1})
    fail_always(monkeypatch)
    decision = before_turn(session=fresh(session), actor=support_actor, turn_id=uuid.uuid4())
    held = [index for index in range(session.entry_count) if decision.view.holds(index)]
    assert 4 in held
    assert not {8, 156} & set(held)
    assert view.problems(plans.view_of(session.pk, decision.view)) == []


def test_after_three_failures_it_rests_and_serves_emergency_views_alone(support_actor, monkeypatch):
    session = inline()
    with monkeypatch.context() as patch:
        fail_always(patch)
        for _ in range(OPENS_AT):
            before_turn(session=session, actor=support_actor, turn_id=uuid.uuid4())
    assert fresh(session).breaker_failures == OPENS_AT
    turn = uuid.uuid4()
    decision = before_turn(session=session, actor=support_actor, turn_id=turn)
    assert decision.verdict.reason is triggers.Reason.CIRCUIT_OPEN
    assert decision.view is not None
    assert steps_of(decision.compaction) == [(1, "compaction.triggered", "emergency_ephemeral")]
    assert (decision.compaction.reason, decision.compaction.turn_id) == ("durable_compaction_circuit_open", turn)
    assert fresh(session).breaker_failures == OPENS_AT
    assert session.running is None
    assert session.active_console is None


def test_while_it_rests_a_person_may_still_compact_and_that_closes_the_breaker(support_actor):
    session = inline()
    Session.objects.filter(pk=session.pk).update(breaker_failures=OPENS_AT, breaker_failed_at=database_time(), status=SessionStatus.IDLE)
    attempt = request(actor=support_actor, session=fresh(session)).compaction
    automatic.run_compaction(attempt.pk)
    assert fresh(attempt).status == Status.COMPLETED
    assert (fresh(session).breaker_failures, session.breaker_failed_at) == (0, None)


def test_when_the_rest_is_over_one_attempt_is_let_through_and_its_end_decides(support_actor, monkeypatch):
    session = inline()
    long_ago = Now() - timedelta(seconds=301)
    Session.objects.filter(pk=session.pk).update(breaker_failures=OPENS_AT, breaker_failed_at=long_ago)
    with monkeypatch.context() as patch:
        fail_always(patch)
        first = before_turn(session=fresh(session), actor=support_actor, turn_id=uuid.uuid4())
    assert first.compaction.reason == "compact_failed"
    assert before_turn(session=session, actor=support_actor, turn_id=uuid.uuid4()).verdict.circuit_open
    Session.objects.filter(pk=session.pk).update(breaker_failed_at=long_ago)
    assert before_turn(session=session, actor=support_actor, turn_id=uuid.uuid4()).compaction.status == Status.COMPLETED
    assert fresh(session).breaker_failures == 0


def test_a_reset_lets_it_start_again_at_once_and_is_written_down(support_actor):
    session = inline()
    Session.objects.filter(pk=session.pk).update(
        breaker_failures=5, breaker_failed_at=database_time(), refill_warning="It makes no headway."
    )
    breakers.reset(actor=support_actor, session=session)
    assert (fresh(session).breaker_failures, session.refill_warning) == (0, "")
    event = Event.objects.get(type="breaker.reset")
    assert (event.before["failures"], event.after["failures"], event.actor_name) == (5, 0, support_actor.name)
    assert before_turn(session=session, actor=support_actor, turn_id=uuid.uuid4()).made_room
    breakers.reset(actor=support_actor, session=session)
    assert Event.objects.filter(type="breaker.reset").count() == 1


def test_a_compaction_that_waits_for_the_turn_is_let_through_first(support_actor):
    session = inline()
    waiting = request(actor=support_actor, session=session, instructions="Keep the file names.").compaction
    assert waiting.status == Status.WAITING_FOR_IDLE
    decision = before_turn(session=session, actor=support_actor, turn_id=uuid.uuid4())
    assert fresh(waiting).status == Status.COMPLETED
    assert decision.verdict.reason is triggers.Reason.UNDER_TRIGGER
    assert fresh(session).status == SessionStatus.WORKING


def test_a_rejection_that_may_not_be_trimmed_ends_as_that_and_leaves_the_view(support_actor, monkeypatch):
    session = inline(model="some-model")
    set_policy(session, allow_fallback=False, summarisers=["openai:gpt-4o"], clear_results=False)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    before = view_hash(session)
    decision = before_turn(session=session, actor=support_actor, turn_id=uuid.uuid4())
    assert decision.compaction.status == Status.FAILED
    assert decision.view is None
    assert decision.compaction.summarisers_tried[0]["refused"]
    assert view_hash(session) == before
    assert fresh(session).breaker_failures == 1


def compact_after(session: Session, actor, turns: int) -> Compaction:
    """Another automatic compaction of a view that has filled up again within so many turns."""
    grow(session, turns)
    Session.objects.filter(pk=session.pk).update(signal_tokens=7_000, signal_origin=Origin.MEASURED)
    compaction = before_turn(session=fresh(session), actor=actor, turn_id=uuid.uuid4()).compaction
    assert compaction is not None
    return compaction


def test_three_compactions_within_ten_turns_warn_and_name_what_fills_the_window(support_actor):
    session = inline()
    assert not any("no headway" in warning for _ in range(2) for warning in compact_after(session, support_actor, 4).warnings)
    assert fresh(session).refill_warning == ""
    third = compact_after(session, support_actor, 4)
    assert third.status == Status.COMPLETED
    assert fresh(session).refill_warning in third.warnings
    assert "tool results" in session.refill_warning


def test_compactions_that_lie_far_enough_apart_take_the_warning_away(support_actor):
    session = inline()
    Session.objects.filter(pk=session.pk).update(refill_warning="It makes no headway.")
    for _ in range(3):
        assert compact_after(session, support_actor, 12).status == Status.COMPLETED
        assert fresh(session).refill_warning == ""
