"""Flushes beside compactions that nobody asked for: moves to the highest tier, emergencies, overflows, drafts."""

import uuid

import pytest

from sessions_app.engine.breaker import OPENS_AT
from sessions_app.engine.terms import SkipReason, Status
from sessions_app.engine.triggers import Route, TierResult
from sessions_app.models import Event, MemoryFlush, Session, SessionKind, SessionStatus
from sessions_app.services import memory, memory_beside, memory_flush, signals
from sessions_app.services.compactions import commit as commits
from sessions_app.services.compactions import drafts
from sessions_app.services.compactions.automatic import before_turn, recover_overflow, route
from sessions_app.services.compactions.lease import database_time
from tests.services.compaction_scenes import PATIENCE_S, fresh, grow, set_policy
from tests.services.memory_scenes import compacted, facts, session_with, status_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody")]
UP = Route(routed_tier="c3", previous_tier="c2")


def busy_session(**policy) -> Session:
    """In the middle of a turn, with more in its view than its window takes."""
    session = session_with(**policy)
    grow(session, 40)
    session.kind, session.status = SessionKind.INLINE, SessionStatus.WORKING
    session.save()
    signals.refresh(session.pk)
    return fresh(session)


def routed(session: Session, actor):
    decision = route(session=session, actor=actor, turn_id=uuid.uuid4(), report=UP)
    assert memory_beside.wait_for_all(PATIENCE_S)
    return decision


def test_a_move_to_the_highest_tier_flushes_once_and_compacts_once(support_actor):
    decision = routed(busy_session(), support_actor)
    assert (decision.result, decision.compaction.status) == (TierResult.HANDLED, Status.COMPLETED)
    assert (MemoryFlush.objects.count(), status_of(decision.compaction), len(facts())) == (1, "safe", 5)


def test_a_flush_that_raises_leaves_such_a_move_handled(support_actor, monkeypatch):
    monkeypatch.setattr(memory_flush, "gather", lambda *_: 1 / 0)
    decision = routed(busy_session(), support_actor)
    assert (decision.result, decision.compaction.status) == (TierResult.HANDLED, Status.COMPLETED)


def test_an_unsafe_receipt_under_block_leaves_it_handled_without_a_compaction(support_actor, monkeypatch):
    monkeypatch.setattr(memory_flush.memory, "keep", lambda candidates, origin: memory.Kept(frozenset(), 0))
    session = busy_session(mode="block")
    decision = routed(session, support_actor)
    assert (decision.result, decision.compaction.reason) == (TierResult.HANDLED, SkipReason.UNSAFE_FLUSH_RECEIPT)
    assert (MemoryFlush.objects.count(), fresh(session).breaker_failures) == (1, 1)


def test_after_three_unsafe_receipts_automatic_compaction_rests_and_no_turn_costs_another_flush(support_actor, monkeypatch):
    monkeypatch.setattr(memory_flush.memory, "keep", lambda candidates, origin: memory.Kept(frozenset(), 0))
    session = busy_session(mode="block")
    for _ in range(OPENS_AT):
        routed(session, support_actor)
    decision = routed(session, support_actor)
    assert decision.compaction.status == Status.EMERGENCY_EPHEMERAL
    assert MemoryFlush.objects.count() == OPENS_AT


def test_a_compaction_that_breaks_has_failed_and_its_flush_has_not(support_actor, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("broken")

    monkeypatch.setattr(commits, "_append_divider", broken)
    decision = routed(busy_session(), support_actor)
    assert (decision.result, status_of(decision.compaction)) == (TierResult.COMPACT_FAILED, "safe")


def test_history_within_the_budget_flushes_nothing(support_actor):
    route(session=busy_session(), actor=support_actor, turn_id=uuid.uuid4(), report=UP, history_tokens=900_000)
    assert not MemoryFlush.objects.exists()


def test_an_emergency_flushes_nothing_and_says_so(support_actor):
    session = busy_session(mode="block")
    session.breaker_failures, session.breaker_failed_at = OPENS_AT, database_time()
    session.save()
    decision = before_turn(session=fresh(session), actor=support_actor, turn_id=uuid.uuid4())
    assert decision.compaction.status == Status.EMERGENCY_EPHEMERAL
    assert not MemoryFlush.objects.exists()
    told = Event.objects.get(compaction_id=decision.compaction.pk, step__isnull=False)
    assert told.payload["flush_receipt_status"] == "emergency_ephemeral"


@pytest.mark.parametrize("mode", ["protect", "block"])
def test_an_overflow_is_flushed_without_a_model_and_room_is_made(support_actor, monkeypatch, mode):
    monkeypatch.setattr("sessions_app.services.memory_extraction.extractor_for", lambda policy: 1 / 0)
    decision = recover_overflow(session=busy_session(mode=mode), actor=support_actor, turn_id=uuid.uuid4())
    assert memory_beside.wait_for_all(PATIENCE_S)
    assert decision.made_room
    assert status_of(decision.compaction) == "safe"


def test_a_draft_is_flushed_when_it_is_made_and_tells_its_receipt_when_it_is_committed(support_actor):
    session = session_with()
    set_policy(session, review_before_commit=True)
    draft = compacted(session, support_actor)
    assert (draft.status, status_of(draft)) == (Status.DRAFTED, "safe")
    drafts.commit_draft(actor=support_actor, session=fresh(session), compaction_id=draft.pk)
    told = Event.objects.get(compaction_id=draft.pk, type="compaction.persisted")
    assert told.payload["flush_receipt_status"] == "safe"
