"""One compaction from its request to its commit, through the services that pages and workers call."""

import pytest

from sessions_app.engine import view
from sessions_app.engine.terms import Lineage, Outcome, SkipReason, Status
from sessions_app.models import Compaction, Entry, Event, Lease, SessionStatus
from sessions_app.selectors import plans
from sessions_app.selectors.compact_preview import compact_preview
from sessions_app.services import signals
from sessions_app.services.compactions.request import InvalidRequest, SessionBusy, request
from sessions_app.services.compactions.run import run_compaction
from tests.engine.histories import Story
from tests.services.compaction_scenes import fresh, history_digest, long_session, steps_of
from tests.stored import store_session

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def queued(monkeypatch):
    """Nobody takes the queue here: the tests run attempts themselves."""
    tasks = []
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda name, *arguments: tasks.append((name, *arguments)))
    return tasks


def compacted(actor, session, **options) -> Compaction:
    compaction = request(actor=actor, session=session, **options).compaction
    run_compaction(compaction.pk)
    return fresh(compaction)


def test_a_compaction_ends_as_a_checkpoint_whose_view_is_smaller_and_legal(support_actor):
    session = long_session()
    before = plans.load_view(session)
    compaction = compacted(support_actor, session)
    assert (compaction.status, compaction.outcome, compaction.generation) == (Status.COMPLETED, Outcome.COMMITTED, 1)
    after = plans.load_view(fresh(session))
    assert sum(message.tokens for message in after) < sum(message.tokens for message in before)
    assert view.problems(after) == []
    assert session.active_console == compaction
    assert 0 < (compaction.tokens_after or 0) < (compaction.tokens_before or 0)
    assert compaction.lineage == Lineage.CONSOLE


def test_the_history_keeps_every_entry_and_gains_one_divider(support_actor):
    """Invariant 1."""
    session = long_session()
    before = history_digest(session)
    compaction = compacted(support_actor, session)
    after = history_digest(session)
    assert after[: len(before)] == before
    assert len(after) == len(before) + 1
    divider = Entry.objects.get(session=session, index=len(before))
    assert (divider.role, divider.kind, compaction.divider_index) == ("notice", "compacted", len(before))
    assert fresh(session).entry_count == len(before) + 1
    assert bytes(session.head_hash) == bytes(divider.prefix_hash)


def test_the_steps_are_numbered_from_one_and_the_last_says_what_was_reached(support_actor):
    session = long_session()
    compaction = compacted(support_actor, session)
    steps = steps_of(compaction)
    assert [step for step, _, _ in steps] == list(range(1, len(steps) + 1))
    assert [kind for _, kind, _ in steps] == [
        "compaction.triggered",
        "compaction.chunk_summarized",
        "compaction.summary_verified",
        "compaction.persisted",
    ]
    last = Event.objects.get(compaction_id=compaction.pk, type="compaction.persisted")
    assert last.payload["event_chain"] == [kind for _, kind, _ in steps]
    assert last.payload["applied"] is True
    assert last.payload["durability"] == "durable"
    assert last.payload["tokens_after"] == compaction.tokens_after


def test_a_finished_compaction_gives_the_session_and_its_lease_back(support_actor):
    session = long_session(status=SessionStatus.STALE)
    compaction = request(actor=support_actor, session=session).compaction
    assert (fresh(session).status, session.running) == (SessionStatus.COMPACTING, compaction)
    run_compaction(compaction.pk)
    assert (fresh(session).status, session.running) == (SessionStatus.STALE, None)
    assert Lease.objects.get(session=session).token is None


def test_an_empty_session_is_skipped_with_its_reason_in_words(support_actor):
    compaction = compacted(support_actor, store_session())
    assert (compaction.status, compaction.outcome, compaction.reason) == (Status.SKIPPED, Outcome.SKIPPED, SkipReason.EMPTY_SESSION)
    assert compaction.explanation
    assert compaction.generation is None


def test_a_session_with_nothing_to_fold_is_skipped_and_stays_as_it_was(support_actor):
    session = long_session(turns=2)
    before = history_digest(session)
    compaction = compacted(support_actor, session)
    assert compaction.status == Status.SKIPPED
    assert history_digest(session) == before
    assert fresh(session).active_console is None
    assert steps_of(compaction)[-1][1:] == ("compaction.triggered", "skipped")


def test_a_second_request_joins_the_first_and_is_told_so(support_actor, operator_actor, queued):
    """Invariant 7."""
    session = long_session()
    first = request(actor=support_actor, session=session)
    second = request(actor=operator_actor, session=session)
    assert (first.joined, second.joined) == (False, True)
    assert second.compaction.pk == first.compaction.pk
    assert Compaction.objects.filter(session=session).count() == 1
    assert len(queued) == 1
    assert Event.objects.get(type="compaction.joined").actor_name == operator_actor.name


def test_a_task_that_is_delivered_twice_does_nothing_the_second_time(support_actor):
    session = long_session()
    compaction = compacted(support_actor, session)
    before = steps_of(compaction)
    run_compaction(compaction.pk)
    assert steps_of(compaction) == before
    assert fresh(session).last_generation == 1


def test_the_policy_of_the_attempt_is_kept_with_the_source_of_each_value(support_actor):
    session = long_session()
    compaction = compacted(support_actor, session, profile="coding", instructions="  Keep the file names.  ")
    assert compaction.policy["values"]["profile"] == "coding"
    assert set(compaction.policy["sources"]) == set(compaction.policy["values"])
    assert compaction.instructions == "Keep the file names."


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"instructions": "x" * 2_001}, "instructions"),
        ({"profile": "poetry"}, "profile"),
        ({"boundary": 0}, "boundary"),
        ({"boundary": 10_000}, "boundary"),
        ({"boundary": 2}, "boundary"),  # between a call and its result
    ],
)
def test_an_option_that_cannot_be_met_is_refused_and_nothing_is_started(support_actor, options, field):
    session = long_session()
    with pytest.raises(InvalidRequest) as refusal:
        request(actor=support_actor, session=session, **options)
    assert refusal.value.field == field
    assert not Compaction.objects.exists()
    assert fresh(session).status == SessionStatus.IDLE


def test_a_boundary_that_was_asked_for_is_the_one_that_is_used(support_actor):
    session = long_session()
    compaction = compacted(support_actor, session, boundary=16)
    assert compaction.status == Status.COMPLETED, compaction.explanation
    assert compaction.boundary_index == 16


@pytest.mark.parametrize("back", [0, 4])
def test_a_boundary_in_what_is_folded_already_is_refused_at_once(support_actor, back):
    session = long_session()
    compaction = compacted(support_actor, session, boundary=16)
    with pytest.raises(InvalidRequest, match=r"before entry 16 is folded already \(#1\)\. .* from 17 to .* Nothing was started"):
        request(actor=support_actor, session=fresh(session), boundary=16 - back)
    assert list(Compaction.objects.all()) == [compaction]


def test_a_busy_session_is_waited_for_or_refused_as_the_caller_wants(support_actor, queued):
    session = long_session(status=SessionStatus.WORKING)
    with pytest.raises(SessionBusy):
        request(actor=support_actor, session=session, when_idle=False)
    compaction = request(actor=support_actor, session=session).compaction
    assert compaction.status == Status.WAITING_FOR_IDLE
    assert compaction.deadline_at is not None
    assert fresh(session).status == SessionStatus.WORKING
    assert queued == []


def test_two_sessions_are_compacted_side_by_side(support_actor):
    one, other = long_session(), long_session()
    first = request(actor=support_actor, session=one).compaction
    second = compacted(support_actor, other)
    run_compaction(first.pk)
    assert (fresh(first).status, second.status) == (Status.COMPLETED, Status.COMPLETED)


def test_a_failure_inside_the_attempt_ends_it_as_failed_and_changes_nothing(support_actor, monkeypatch):
    session = long_session()
    before = history_digest(session)
    monkeypatch.setattr("sessions_app.selectors.plans.load_chain", lambda *_: 1 / 0)
    compaction = compacted(support_actor, session)
    assert (compaction.status, compaction.outcome, compaction.reason) == (Status.FAILED, Outcome.FAILED, "ZeroDivisionError")
    assert "Nothing was changed" in compaction.explanation
    assert history_digest(session) == before
    assert fresh(session).running is None


def test_large_results_make_no_more_chunks_than_is_sent_of_them_as_the_preview_says(support_actor):
    told = Story()
    for turn in range(14):
        told.user(f"Read log {turn}.").calls(f"c{turn}").result(f"c{turn}", words=f"line {turn} of the log\n" * 8_000).says(
            f"Log {turn} is fine."
        )
    session = store_session(told.entries, window_override=2_000_000)
    signals.refresh(session.pk)
    preview = compact_preview(fresh(session))
    compaction = compacted(support_actor, session)
    assert compaction.status == Status.COMPLETED, compaction.explanation
    assert preview.folded_tokens > 400_000
    assert (compaction.chunk_count, preview.chunk_count) == (1, 1)
