"""A round of the sweep: what one of its steps trips over holds up no other one."""

from datetime import timedelta

import pytest
import structlog
from django.db import OperationalError
from django.db.models.functions import Now

from sessions_app.engine.terms import Status
from sessions_app.models import Compaction, Lease, WorkerHeartbeat
from sessions_app.services import heartbeats, sweeper
from sessions_app.services.compactions.lease import claim, database_time
from sessions_app.services.compactions.request import request
from tests.services.compaction_scenes import fresh, long_session

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lost(support_actor, monkeypatch) -> Compaction:
    """An attempt whose worker is gone."""
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *task: None)
    attempt = request(actor=support_actor, session=long_session(40)).compaction
    assert claim(attempt.pk) is not None
    Lease.objects.filter(session_id=attempt.session_id).update(expires_at=database_time())
    return attempt


@pytest.mark.parametrize("step", ["_set_right", "settle_lost_imports", "_start_waiting", "forget_ended"])
def test_a_step_that_fails_is_told_and_the_others_are_taken(lost, monkeypatch, step):
    def fails(*_: object) -> int:
        raise ValueError("a stored value that nobody can read")

    monkeypatch.setattr(sweeper, step, fails)
    with structlog.testing.capture_logs() as told:
        report = sweeper.sweep()
    assert (report.lost, report.indexed > 0) == (1, True)
    assert fresh(lost).status == Status.FAILED
    assert [line["event"] for line in told if line["log_level"] == "error"] == ["sweep_step_failed"]


def test_signs_of_life_of_workers_that_ended_without_a_word_are_forgotten_after_a_day(transactional_db):
    for worker in ("long ago", "yesterday", "now"):
        heartbeats.beat(worker, ["imports"])
    WorkerHeartbeat.objects.filter(worker="long ago").update(at=Now() - timedelta(days=1, seconds=1))
    WorkerHeartbeat.objects.filter(worker="yesterday").update(at=Now() - timedelta(hours=23))
    assert sweeper.sweep().heartbeats_forgotten == 1
    assert set(WorkerHeartbeat.objects.values_list("worker", flat=True)) == {"yesterday", "now"}


def test_a_database_that_is_away_ends_the_round(lost, monkeypatch):
    def away(*_: object) -> int:
        raise OperationalError("the server closed the connection")

    monkeypatch.setattr(sweeper, "_set_right", away)
    with pytest.raises(OperationalError):
        sweeper.sweep()
    assert fresh(lost).status == Status.RUNNING
