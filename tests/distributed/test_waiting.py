"""A compaction that waits for its session to become idle: whoever sees that, a worker runs it, and the command that asked follows."""

import threading

import pytest
from django.db import connection

from sessions_app.engine.terms import Status
from sessions_app.models import Compaction, Session, SessionStatus
from tests.distributed.processes import PATIENCE_S
from tests.management.commands import run
from tests.services.compaction_scenes import long_session, steps_of, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400), pytest.mark.django_db(transaction=True)]


def test_a_command_follows_what_waits_and_a_worker_runs_it(start_worker):
    start_worker("threads")
    session = long_session(status=SessionStatus.WORKING)
    told: list[tuple[str, str, int]] = []

    def follow() -> None:
        try:
            told.append(run("compact", session.pk, "--when", "idle"))
        finally:
            connection.close()

    following = threading.Thread(target=follow, daemon=True)
    following.start()
    attempts = Compaction.objects.filter(session=session)
    wait_until(attempts.filter(status=Status.WAITING_FOR_IDLE).exists, PATIENCE_S)
    Session.objects.filter(pk=session.pk).update(status=SessionStatus.IDLE)
    following.join(PATIENCE_S)
    assert told
    out, err, _ = told[0]
    assert "waiting for idle" in err
    assert out.startswith("#1 committed")
    assert [status for _, _, status in steps_of(attempts.get())].count("started") == 1
