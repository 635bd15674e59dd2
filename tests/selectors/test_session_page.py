"""The head of a session: what the gauge says, and the four states of its button."""

from datetime import UTC, datetime, timedelta

import pytest

from sessions_app.engine.terms import Lineage, Outcome, Phase, Status, Trigger
from sessions_app.models import Compaction, SessionStatus
from sessions_app.selectors.compaction_panel import panel
from sessions_app.selectors.session_page import header
from tests.stored import store_session

pytestmark = pytest.mark.django_db

FOLDABLE = {
    "signal_tokens": 131_200,
    "signal_origin": "measured",
    "signal_scope": "whole_request",
    "window": 200_000,
    "foldable_to": 41_000,
}


def attempt(session, **columns) -> Compaction:
    now = datetime.now(UTC)
    values = {
        "attempt": 1,
        "lineage": Lineage.CONSOLE,
        "trigger": Trigger.MANUAL,
        "requested_by": "ana",
        "requested_at": now,
        "started_at": now,
    }
    compaction = Compaction.objects.create(session=session, **(values | columns))
    session.last_attempt = compaction.attempt
    if compaction.is_open:
        session.running = compaction
    session.save()
    return compaction


def test_ready_says_what_it_would_leave():
    button = header(store_session(**FOLDABLE).pk).button
    assert (button.state, button.before, button.after) == ("ready", 131_200, 41_000)


@pytest.mark.parametrize("status", [SessionStatus.WORKING, SessionStatus.WAITING])
def test_busy_says_why_and_offers_to_wait(status):
    button = header(store_session(status=status, **FOLDABLE).pk).button
    assert (button.state, button.label) == ("busy", "Compact after the turn")
    assert button.why


def test_unsupported_says_why():
    button = header(store_session(unfoldable_reason="fewer_than_three_rounds").pk).button
    assert button.state == "unsupported"
    assert "three rounds" in button.why


def test_running_shows_progress_to_everybody():
    session = store_session(**FOLDABLE)
    attempt(session, status=Status.RUNNING, phase=Phase.SUMMARISE, chunk_index=2, chunk_count=7)
    head = header(session.pk)
    assert (head.button.state, head.button.label, head.button.progress) == ("running", "Compacting, 3 of 7", 29)
    assert head.gauge.expected_after == 41_000


def test_an_attempt_that_ended_does_not_run():
    session = store_session(**FOLDABLE)
    ended = attempt(session, status=Status.RUNNING)
    Compaction.objects.filter(pk=ended.pk).update(status=Status.FAILED)
    assert header(session.pk).button.state == "ready"


def test_the_parts_of_the_gauge_never_reach_beyond_its_signal_or_the_bar():
    composition = {"system": 9_000, "results": 60_000, "calls": 10_000, "text": 40_000}
    gauge = header(store_session(composition=composition, **FOLDABLE).pk).gauge
    assert gauge.segments[-1].x + gauge.segments[-1].width <= 66
    over = header(store_session(composition=composition, **(FOLDABLE | {"window": 50_000})).pk).gauge
    assert all(segment.x + segment.width <= 100.1 for segment in over.segments)


def test_a_measured_number_less_an_estimated_one_is_drawn_but_never_told():
    gauge = header(store_session(composition={"text": 40_000}, **FOLDABLE).pk).gauge
    assert [segment.tokens for segment in gauge.segments] == [None, 40_000]


def test_after_a_boundary_the_gauge_waits_for_a_measurement():
    session = store_session(**(FOLDABLE | {"signal_origin": "estimated", "signal_scope": "view"}))
    session.active_console = attempt(session, status=Status.COMPLETED, generation=1)
    session.save()
    assert header(session.pk).gauge.awaits_measurement


def test_an_unknown_size_is_unknown_and_not_zero():
    assert header(store_session(signal_tokens=None).pk).gauge.tokens is None


def test_the_panel_shows_phases_done_under_way_and_to_come():
    session = store_session()
    attempt(session, status=Status.RUNNING, phase=Phase.SUMMARISE, chunk_index=1, chunk_count=4, boundary_index=236, entries_folded=114)
    shown = panel(session.pk)
    assert [(step.name, step.state) for step in shown.steps] == [
        ("Lease", "done"), ("Plan", "done"), ("Summarise", "now"), ("Verify", "to come"), ("Commit", "to come"),
    ]  # fmt: skip
    assert [step.note for step in shown.steps[1:3]] == ["boundary 236, 114 entries", "chunk 2 of 4"]


@pytest.mark.parametrize(
    ("outcome", "tone"),
    [
        (Outcome.COMMITTED, "good"),
        (Outcome.CANCELLED, ""),
        (Outcome.SKIPPED, ""),
        (Outcome.STALE, "warn"),
        (Outcome.REJECTED_INFLATED, "bad"),
    ],
)
def test_a_result_stays_for_an_hour_with_the_tone_of_its_outcome(outcome, tone):
    session = store_session()
    attempt(session, status=Status.COMPLETED, outcome=outcome, finished_at=datetime.now(UTC) - timedelta(minutes=59))
    assert panel(session.pk).tone == tone
    Compaction.objects.update(finished_at=datetime.now(UTC) - timedelta(minutes=61))
    assert panel(session.pk) is None


def test_sizes_of_unlike_scope_are_not_held_against_each_other():
    session = store_session()
    sizes = {"tokens_before": 90_000, "tokens_before_scope": "whole_request", "tokens_after": 10_000, "tokens_after_scope": "view"}
    attempt(session, status=Status.COMPLETED, outcome=Outcome.COMMITTED, generation=1, finished_at=datetime.now(UTC), **sizes)
    assert not panel(session.pk).scopes_match


def test_an_agents_own_compaction_has_no_panel():
    session = store_session()
    attempt(session, lineage=Lineage.AGENT, status=Status.COMPLETED, generation=1, finished_at=datetime.now(UTC))
    assert panel(session.pk) is None
