"""The flush beside a compaction: what is kept, what never blocks, what blocks, and what switches it off."""

import pytest

from project.settings.env import Env, is_on
from sessions_app.engine.flush import FlushResult, Integrity, ObligationStatus, ReceiptMode
from sessions_app.engine.policy import Policy
from sessions_app.engine.terms import Outcome, SkipReason, Status
from sessions_app.models import Event, MemoryFact, MemoryFlush, SessionRelation
from sessions_app.services import memory, memory_beside, memory_flush
from sessions_app.services.compactions import commit as commits
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from tests.services.compaction_scenes import PATIENCE_S, history_digest, set_policy, steps_of
from tests.services.memory_scenes import Gate, compacted, facts, project, receipt_of, session_with, status_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def queued(monkeypatch) -> list[tuple[str, ...]]:
    tasks: list[tuple[str, ...]] = []
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *task: tasks.append(task))
    return tasks


def test_what_a_person_lays_down_is_kept_with_its_entries_beside_a_compaction(support_actor):
    session = session_with()
    compaction = compacted(session, support_actor)
    assert compaction.status == Status.COMPLETED
    assert facts() == {
        "Never touch the table of ledgers without a migration that can be taken back.": "constraint",
        "I prefer small commits with one thought each, please.": "preference",
        "Let's go with PostgreSQL instead of the old store, for good.": "decision",
        "The ticket for all of this is PAY-417, and it is due in May.": "identifier",
        "See https://example.com/handbook/payments for how refunds work.": "reference",
    }
    fact = MemoryFact.objects.get(kind="decision")
    assert (fact.entry_indexes, fact.session, fact.compaction, fact.author) == ([4], session, compaction, "ana")
    receipt = receipt_of(compaction)
    assert (receipt.mode, receipt.result_status, receipt.integrity_status) == (
        ReceiptMode.MECHANICAL,
        FlushResult.WRITTEN,
        Integrity.OK,
    )
    assert (receipt.candidate_count, receipt.stored_count, receipt.new_count, receipt.obligation_count) == (5, 5, 5, 3)
    assert receipt.obligation_status is ObligationStatus.OK
    assert (receipt.first_index, receipt.last_index) == (0, compaction.boundary_index - 1)
    assert receipt.content_hash == bytes(compaction.prefix_hash).hex()
    assert status_of(compaction) == "safe"


def test_every_step_says_what_is_known_of_the_flush_at_that_moment(support_actor, monkeypatch):
    gate = Gate(monkeypatch)
    session = session_with()

    compaction = request(actor=support_actor, session=session).compaction
    run_compaction(compaction.pk)
    steps = Event.objects.filter(compaction_id=compaction.pk, step__isnull=False).order_by("seq")
    told = [(event.payload["status"], event.payload["flush_receipt_status"]) for event in steps]
    assert told == [("started", "unknown"), ("observed", "pending"), ("observed", "pending"), ("completed", "pending")]
    gate.is_open.set()
    assert memory_beside.wait_for_all(PATIENCE_S)
    event = Event.objects.get(type="memory.flushed")
    assert (event.compaction_id, event.payload["flush_receipt_status"], event.payload["facts_kept"]) == (compaction.pk, "safe", 5)
    assert (event.payload["memory_safety_status"], event.payload["semantic_memory_status"]) == ("safe", "healthy")
    assert status_of(compaction) == "safe"


def test_a_repeated_flush_stores_nothing_twice(support_actor):
    within = project()
    compacted(session_with(within=within), support_actor)
    second = compacted(session_with(within=within), support_actor)
    assert MemoryFact.objects.count() == 5
    receipt = receipt_of(second)
    assert (receipt.stored_count, receipt.new_count, status_of(second)) == (5, 0, "safe")
    compacted(session_with(within=project("Other")), support_actor)
    assert MemoryFact.objects.count() == 10


def test_a_history_with_nothing_worth_keeping_says_so(support_actor):
    compaction = compacted(session_with("Please have a look at the parser and tell me more."), support_actor)
    assert (status_of(compaction), facts()) == ("noop_no_memory", {})


def test_credentials_do_not_reach_the_memory(support_actor):
    compaction = compacted(session_with("Always deploy with the key sk-ant-abcdefghijklmnopqrstuv and never without."), support_actor)
    assert list(facts()) == ["Always deploy with the key [credential removed] and never without."]
    assert status_of(compaction) == "safe"


# Nothing of a flush stops a compaction that does not wait for it.


@pytest.mark.parametrize("mode", ["protect", "best_effort"])
def test_a_flush_that_raises_does_not_keep_a_compaction_from_its_commit(support_actor, monkeypatch, mode):
    monkeypatch.setattr(memory_flush, "gather", lambda *_: 1 / 0)
    compaction = compacted(session_with(mode=mode), support_actor)
    assert (compaction.status, status_of(compaction)) == (Status.COMPLETED, "failed_retryable")
    assert receipt_of(compaction).error == "ZeroDivisionError"
    assert (MemoryFlush.objects.get().retry_at is None) is (mode == "best_effort")


def test_one_that_cannot_even_begin_does_not_either(support_actor, monkeypatch):
    monkeypatch.setattr(memory_flush, "begin", lambda *_: 1 / 0)
    compaction = compacted(session_with(), support_actor)
    assert (compaction.status, MemoryFlush.objects.count()) == (Status.COMPLETED, 0)


def test_a_receipt_that_says_error_does_not_either(support_actor, monkeypatch):
    def changed(*_):
        raise memory_flush.HistoryChanged

    monkeypatch.setattr(memory_flush, "gather", changed)
    compaction = compacted(session_with(), support_actor)
    assert (compaction.status, receipt_of(compaction).result_status) == (Status.COMPLETED, FlushResult.ARCHIVE_FAILED)


def test_a_store_that_loses_what_it_is_given_is_noticed_and_does_not_either(support_actor, monkeypatch):
    monkeypatch.setattr(memory_flush.memory, "keep", lambda candidates, origin: memory.Kept(frozenset(), 0))
    compaction = compacted(session_with(), support_actor)
    receipt = receipt_of(compaction)
    assert (compaction.status, status_of(compaction)) == (Status.COMPLETED, "degraded_forensic")
    assert (receipt.integrity_status, len(receipt.candidate_missing_ids), len(receipt.obligation_missing_ids)) == (
        Integrity.MISSING_FACTS,
        5,
        3,
    )


def test_a_slow_flush_does_not_delay_a_compaction(support_actor, monkeypatch):
    gate = Gate(monkeypatch)
    session = session_with()

    compaction = request(actor=support_actor, session=session).compaction
    run_compaction(compaction.pk)
    compaction.refresh_from_db()
    assert (compaction.status, status_of(compaction)) == (Status.COMPLETED, "pending")
    gate.is_open.set()


def test_the_service_is_given_the_background_limit_and_not_the_wait(support_actor, monkeypatch):
    limits = []
    monkeypatch.setattr(
        memory_beside, "carry_out", lambda held, offered, should_stop: limits.append(held.task.policy.flush_background_timeout_s)
    )
    compacted(session_with(flush_timeout_s=1, flush_background_timeout_s=42), support_actor)
    compacted(session_with(flush_timeout_s=1), support_actor)
    assert limits == [42, 120]


# What blocks.


def test_under_block_an_unsafe_receipt_means_no_compaction(support_actor, monkeypatch):
    monkeypatch.setattr(memory_flush.memory, "keep", lambda candidates, origin: memory.Kept(frozenset(), 0))
    session = session_with(mode="block")
    before = history_digest(session)
    compaction = compacted(session, support_actor)
    assert (compaction.status, compaction.outcome, compaction.reason) == (
        Status.SKIPPED,
        Outcome.SKIPPED,
        SkipReason.UNSAFE_FLUSH_RECEIPT,
    )
    assert "Nothing was changed. Repair the flush" in compaction.explanation
    assert history_digest(session) == before
    assert (compaction.summary, status_of(compaction)) == ("", "degraded_forensic")
    assert [status for _, _, status in steps_of(compaction)] == ["started", "skipped"]
    last = Event.objects.filter(compaction_id=compaction.pk, step=2).get()
    assert (last.payload["user_visible"], last.payload["flush_receipt_status"]) == (True, "degraded_forensic")


def test_under_block_a_flush_that_breaks_while_it_is_waited_for_means_the_same(support_actor, monkeypatch):
    session = session_with(mode="block")
    monkeypatch.setattr(memory_beside.FlushBeside, "_wait", lambda *_: 1 / 0)
    compaction = compacted(session, support_actor)
    assert (compaction.status, compaction.reason) == (Status.SKIPPED, SkipReason.UNSAFE_FLUSH_RECEIPT)


def test_under_block_a_receipt_that_does_not_come_in_time_means_the_same(support_actor, monkeypatch):
    gate = Gate(monkeypatch)
    session = session_with(mode="block", flush_timeout_s=0)

    compaction = request(actor=support_actor, session=session).compaction
    run_compaction(compaction.pk)
    compaction.refresh_from_db()
    assert (compaction.reason, status_of(compaction)) == (SkipReason.UNSAFE_FLUSH_RECEIPT, "pending")
    gate.is_open.set()  # it goes on all the same
    assert memory_beside.wait_for_all(PATIENCE_S)
    assert status_of(compaction) == "safe"
    again = compacted(session, support_actor)  # and then nothing is in the way any more
    assert again.status == Status.COMPLETED


def test_under_block_a_safe_receipt_lets_the_compaction_go_on_without_any_model(support_actor):
    compaction = compacted(session_with(mode="block"), support_actor)
    assert (compaction.status, status_of(compaction)) == (Status.COMPLETED, "safe")
    told = Event.objects.get(compaction_id=compaction.pk, type="compaction.persisted")
    assert told.payload["flush_receipt_status"] == "safe"


def test_under_block_nothing_worth_keeping_is_no_obstacle(support_actor):
    compaction = compacted(session_with("Please have a look at the parser and tell me more.", mode="block"), support_actor)
    assert (compaction.status, status_of(compaction)) == (Status.COMPLETED, "noop_no_memory")


def test_under_block_a_session_of_no_project_is_held_by_its_history_alone(support_actor):
    session = session_with(mode="block")
    session.project = None
    session.save()
    compaction = compacted(session, support_actor)
    assert (compaction.status, status_of(compaction), MemoryFact.objects.count()) == (Status.COMPLETED, "archive_only", 0)


# What switches it off, and what needs none.


@pytest.mark.parametrize("mode", ["protect", "block"])
@pytest.mark.parametrize("written", ["0", "false", "no", "off", " OFF "])
def test_the_switch_of_the_environment_turns_every_flush_off(support_actor, settings, mode, written):
    settings.SESSION_FLUSH = _flush_setting(Env({"PALIMPSEST_SESSION_FLUSH": written}))
    compaction = compacted(session_with(mode=mode), support_actor)
    assert (compaction.status, MemoryFlush.objects.count(), MemoryFact.objects.count()) == (Status.COMPLETED, 0, 0)


def test_anything_else_leaves_it_to_the_policies():
    assert all(_flush_setting(Env({"PALIMPSEST_SESSION_FLUSH": written})) for written in ("", "1", "yes", "on"))
    assert _flush_setting(Env({}))


def _flush_setting(env: Env) -> bool:
    return is_on(env.text("SESSION_FLUSH"))


def test_switched_off_by_policy_nothing_is_kept_and_nothing_stands_in_the_way(support_actor):
    compaction = compacted(session_with(mode="off"), support_actor)
    assert (compaction.status, MemoryFlush.objects.count()) == (Status.COMPLETED, 0)
    told = Event.objects.get(compaction_id=compaction.pk, type="compaction.persisted")
    assert told.payload["flush_receipt_status"] == "not_required"


def test_by_default_it_is_off():
    policy = Policy()
    assert (policy.flush_mode, policy.flush_timeout_s, policy.flush_background_timeout_s) == ("off", 15, 120)


def test_an_attempt_with_nothing_to_fold_flushes_nothing(support_actor, monkeypatch):
    gate = Gate(monkeypatch)
    session = session_with()
    set_policy(session, keep_recent_fraction=0.9, target_fraction=0.95, protected_recent_messages=900)
    compaction = compacted(session, support_actor)
    assert (compaction.status, gate.calls, MemoryFlush.objects.count()) == (Status.SKIPPED, 0, 0)


def test_an_attempt_that_fails_afterwards_has_flushed_all_the_same(support_actor, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("broken")

    monkeypatch.setattr(commits, "_append_divider", broken)
    compaction = compacted(session_with(), support_actor)
    assert (compaction.status, status_of(compaction), len(facts())) == (Status.FAILED, "safe", 5)


def test_what_an_agent_tells_its_sub_agent_is_nobodys_rule(support_actor):
    session = session_with()
    session.relation = SessionRelation.SUB_AGENT
    session.save()
    compaction = compacted(session, support_actor)
    assert (compaction.status, MemoryFlush.objects.count(), facts()) == (Status.COMPLETED, 0, {})
