"""Flushes that end early, late, twice or never: the receipt that a compaction shows is never left wrong."""

import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from sessions_app import queue
from sessions_app.engine.steps import Stop
from sessions_app.engine.terms import SkipReason, Status
from sessions_app.events.types import EventType
from sessions_app.models import Compaction, Event, MemoryFact, MemoryFlush, Session
from sessions_app.services import memory, memory_beside, memory_flush, sweeper
from sessions_app.services.compactions import run
from sessions_app.services.compactions.cancel import cancel
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.compactions.step_events import append_step
from sessions_app.services.overrides import exclude
from tests.services.compaction_scenes import PATIENCE_S, fresh, grow, run_in_thread, set_policy, wait_until
from tests.services.memory_scenes import Gate, compacted, facts, project, receipt_of, session_with, status_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def queued(monkeypatch) -> list[tuple[str, ...]]:
    tasks: list[tuple[str, ...]] = []
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *task: tasks.append(task))
    return tasks


def begun(session, actor):
    """An attempt that ran to its end, whatever its flush does."""
    compaction = request(actor=actor, session=fresh(session)).compaction
    run_compaction(compaction.pk)
    return fresh(compaction)


def kill(monkeypatch) -> None:
    """Every flush is lost with its process as soon as it has begun."""
    monkeypatch.setattr(memory_beside, "start", lambda thread: None)


def lapse() -> None:
    MemoryFlush.objects.filter(status="pending").update(expires_at=Now() - timedelta(seconds=1))


def test_a_receipt_that_comes_before_the_commit_is_told_by_the_commit(support_actor, monkeypatch):
    commit = run.commit

    def late(*arguments):
        assert memory_beside.wait_for_all(PATIENCE_S)  # what the attempt knows was handed over by now
        return commit(*arguments)

    monkeypatch.setattr(run, "commit", late)
    compaction = begun(session_with(), support_actor)
    told = Event.objects.get(compaction_id=compaction.pk, type="compaction.persisted")
    assert (told.payload["flush_receipt_status"], status_of(compaction)) == ("safe", "safe")


def test_one_that_comes_after_the_commit_is_told_by_itself(support_actor, monkeypatch):
    gate = Gate(monkeypatch)
    compaction = begun(session_with(), support_actor)
    assert (compaction.status, status_of(compaction)) == (Status.COMPLETED, "pending")
    gate.is_open.set()
    assert memory_beside.wait_for_all(PATIENCE_S)
    assert status_of(compaction) == "safe"
    persisted, flushed = Event.objects.filter(compaction_id=compaction.pk, type__in=("compaction.persisted", "memory.flushed")).order_by(
        "seq"
    )
    assert (persisted.payload["flush_receipt_status"], flushed.payload["flush_receipt_status"]) == ("pending", "safe")


def test_whoever_ends_it_second_changes_nothing(support_actor, monkeypatch):
    gate = Gate(monkeypatch)
    compaction = begun(session_with(), support_actor)
    lapse()
    assert memory_flush.end_lost() == 1
    assert memory_flush.end_lost() == 0
    gate.is_open.set()  # the worker was not dead, only slow
    assert memory_beside.wait_for_all(PATIENCE_S)
    assert (status_of(compaction), facts()) == ("failed_retryable", {})
    assert Event.objects.filter(type__startswith="memory.").count() == 1


def test_a_killed_flush_is_found_by_the_sweep_and_repaired(support_actor, monkeypatch, queued):
    with monkeypatch.context() as patch:
        kill(patch)
        compaction = begun(session_with(), support_actor)
    assert (compaction.status, status_of(compaction)) == (Status.COMPLETED, "pending")
    assert sweeper.sweep().flushes_lost == 0  # its time is not over
    lapse()
    report = sweeper.sweep()
    assert (report.flushes_lost, status_of(compaction)) == (1, "failed_retryable")
    assert receipt_of(compaction).error == memory_flush.LOST
    MemoryFlush.objects.update(retry_at=Now())
    assert sweeper.sweep().repairs_queued == 1
    assert (queue.REPAIR_MEMORY, str(compaction.pk)) in queued
    assert sweeper.sweep().repairs_queued == 0  # a while goes by before it is queued again
    memory_flush.repair(compaction.pk)
    assert (status_of(compaction), len(facts())) == ("repaired", 5)
    assert memory_flush.repair(compaction.pk) is None
    assert sweeper.sweep().repairs_queued == 0


@pytest.mark.parametrize("policy", [{}, {"values": {"flush_mode": "as before"}}], ids=["none", "of another version"])
def test_a_killed_flush_whose_policy_nobody_can_read_any_more_holds_up_no_other_one(support_actor, monkeypatch, policy):
    with monkeypatch.context() as patch:
        kill(patch)
        odd, plain = (begun(session_with(), support_actor) for _ in range(2))
    Compaction.objects.filter(pk=odd.pk).update(policy=policy)
    lapse()
    assert sweeper.sweep().flushes_lost == 2
    assert (status_of(odd), status_of(plain)) == ("failed_retryable", "failed_retryable")
    memory_flush.repair(odd.pk)
    assert status_of(odd) == "repaired"


def test_a_process_that_ends_gives_up_what_it_can_not_finish(support_actor, monkeypatch):
    gate = Gate(monkeypatch)
    monkeypatch.setattr(memory_beside, "LAST_S", 0.05)
    compaction = begun(session_with(), support_actor)
    memory_beside.end_with_process()
    assert sweeper.sweep().flushes_lost == 1
    gate.is_open.set()
    assert memory_beside.wait_for_all(PATIENCE_S)
    assert status_of(compaction) == "failed_retryable"


def test_a_repair_that_fails_is_tried_at_growing_distances_and_not_for_ever(support_actor, monkeypatch):
    monkeypatch.setattr(memory_flush, "gather", lambda *_: 1 / 0)
    compaction = compacted(session_with(), support_actor)
    waits = []
    while (flush := MemoryFlush.objects.get(pk=compaction.pk)).retry_at is not None:
        waits.append(round((flush.retry_at - flush.finished_at).total_seconds()))
        memory_flush.repair(compaction.pk)
    assert waits == [60, 120, 240, 480]
    assert (flush.status, flush.tries) == ("failed_retryable", memory_flush.MOST_TRIES)


def test_what_best_effort_did_not_keep_is_not_tried_again_by_itself_but_by_a_person(support_actor, monkeypatch):
    with monkeypatch.context() as patch:
        kill(patch)
        compaction = begun(session_with(mode="best_effort"), support_actor)
    lapse()
    sweeper.sweep()
    MemoryFlush.objects.filter(retry_at__isnull=False).update(retry_at=Now())
    assert (sweeper.sweep().repairs_queued, status_of(compaction)) == (0, "failed_retryable")
    memory_flush.repair_now(actor=support_actor, compaction_id=compaction.pk)
    assert status_of(compaction) == "repaired"


def test_switched_off_nothing_is_repaired(support_actor, monkeypatch, settings):
    monkeypatch.setattr(memory_flush, "gather", lambda *_: 1 / 0)
    compacted(session_with(), support_actor)
    MemoryFlush.objects.update(retry_at=Now())
    settings.SESSION_FLUSH = False
    assert sweeper.sweep().repairs_queued == 0


def test_of_two_flushes_of_a_session_the_second_is_not_begun_and_made_up_for_later(support_actor, monkeypatch):
    gate = Gate(monkeypatch)
    session = session_with()
    first = begun(session, support_actor)
    grow(session, 12)
    second = begun(session, support_actor)
    wait_until(lambda: gate.calls > 0)
    assert (second.status, gate.calls) == (Status.COMPLETED, 1)
    assert (status_of(first), status_of(second)) == ("pending", "failed_retryable")
    assert receipt_of(second).error == memory_flush.BUSY
    assert memory_flush.repair(second.pk) is None  # the first is still at it
    gate.is_open.set()
    assert memory_beside.wait_for_all(PATIENCE_S)
    memory_flush.repair(second.pk)
    assert (status_of(first), status_of(second)) == ("safe", "repaired")


def test_under_block_the_second_waits_for_the_first(support_actor, monkeypatch):
    gate = Gate(monkeypatch)
    session = session_with()
    first = begun(session, support_actor)
    set_policy(session, flush_mode="block")
    grow(session, 12)
    second = request(actor=support_actor, session=fresh(session)).compaction
    begun_with, begin = [], memory_flush.begin

    def noted(task):
        begun_with.append(begin(task))
        return begun_with[-1]

    monkeypatch.setattr(memory_flush, "begin", noted)
    worker = run_in_thread(second.pk)
    wait_until(lambda: None in begun_with)  # it found the first one under way
    assert fresh(second).status == Status.RUNNING
    gate.is_open.set()
    worker.join(PATIENCE_S)
    assert (fresh(second).status, status_of(first)) == (Status.COMPLETED, "safe")
    assert status_of(second) == "noop_no_memory"  # it looked at what the first one had not covered
    assert receipt_of(second).first_index == first.boundary_index
    assert len(facts()) == 5


@pytest.mark.parametrize("mode", ["protect", "block"])
def test_one_that_was_planned_while_another_ended_looks_only_at_what_that_left(support_actor, monkeypatch, mode):
    gate = Gate(monkeypatch)
    session = session_with()
    first = begun(session, support_actor)
    set_policy(session, flush_mode=mode)
    grow(session, 12)
    begin = memory_flush.begin

    def late(task):
        gate.is_open.set()
        wait_until(lambda: status_of(first) == "safe")  # between the plan of the second one and its beginning
        assert task.first == 0
        monkeypatch.setattr(memory_flush, "begin", begin)
        return begin(task)

    monkeypatch.setattr(memory_flush, "begin", late)
    second = begun(session, support_actor)
    assert memory_beside.wait_for_all(PATIENCE_S)
    assert (second.status, status_of(second)) == (Status.COMPLETED, "noop_no_memory")
    assert receipt_of(second).first_index == MemoryFlush.objects.get(pk=second.pk).first_index == first.boundary_index


def test_one_all_of_which_another_covered_meanwhile_is_not_begun(support_actor, monkeypatch):
    first = compacted(session_with(), support_actor)
    flush = MemoryFlush.objects.get(pk=first.pk)
    covered = memory_flush._task(flush)
    flush.delete()
    MemoryFlush.objects.create(
        compaction_id=request(actor=support_actor, session=fresh(first.session)).compaction.pk,
        session=first.session,
        mode="protect",
        status="safe",
        first_index=0,
        last_index=covered.last,
        started_at=Now(),
    )
    assert memory_flush.begin(covered) is None
    assert MemoryFlush.objects.count() == 1


def test_only_what_no_safe_flush_covers_is_flushed_again(support_actor):
    session = session_with()
    first = compacted(session, support_actor)
    grow(session, 12)
    second = compacted(session, support_actor)
    assert receipt_of(second).first_index == first.boundary_index
    assert receipt_of(second).last_index == second.boundary_index - 1


def test_a_cancel_while_block_waits_ends_both_and_changes_nothing(support_actor, monkeypatch):
    Gate(monkeypatch)
    compaction = request(actor=support_actor, session=session_with(mode="block")).compaction
    worker = run_in_thread(compaction.pk)
    wait_until(lambda: MemoryFlush.objects.filter(pk=compaction.pk).exists())
    cancel(actor=support_actor, session=compaction.session, compaction_id=compaction.pk)
    worker.join(PATIENCE_S)
    assert memory_beside.wait_for_all(PATIENCE_S)
    assert (fresh(compaction).status, status_of(compaction), facts()) == (Status.CANCELLED, "not_required", {})


def test_the_deadline_of_an_attempt_holds_while_block_waits(support_actor, monkeypatch):
    gate = Gate(monkeypatch)
    session = session_with(mode="block", flush_timeout_s=300, flush_background_timeout_s=900)
    compaction = request(actor=support_actor, session=session).compaction
    worker = run_in_thread(compaction.pk)
    wait_until(lambda: MemoryFlush.objects.filter(pk=compaction.pk).exists())
    type(compaction).objects.filter(pk=compaction.pk).update(deadline_at=Now())
    worker.join(PATIENCE_S)
    assert fresh(compaction).status == Status.TIMED_OUT
    gate.is_open.set()


def test_a_cancelled_attempt_calls_its_flush_off(support_actor, monkeypatch, summaries):
    Gate(monkeypatch)
    session = session_with(summarisers=["scripted"])
    compaction = request(actor=support_actor, session=session).compaction
    worker = run_in_thread(compaction.pk)
    wait_until(lambda: MemoryFlush.objects.filter(pk=compaction.pk).exists())
    cancel(actor=support_actor, session=compaction.session, compaction_id=compaction.pk)
    worker.join(PATIENCE_S)
    assert memory_beside.wait_for_all(PATIENCE_S)
    assert (fresh(compaction).status, status_of(compaction)) == (Status.CANCELLED, "not_required")


def test_a_flush_that_runs_out_of_time_says_so_and_the_history_stands_for_it(support_actor, monkeypatch):
    monkeypatch.setattr(memory_beside._FlushThread, "_should_stop", lambda self: Stop.TIMED_OUT)
    compaction = compacted(session_with(mode="block"), support_actor)
    receipt = receipt_of(compaction)
    assert (receipt.archive_reason, status_of(compaction)) == ("timeout", "degraded_forensic")
    assert receipt.names_archive
    assert compaction.status == Status.COMPLETED  # the canonical history is the archive
    memory_flush.repair(compaction.pk)
    assert (status_of(compaction), len(facts())) == ("repaired", 5)


def test_entries_that_changed_under_a_flush_are_no_archive(support_actor, monkeypatch):
    monkeypatch.setattr("sessions_app.services.memory_extraction.prefix_hash_before", lambda *_: b"another")
    compaction = compacted(session_with(mode="block"), support_actor)
    assert (compaction.reason, status_of(compaction)) == (SkipReason.UNSAFE_FLUSH_RECEIPT, "failed_retryable")


@pytest.mark.parametrize("mode", ["protect", "block"])
def test_of_an_excluded_entry_nothing_is_kept_nor_by_a_repair(support_actor, monkeypatch, mode):
    session = session_with(mode=mode)
    exclude(actor=support_actor, session=session, index=0)
    compaction = compacted(session, support_actor)
    assert (status_of(compaction), len(facts())) == ("safe", 4)
    MemoryFlush.objects.update(status="degraded_forensic")
    memory_flush.repair(compaction.pk)
    assert (status_of(compaction), len(facts())) == ("repaired", 4)


def test_two_sessions_that_state_the_same_at_once_are_both_safe_and_it_is_kept_once(support_actor, monkeypatch):
    gate = Gate(monkeypatch)
    both = [begun(session_with(), support_actor) for _ in range(2)]
    gate.is_open.set()
    assert memory_beside.wait_for_all(PATIENCE_S)
    assert [status_of(one) for one in both] == ["safe", "safe"]
    assert MemoryFact.objects.count() == 5


def test_what_was_forgotten_is_not_brought_back(support_actor):
    within = project()
    compacted(session_with(within=within), support_actor)
    fact = MemoryFact.objects.get(kind="preference")
    memory.forget(actor=support_actor, fact_id=fact.pk)
    compaction = compacted(session_with(within=within), support_actor)
    assert fact.text not in facts()
    assert (len(facts()), status_of(compaction)) == (4, "safe")
    assert (fresh(fact).text, fact.entry_indexes, fact.forgotten_by) == ("", [], "ana")
    event = Event.objects.get(type="memory.forgotten")
    assert (event.target_id, event.actor_name, event.payload["kind"]) == (str(fact.pk), "ana", "preference")
    assert "small commits" not in str(event.payload)
    with pytest.raises(memory.UnknownFact):
        memory.forget(actor=support_actor, fact_id=fact.pk)


@pytest.mark.skipif(connection.vendor == "sqlite", reason="on SQLite transactions come one after the other")
def test_a_step_of_an_attempt_is_told_while_somebody_holds_its_session(support_actor):
    """Before, the two could wait for each other crosswise, and the attempt ended as failed."""
    session = session_with(mode="off", summarisers=["scripted"])
    compaction = request(actor=support_actor, session=session).compaction
    with transaction.atomic():
        Session.objects.select_for_update(no_key=True).get(pk=session.pk)

        def tell() -> None:
            try:
                with transaction.atomic():
                    Compaction.objects.filter(pk=compaction.pk).update(phase="plan")
                    append_step(compaction.pk, EventType.COMPACTION_TRIGGERED, status="observed")
            finally:
                connection.close()

        teller = threading.Thread(target=tell, daemon=True)
        teller.start()
        teller.join(PATIENCE_S)
        assert not teller.is_alive()
