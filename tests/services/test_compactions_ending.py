"""How attempts end otherwise: cancelled, too late, stale, left behind by their worker; nothing is changed then."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Thread

import pytest
from django.db import InterfaceError
from django.db.models.functions import Now

from sessions_app.engine.entries import Checkpoint, Segment
from sessions_app.engine.steps import Stop
from sessions_app.engine.terms import Lineage, Outcome, SegmentKind, SkipReason, Status
from sessions_app.events.actors import Actor
from sessions_app.models import Compaction, Entry, Event, EventResult, ImportRun, ImportState, Lease, Session, SessionStatus
from sessions_app.providers import scripted
from sessions_app.services import sweeper
from sessions_app.services.compactions import keeper, lease
from sessions_app.services.compactions.cancel import UnknownCompaction, cancel
from sessions_app.services.compactions.request import request, start_waiting
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.compactions.transitions import TRANSITIONS, move
from tests.services.compaction_scenes import (
    PATIENCE_S,
    fresh,
    grow,
    history_digest,
    long_session,
    looks_of,
    make_slow,
    run_in_thread,
    set_policy,
    steps_of,
    view_hash,
    wait_until,
)
from tests.stored import store_checkpoint

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def queued(monkeypatch):
    tasks: list[tuple[str, ...]] = []
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *task: tasks.append(task))
    return tasks


@pytest.fixture
def slow_session(summaries):
    """A session whose summaries come when they are let."""
    session = long_session()
    make_slow(session)
    return session


def wait_for_end(thread: Thread) -> None:
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def started(actor: Actor, session: Session) -> tuple[Compaction, Thread]:
    """An attempt that is in the middle of its first summary, and the thread that runs it."""
    compaction = request(actor=actor, session=session).compaction
    thread = run_in_thread(compaction.pk)
    wait_until(lambda: fresh(compaction).phase == "summarise")
    return compaction, thread


def lapse(session: Session) -> None:
    Lease.objects.filter(session=session).update(expires_at=Now() - timedelta(seconds=1))


@pytest.mark.parametrize("terminal", [status for status in Status if status.is_terminal])
def test_nothing_leads_out_of_a_terminal_status(support_actor, terminal):
    """Invariant 9."""
    compaction = request(actor=support_actor, session=long_session()).compaction
    Compaction.objects.filter(pk=compaction.pk).update(status=terminal)
    assert not any(move(compaction.pk, status) for status in Status)
    assert set(TRANSITIONS) == {status for status in Status if not status.is_terminal}


def test_cancel_in_the_middle_of_a_chunk_takes_effect_within_a_second(support_actor, slow_session, monkeypatch):
    """Invariant 13. Counted in looks: one that was under way, and the next."""
    looks = looks_of(keeper.Keeper, monkeypatch)
    before, view_before = history_digest(slow_session), view_hash(slow_session)
    compaction, thread = started(support_actor, slow_session)
    cancel(actor=support_actor, session=slow_session, compaction_id=compaction.pk)
    looks_before = len(looks)
    wait_for_end(thread)
    assert len(looks) - looks_before <= 2
    assert 2 * keeper.POLL_S + scripted.SLICE_S < 1
    assert (fresh(compaction).status, compaction.outcome) == (Status.CANCELLED, Outcome.CANCELLED)
    assert (history_digest(slow_session), view_hash(slow_session)) == (before, view_before)
    assert (fresh(slow_session).running, slow_session.status) == (None, SessionStatus.IDLE)
    assert [status for _, _, status in steps_of(compaction)].count("cancelled") == 1


def test_a_requested_and_a_waiting_attempt_are_cancelled_at_once(support_actor):
    for status in (SessionStatus.IDLE, SessionStatus.WORKING):
        session = long_session(status=status)
        compaction = request(actor=support_actor, session=session).compaction
        assert cancel(actor=support_actor, session=session, compaction_id=compaction.pk).status == Status.CANCELLED
        run_compaction(compaction.pk)
        assert fresh(compaction).status == Status.CANCELLED
        assert (fresh(session).status, session.running) == (status, None)


def test_cancelling_twice_or_too_late_changes_nothing(support_actor):
    session = long_session()
    compaction = request(actor=support_actor, session=session).compaction
    run_compaction(compaction.pk)
    events = Event.objects.count()
    assert cancel(actor=support_actor, session=session, compaction_id=compaction.pk).status == Status.COMPLETED
    assert Event.objects.count() == events


def test_a_compaction_of_another_session_cannot_be_cancelled_through_this_one(support_actor):
    one, other = long_session(), long_session()
    compaction = request(actor=support_actor, session=one).compaction
    with pytest.raises(UnknownCompaction):
        cancel(actor=support_actor, session=other, compaction_id=compaction.pk)
    assert fresh(compaction).status == Status.REQUESTED


def test_a_deadline_ends_the_attempt_at_the_first_look_behind_it_and_changes_nothing(support_actor, slow_session, monkeypatch):
    """Invariant 13."""
    looks = looks_of(keeper.Keeper, monkeypatch)
    before = history_digest(slow_session)
    set_policy(slow_session, total_timeout_s=1, call_timeout_s=1)
    compaction = request(actor=support_actor, session=slow_session).compaction
    run_compaction(compaction.pk)
    assert (fresh(compaction).status, compaction.outcome) == (Status.TIMED_OUT, Outcome.TIMED_OUT)
    assert compaction.finished_at - compaction.started_at >= timedelta(seconds=1)
    assert looks.count(Stop.TIMED_OUT) == 1
    assert history_digest(slow_session) == before


def test_an_attempt_hears_of_its_cancel_also_after_its_keeper_lost_the_connection(support_actor, slow_session, monkeypatch):
    look, failures = keeper.Keeper._look, [InterfaceError("connection already closed"), RuntimeError()]

    def failing_look(self):
        if failures:
            raise failures.pop()
        return look(self)

    monkeypatch.setattr(keeper.Keeper, "_look", failing_look)
    compaction, thread = started(support_actor, slow_session)
    wait_until(lambda: not failures)
    cancel(actor=support_actor, session=slow_session, compaction_id=compaction.pk)
    wait_for_end(thread)
    assert fresh(compaction).status == Status.CANCELLED


def test_entries_that_arrive_while_it_runs_stay_in_the_tail(support_actor, slow_session, summaries):
    """Invariant 8: an append does not make an attempt stale."""
    session = slow_session
    compaction, thread = started(support_actor, session)
    grow(session, turns=2)
    arrived = fresh(session).entry_count
    summaries.let_all()
    wait_for_end(thread)
    assert fresh(compaction).status == Status.COMPLETED, compaction.explanation
    assert compaction.divider_index == arrived
    assert list(compaction.segments.values_list("last_index", flat=True))[-1] is None
    assert fresh(session).entry_count == arrived + 1


def test_a_changed_prefix_makes_the_attempt_stale(support_actor, slow_session, summaries):
    """Invariants 5 and 8."""
    compaction, thread = started(support_actor, slow_session)
    boundary = fresh(compaction).boundary_index or 0
    Entry.objects.filter(session=slow_session, index=boundary - 1).update(prefix_hash=b"x" * 32)
    summaries.let_all()
    wait_for_end(thread)
    assert (fresh(compaction).status, compaction.reason) == (Status.STALE, SkipReason.STALE_PREIMAGE)
    assert fresh(slow_session).active_console is None


def test_a_rewind_of_what_was_folded_makes_the_attempt_stale(support_actor, slow_session, summaries):
    """The hash does not cover where the live branch runs; a summary of what was taken back must not be used all the same."""
    compaction, thread = started(support_actor, slow_session)
    boundary = fresh(compaction).boundary_index or 0
    Entry.objects.filter(session=slow_session, index__range=(boundary - 4, boundary - 1)).update(off_branch=True)
    summaries.let_all()
    wait_for_end(thread)
    assert (fresh(compaction).status, compaction.reason) == (Status.STALE, SkipReason.STALE_PREIMAGE)


def test_a_compaction_of_the_agent_itself_leaves_one_of_this_consoles_view_alone(support_actor, summaries):
    """Invariant 8: what the attempt builds on is this console's own checkpoint, and that is what it was."""
    session = long_session()
    run_compaction(request(actor=support_actor, session=session).compaction.pk)
    grow(session, turns=12)
    make_slow(session)
    compaction, thread = started(support_actor, session)
    first = Segment(kind=SegmentKind.RANGE, first=4)
    theirs = Checkpoint(generation=9, lineage=Lineage.AGENT, segments=(first,), boundary_index=4)
    now = fresh(session)
    store_checkpoint(now, theirs)
    summaries.let_all()
    wait_for_end(thread)
    assert fresh(compaction).status == Status.COMPLETED, compaction.explanation


def test_the_sweep_ends_an_attempt_whose_lease_lapsed_and_its_worker_writes_nothing_more(support_actor, slow_session, summaries):
    """Invariant 9: also a killed worker's attempt ends, exactly once."""
    compaction, thread = started(support_actor, slow_session)
    lapse(slow_session)
    assert sweeper.sweep().lost == 1
    summaries.let_all()
    wait_for_end(thread)
    assert (fresh(compaction).status, compaction.reason) == (Status.FAILED, SkipReason.WORKER_LOST)
    assert [status for _, _, status in steps_of(compaction)] == ["started", "failed"]
    assert fresh(slow_session).running is None


def test_a_session_can_be_compacted_again_after_its_worker_was_lost(support_actor):
    session = long_session()
    compaction = request(actor=support_actor, session=session).compaction
    assert lease.claim(compaction.pk) is not None
    lapse(session)
    sweeper.sweep()
    again = request(actor=support_actor, session=session)
    run_compaction(again.compaction.pk)
    assert (again.joined, fresh(again.compaction).status) == (False, Status.COMPLETED)


def test_an_attempt_whose_policy_cannot_be_read_fails_at_once_and_says_why(support_actor):
    """Not half a minute later, as if its worker had been lost."""
    session = long_session()
    compaction = request(actor=support_actor, session=session).compaction
    Compaction.objects.filter(pk=compaction.pk).update(policy={"values": {"threshold_pct": "most"}})
    run_compaction(compaction.pk)
    assert (fresh(compaction).status, compaction.reason) == (Status.FAILED, "ValidationError")
    assert fresh(session).status == SessionStatus.IDLE


def test_a_live_lease_is_left_alone_by_the_sweep(support_actor, slow_session):
    compaction, thread = started(support_actor, slow_session)
    assert replace(sweeper.sweep(), indexed=0) == sweeper.SweepReport()
    cancel(actor=support_actor, session=slow_session, compaction_id=compaction.pk)
    wait_for_end(thread)


def test_the_end_of_the_process_ends_its_attempts_as_failed(support_actor, slow_session):
    compaction, thread = started(support_actor, slow_session)
    keeper.interrupt_all(grace_s=3_600)  # of which it takes what it needs
    wait_for_end(thread)
    assert (fresh(compaction).status, compaction.reason) == (Status.FAILED, SkipReason.WORKER_LOST)


def test_an_attempt_that_is_claimed_while_its_process_ends_is_ended_with_it(support_actor, slow_session, queued):
    compaction = request(actor=support_actor, session=slow_session).compaction
    keeper.interrupt_all(grace_s=0)  # finds nothing: the attempt begins a moment later
    run_compaction(compaction.pk, must_end=lambda: True)
    assert (fresh(compaction).status, compaction.reason) == (Status.FAILED, SkipReason.WORKER_LOST)


def test_an_attempt_that_outlives_its_process_is_ended_by_the_first_sweep_of_the_next(support_actor, slow_session, monkeypatch):
    monkeypatch.setattr(keeper.Keeper, "interrupt", lambda self: None)
    compaction, thread = started(support_actor, slow_session)
    keeper.interrupt_all(grace_s=0)
    assert sweeper.sweep(at_start=True).lost == 1
    assert fresh(compaction).reason == SkipReason.WORKER_LOST
    monkeypatch.setattr(lease, "RENEW_S", 0.0)  # it hears of it with the next renewal
    wait_for_end(thread)


def test_an_unclaimed_request_is_queued_again_after_half_a_minute_or_at_the_next_start(support_actor, queued):
    compaction = request(actor=support_actor, session=long_session()).compaction
    assert (sweeper.sweep().requeued, len(queued)) == (0, 1)
    assert (sweeper.sweep(at_start=True).requeued, len(queued)) == (1, 2)
    Compaction.objects.filter(pk=compaction.pk).update(heartbeat_at=Now() - timedelta(seconds=31))
    assert (sweeper.sweep().requeued, len(queued)) == (1, 3)
    assert sweeper.sweep().requeued == 0
    assert {task[1] for task in queued} == {str(compaction.pk)}


def test_a_waiting_attempt_starts_when_its_session_is_idle(support_actor, queued):
    session = long_session(status=SessionStatus.WORKING)
    compaction = request(actor=support_actor, session=session).compaction
    assert sweeper.sweep().started == 0
    session.status = SessionStatus.IDLE
    session.save()
    assert sweeper.sweep().started == 1
    assert (fresh(compaction).status, fresh(session).status) == (Status.REQUESTED, SessionStatus.COMPACTING)
    told = Event.objects.get(type="session.status_changed")
    assert (told.compaction_id, told.before, told.after) == (compaction.pk, {"status": "idle"}, {"status": "compacting"})
    run_compaction(compaction.pk)
    assert (fresh(compaction).status, fresh(session).status) == (Status.COMPLETED, SessionStatus.IDLE)


def test_a_waiting_attempt_goes_on_waiting_when_its_session_is_busy_again(support_actor):
    """Between the look of the sweep and the start, a turn may have begun."""
    session = long_session(status=SessionStatus.WORKING)
    compaction = request(actor=support_actor, session=session).compaction
    assert not start_waiting(compaction.pk, session.pk, actor=support_actor)
    assert (fresh(compaction).status, fresh(session).status) == (Status.WAITING_FOR_IDLE, SessionStatus.WORKING)


def test_a_session_never_goes_back_to_compacting(support_actor):
    session = long_session(status=SessionStatus.COMPACTING)
    run_compaction(request(actor=support_actor, session=session).compaction.pk)
    assert fresh(session).status == SessionStatus.IDLE


def test_a_waiting_attempt_ends_when_its_session_never_becomes_idle(support_actor):
    session = long_session(status=SessionStatus.WAITING)
    compaction = request(actor=support_actor, session=session).compaction
    Compaction.objects.filter(pk=compaction.pk).update(deadline_at=Now() - timedelta(seconds=1))
    assert sweeper.sweep().expired == 1
    assert (fresh(compaction).status, compaction.reason) == (Status.TIMED_OUT, SkipReason.NEVER_IDLE)
    assert fresh(session).status == SessionStatus.WAITING


def test_a_working_session_that_wrote_nothing_for_five_minutes_is_idle(db):
    quiet = long_session(status=SessionStatus.WORKING)
    lively = long_session(status=SessionStatus.WORKING)
    quiet.last_activity_at -= timedelta(seconds=301)
    quiet.save()
    assert sweeper.sweep().idled == 1
    assert (fresh(quiet).status, fresh(lively).status) == (SessionStatus.IDLE, SessionStatus.WORKING)
    assert Event.objects.get(type="session.status_changed").after == {"status": "idle"}


def test_an_import_whose_process_is_gone_ends_as_failed_where_no_upload_is_left(tmp_path):
    run = ImportRun.objects.create(state=ImportState.RUNNING, name="a.jsonl", staged_path=str(tmp_path / "gone"))
    assert sweeper.sweep().imports_failed == 0
    ImportRun.objects.update(requested_at=Now() - timedelta(seconds=121))
    assert sweeper.sweep().imports_failed == 1
    event = Event.objects.get(type="import.finished")
    assert (event.stream, event.result, event.target_id) == ("imports", EventResult.FAILED, str(run.pk))
    assert fresh(run).state == ImportState.FAILED


def test_the_drawing_of_the_states_names_every_one_of_them():
    drawing = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text().split("## The states of an attempt")[1].split("```")[1]
    assert [status for status in Status if status not in drawing] == []
