"""A crash at any step of an attempt leaves the old view valid, and the attempt ends all the same."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from sessions_app.engine.terms import SkipReason, Status
from sessions_app.models import Compaction, Entry, Event, Lease, ViewSegment
from sessions_app.services import sweeper
from sessions_app.services.compactions import commit, endings, lease, run
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from tests.services.compaction_scenes import fresh, history_digest, long_session, steps_of, view_hash

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody")]


class Killed(BaseException):
    """The worker's process is gone: nothing after this line is done."""


def kill(*args, **kwargs):
    raise Killed


STEPS = {
    "when the lease is taken": (lease, "move"),
    "when the start is told": (run, "append_step"),
    "before the plan": (run.plans, "load_shapes"),
    "when the plan is stored": (run, "prefix_hash_before"),
    "while entries are read": (run.plans, "load_entries"),
    "when the summary is stored": (run, "_store_verified"),
    "before the commit": (run, "commit"),
    "when the divider is appended": (commit, "_append_divider"),
    "when the plan of the view is stored": (commit, "_store_segments"),
    "when the attempt is completed": (commit, "move"),
    "when the session is given back": (commit, "give_back"),
    "when the signal is derived": (commit.signals, "refresh"),
    "when the commit is told": (commit, "append_step"),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_crash_leaves_the_view_the_history_and_the_log_whole(support_actor, monkeypatch, step):
    """Invariants 6 and 9."""
    session = long_session()
    history, view_before = history_digest(session), view_hash(session)
    compaction = request(actor=support_actor, session=session).compaction
    with monkeypatch.context() as patch:
        patch.setattr(*STEPS[step], kill)
        with pytest.raises(Killed):
            run_compaction(compaction.pk)
    assert (history_digest(session), view_hash(session)) == (history, view_before)
    assert not ViewSegment.objects.exists()
    if fresh(compaction).status == Status.REQUESTED:  # nothing had begun: it is simply taken again
        run_compaction(compaction.pk)
        assert fresh(compaction).status == Status.COMPLETED
        return
    Lease.objects.update(expires_at=Now() - timedelta(seconds=1))
    assert sweeper.sweep().lost == 1
    assert (fresh(compaction).status, compaction.reason) == (Status.FAILED, SkipReason.WORKER_LOST)
    assert (history_digest(session), view_hash(session)) == (history, view_before)
    again = request(actor=support_actor, session=session).compaction
    run_compaction(again.pk)
    assert fresh(again).status == Status.COMPLETED


def test_a_crash_after_the_commit_loses_nothing(support_actor, monkeypatch):
    session = long_session()
    compaction = request(actor=support_actor, session=session).compaction
    monkeypatch.setattr("sessions_app.live.poke.poke_session", lambda *_: None)
    run_compaction(compaction.pk)
    run_compaction(compaction.pk)
    report = sweeper.sweep(at_start=True)
    assert replace(report, indexed=0) == sweeper.SweepReport(), report.words()  # what no import brought is indexed by a sweep
    assert Compaction.objects.get().status == Status.COMPLETED
    assert Entry.objects.filter(session=session, kind="compacted").count() == 1


def test_an_ending_that_crashes_is_an_ending_that_did_not_happen(support_actor, monkeypatch):
    session = long_session(turns=2)
    compaction = request(actor=support_actor, session=session).compaction
    with monkeypatch.context() as patch:
        patch.setattr(endings, "append_step", kill)
        with pytest.raises(Killed):
            run_compaction(compaction.pk)
    assert fresh(compaction).status == Status.RUNNING
    assert fresh(session).running == compaction
    assert [status for _, _, status in steps_of(compaction)] == ["started"]
    Lease.objects.update(expires_at=Now() - timedelta(seconds=1))
    sweeper.sweep()
    assert Event.objects.filter(compaction_id=compaction.pk, payload__status="failed").count() == 1
