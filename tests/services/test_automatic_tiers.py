"""A router moves a session up to the highest tier of models: the table of what follows, row by row, and the events that tell it."""

import uuid

import pytest

from sessions_app.engine.breaker import OPENS_AT
from sessions_app.engine.terms import Status, Trigger
from sessions_app.engine.triggers import Reason, Route, TierResult
from sessions_app.models import Compaction, Event, Lease, Session, SessionKind, SessionRelation, SessionStatus
from sessions_app.services.compactions import run
from sessions_app.services.compactions.automatic import route
from sessions_app.services.compactions.lease import claim, database_time
from sessions_app.services.compactions.request import request, start_waiting
from tests.services.compaction_scenes import fresh, grow, history_digest, long_session, set_policy, steps_of, view_hash

pytestmark = pytest.mark.django_db(transaction=True)
UP = Route(routed_tier="c3", previous_tier="c2")


@pytest.fixture(autouse=True)
def queued(monkeypatch):
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *task: None)


@pytest.fixture
def session() -> Session:
    """In the middle of a turn, with some 11,000 tokens: more than the 8,000 of its window."""
    return long_session(40, kind=SessionKind.INLINE, status=SessionStatus.WORKING)


def routed(session, actor, report=UP, **options):
    return route(session=session, actor=actor, turn_id=uuid.uuid4(), report=report, **options)


@pytest.mark.parametrize("names", [("c3", "c2"), ("c3", "c1"), ("c3", "c0"), ("t3", "t2"), ("t3", "t0")])
def test_an_upgrade_from_any_lower_tier_compacts_once(support_actor, session, names):
    decision = routed(session, support_actor, Route(routed_tier=names[0], previous_tier=names[1]))
    assert (decision.result, decision.compaction.status) == (TierResult.HANDLED, Status.COMPLETED)
    assert decision.compaction.trigger == Trigger.TIER_UPGRADE
    assert Compaction.objects.count() == 1


def test_an_unknown_previous_tier_is_taken_from_what_the_router_started_with(support_actor, session):
    report = Route(routed_tier="c3", base_tier="c1", final_tier="c3")
    assert routed(session, support_actor, report).compaction.status == Status.COMPLETED


@pytest.mark.parametrize(
    "report",
    [
        Route(routed_tier="c3", previous_tier="c3"),
        Route(routed_tier="c1", previous_tier="c0"),
        Route(routed_tier="c3", previous_tier="c2", routing_applied=False),
        Route(routed_tier="c3", base_tier="c1", final_tier="c2"),
        Route(routed_tier="gold", previous_tier="c2"),
    ],
)
def test_what_is_no_upgrade_does_nothing_at_all(support_actor, session, report):
    events = Event.objects.count()
    assert routed(session, support_actor, report).result is TierResult.NOT_APPLICABLE
    assert (Compaction.objects.count(), Event.objects.count(), fresh(session).evaluation) == (0, events, {})


def test_switched_off_or_in_a_sub_agent_it_does_not_apply(support_actor, session):
    Session.objects.filter(pk=session.pk).update(relation=SessionRelation.SUB_AGENT)
    assert routed(session, support_actor).result is TierResult.NOT_APPLICABLE
    Session.objects.filter(pk=session.pk).update(relation="")
    set_policy(session, tier_upgrade_enabled=False)
    assert routed(session, support_actor).result is TierResult.NOT_APPLICABLE


def test_history_within_the_budget_with_its_margin_is_handled_without_work(support_actor, session):
    decision = routed(session, support_actor, history_tokens=100_000)
    assert (decision.result, decision.verdict.reason) == (TierResult.HANDLED, Reason.WITHIN_BUDGET)
    assert not Compaction.objects.exists()


def test_the_margin_alone_makes_it_due(support_actor, session):
    """The history fits, but not 1.2 times of it; calls and results count in full."""
    tokens = session.signal_tokens
    assert routed(session, support_actor, history_tokens=int(tokens * 1.25)).verdict.reason is Reason.WITHIN_BUDGET
    assert routed(session, support_actor, history_tokens=int(tokens * 1.1)).verdict.fires


def test_a_request_that_leaves_no_room_for_history_is_handled(support_actor, session):
    assert routed(session, support_actor, history_tokens=0).verdict.reason is Reason.NO_CAPACITY
    assert not Compaction.objects.exists()


def test_an_active_request_that_alone_is_too_large_is_handled_without_work(support_actor, session):
    grow(session, 1)
    decision = routed(session, support_actor, history_tokens=20)
    assert (decision.result, decision.verdict.reason) == (TierResult.HANDLED, Reason.REQUEST_TOO_LARGE)
    assert not Compaction.objects.exists()


def test_an_active_request_that_is_nowhere_protects_everything(support_actor, session):
    decision = routed(session, support_actor, active_index=10**6)
    assert decision.verdict.reason is Reason.ALL_PROTECTED or decision.verdict.reason is Reason.WITHIN_BUDGET
    assert not Compaction.objects.exists()


def test_the_active_request_and_what_came_after_it_stay_word_for_word(support_actor, session):
    """Also a second message that was queued behind it."""
    active = session.entry_count - 8
    decision = routed(session, support_actor, active_index=active)
    assert decision.compaction.status == Status.COMPLETED
    assert decision.compaction.boundary_index <= active
    assert decision.compaction.policy["values"]["protected_recent_messages"] >= 6
    assert decision.compaction.policy["sources"]["protected_recent_messages"] == "turn"


def test_a_profile_of_the_policy_goes_along_without_any_model(support_actor, session):
    set_policy(session, profile="coding", protected_recent_messages=5)
    policy = routed(session, support_actor).compaction.policy["values"]
    assert (policy["profile"], policy["protected_recent_messages"], policy["summarisers"]) == ("coding", 5, ["extractive"])


def test_a_turn_is_compacted_once(support_actor, session):
    turn = uuid.uuid4()
    assert route(session=session, actor=support_actor, turn_id=turn, report=UP).verdict.fires
    grow(session, 40)
    again = route(session=session, actor=support_actor, turn_id=turn, report=UP)
    assert (again.result, again.verdict.reason) == (TierResult.HANDLED, Reason.ALREADY_ATTEMPTED)


def test_its_events_tell_what_was_done_in_their_order(support_actor, session):
    attempt = routed(session, support_actor).compaction
    events = [event.payload for event in Event.objects.filter(compaction_id=attempt.pk, step__isnull=False).order_by("step")]
    assert [told["status"] for told in events] == ["started", "observed", "observed", "completed"]
    steps = ["compaction.triggered", "compaction.chunk_summarized", "compaction.summary_verified", "compaction.persisted"]
    assert [told["event"] for told in events] == steps
    assert [told["event_chain"] for told in events] == [steps[: place + 1] for place in range(4)]
    assert [(told["applied"], told["durability"]) for told in events] == [(False, "none")] * 3 + [(True, "durable")]
    assert all(told["user_visible"] and told["source"] == "automatic" for told in events)
    last = events[-1]
    assert (last["removed_count"], last["kept_count"]) == (attempt.entries_folded, attempt.entries_kept)
    assert last["tokens_after"] < last["tokens_before"]
    assert last["remaining_budget_tokens"] == session.trigger_tokens - last["tokens_after"]


def test_a_lost_race_is_handled_hidden_and_changes_nothing(support_actor, session, monkeypatch):
    before = view_hash(session)
    from sessions_app.services.compactions.endings import STALE

    monkeypatch.setattr(run, "commit", lambda *args, **kwargs: STALE)
    decision = routed(session, support_actor)
    assert (decision.result, decision.compaction.status, decision.view) == (TierResult.HANDLED, Status.STALE, None)
    told = Event.objects.filter(compaction_id=decision.compaction.pk, step__isnull=False).order_by("step").last().payload
    assert (told["user_visible"], told["applied"], told["durability"]) == (False, False, "none")
    assert view_hash(session) == before
    assert fresh(session).breaker_failures == 0


def test_what_breaks_is_told_as_failed_and_the_request_is_served_all_the_same(support_actor, session, monkeypatch):
    history = history_digest(session)

    def breaks(*args, **kwargs):
        raise RuntimeError("a fault of the test")

    monkeypatch.setattr(run, "engine_run", breaks)
    decision = routed(session, support_actor)
    assert decision.result is TierResult.COMPACT_FAILED
    assert decision.view is not None
    assert [status for _, _, status in steps_of(decision.compaction)] == ["started", "emergency_ephemeral"]
    assert "trimmed view" in decision.compaction.explanation
    assert history_digest(session) == history
    assert fresh(session).breaker_failures == 1


def test_an_open_circuit_serves_an_emergency_view_alone(support_actor, session):
    Session.objects.filter(pk=session.pk).update(breaker_failures=OPENS_AT, breaker_failed_at=database_time())
    decision = routed(session, support_actor)
    assert decision.result is TierResult.HANDLED
    assert steps_of(decision.compaction) == [(1, "compaction.triggered", "emergency_ephemeral")]
    assert decision.compaction.reason == "durable_compaction_circuit_open"
    assert decision.view is not None
    assert fresh(session).breaker_failures == OPENS_AT


def test_a_compaction_that_waits_for_the_turn_is_let_through_and_does_not_hold_the_turn_up(support_actor, session):
    waiting = request(actor=support_actor, session=session, when_idle=True).compaction
    assert waiting.status == Status.WAITING_FOR_IDLE
    decision = routed(session, support_actor)
    assert (decision.result, decision.compaction.pk, decision.compaction.status) == (TierResult.HANDLED, waiting.pk, Status.COMPLETED)


def test_a_compaction_whose_worker_is_gone_holds_the_turn_up_no_longer_than_its_lease(support_actor, session):
    lost = request(actor=support_actor, session=session, when_idle=True).compaction
    start_waiting(lost.pk, session.pk, actor=support_actor, in_turn=True)
    assert claim(lost.pk) is not None
    Lease.objects.filter(session=session).update(expires_at=database_time())
    decision = routed(session, support_actor)
    assert (decision.compaction.pk, decision.compaction.reason) == (lost.pk, "worker_lost")
