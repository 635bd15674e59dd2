"""Clocks that jump: whoever is at work is not taken for dead, and nothing waits for a time that a wrong clock put into the future."""

from datetime import UTC, datetime, timedelta

import pytest

from sessions_app.models import Compaction, ImportRun, ImportState, Lease, Session, SessionStatus
from sessions_app.services import sweeper
from sessions_app.services.compactions import lease
from tests.stored import store_session

AN_HOUR = timedelta(hours=1)


@pytest.fixture
def jump(monkeypatch):
    """Sets the database's clock, as the sweep reads it, forward or back."""
    told = sweeper.database_time
    moved = [timedelta()]
    monkeypatch.setattr(sweeper, "database_time", lambda: told() + moved[0])
    monkeypatch.setattr(sweeper, "_CLOCK", sweeper._Clock())

    def by(delta: timedelta) -> None:
        moved[0] += delta

    return by


def run(**columns) -> ImportRun:
    made = ImportRun.objects.create(state=ImportState.RUNNING, name="x")
    ImportRun.objects.filter(pk=made.pk).update(**columns)
    return made


def state(row) -> str:
    row.refresh_from_db()
    return row.state


@pytest.mark.django_db
def test_an_import_that_is_silent_after_a_jump_gets_a_round_to_show_itself(jump):
    assert sweeper.sweep() == sweeper.SweepReport()
    silent = run(heartbeat_at=datetime.now(UTC) - AN_HOUR)
    jump(AN_HOUR)
    assert sweeper.sweep().imports_failed == 0
    assert state(silent) == ImportState.RUNNING
    assert sweeper.sweep().imports_failed == 1
    assert state(silent) == ImportState.FAILED


@pytest.mark.django_db
def test_a_heartbeat_from_the_future_does_not_keep_a_dead_import_alive(jump):
    dead = run(heartbeat_at=datetime.now(UTC) + AN_HOUR)
    assert sweeper.sweep().set_right == 1
    dead.refresh_from_db()
    assert dead.heartbeat_at <= datetime.now(UTC) + timedelta(seconds=2)


@pytest.mark.django_db
def test_a_lease_from_the_future_does_not_lock_a_session_for_an_hour():
    session = store_session()
    compaction = Compaction.objects.create(
        session=session, attempt=1, trigger="manual", status="running", requested_at=datetime.now(UTC), lease_token=session.pk
    )
    held = Lease.objects.create(session=session, token=session.pk, compaction=compaction, expires_at=datetime.now(UTC) + AN_HOUR)
    assert sweeper.sweep().set_right == 1
    held.refresh_from_db()
    assert held.expires_at <= datetime.now(UTC) + timedelta(seconds=lease.LEASE_S + 2)
    assert sweeper.sweep().set_right == 0


@pytest.mark.django_db
def test_a_session_whose_agent_had_a_clock_ahead_of_ours_does_not_stay_at_work():
    session = store_session(status=SessionStatus.WORKING, last_activity_at=datetime.now(UTC) + AN_HOUR)
    assert sweeper.sweep().idled == 1
    assert Session.objects.get(pk=session.pk).status == SessionStatus.IDLE


@pytest.mark.django_db
def test_the_database_tells_the_time():
    assert abs(sweeper.database_time() - datetime.now(UTC)) < timedelta(minutes=1)
