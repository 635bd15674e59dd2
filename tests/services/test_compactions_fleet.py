"""Fifty sessions compact at once on two workers: each attempt ends, once, and no event of any of them is lost or told twice."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from project.embedded import BackgroundWork
from sessions_app.engine.terms import OPEN_STATUSES, Outcome
from sessions_app.events import log
from sessions_app.events.verify import verify_stream
from sessions_app.models import Compaction, Event, Lease, Session
from sessions_app.services.compactions.request import request
from tests.services.compaction_scenes import fresh, history_digest, long_session, set_policy, steps_of, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True), pytest.mark.timeout(400)]
SESSIONS = 50


@pytest.fixture
def workers():
    """Two threads that take compactions, as `up` starts them."""
    work = BackgroundWork(sweeps=False)
    work.start()
    yield
    assert work.stop()


def ask(actor, session: Session) -> list[bool]:
    """Somebody presses the button twice. Whether each request joined."""
    try:
        return [request(actor=actor, session=session).joined for _ in range(2)]
    finally:
        connection.close()


def test_fifty_sessions_at_once_all_finish_and_every_event_is_told_once(support_actor, workers):
    sessions = [long_session(12) for _ in range(SESSIONS)]
    for session in sessions[::5]:
        set_policy(session, summarisers=["scripted"], scripted_delay_s=0.3)
    before = {session.pk: history_digest(session) for session in sessions}
    with ThreadPoolExecutor(4) as people:
        joined = list(people.map(lambda session: ask(support_actor, session), sessions))
    assert not any(first for first, _ in joined)
    wait_until(lambda: not Compaction.objects.filter(status__in=OPEN_STATUSES).exists(), 180)
    assert set(Compaction.objects.filter(attempt=1).values_list("outcome", flat=True)) == {Outcome.COMMITTED}
    assert not Lease.objects.filter(token__isnull=False).exists()
    for session in sessions:
        assert fresh(session).running is None
        assert history_digest(session)[: len(before[session.pk])] == before[session.pk]
        for attempt in session.compactions.filter(attempt=1):  # who asked twice too late began another one
            statuses = [status for _, _, status in steps_of(attempt)]
            assert (statuses[0], statuses[-2:]) == ("started", ["observed", "completed"])
            assert [step for step, _, _ in steps_of(attempt)] == list(range(1, len(statuses) + 1))
        stream = log.session_stream(session.pk)
        assert verify_stream(stream).broken_at is None
        numbers = list(Event.objects.filter(stream=stream).order_by("seq").values_list("seq", flat=True))
        assert numbers == list(range(1, len(numbers) + 1))
        assert Event.objects.filter(stream=stream, type="compaction.requested").count() == session.compactions.count()
