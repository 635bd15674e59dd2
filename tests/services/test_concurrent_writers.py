"""Writers at the same time, each in a transaction of its own: what one promises, the others do not undo."""

import threading
from collections.abc import Callable, Sequence

import pytest
from django.db import connection, transaction

from sessions_app.engine.policy import PolicyError
from sessions_app.engine.terms import OPEN_STATUSES, Status
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.events.verify import verify_stream
from sessions_app.models import ActorKind, Compaction, Event, PolicyValue, Session
from sessions_app.selectors import followed, plans
from sessions_app.services import policies, signals
from sessions_app.services.compactions.cancel import cancel
from sessions_app.services.compactions.endings import CANCELLED, end
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from tests.services.compaction_scenes import PATIENCE_S, fresh, long_session

pytestmark = pytest.mark.django_db(transaction=True)


ADMIN = Actor(kind=ActorKind.USER, id="3", name="ada", role="admin")


def at_once(*works: Callable[[], object]) -> list[object]:
    """Does everything in threads that begin together; answers results, or what was raised."""
    gate = threading.Barrier(len(works))
    answers: list[object] = [None] * len(works)

    def do(place: int, work: Callable[[], object]) -> None:
        try:
            gate.wait(PATIENCE_S)
            answers[place] = work()
        except Exception as error:
            answers[place] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=do, args=item) for item in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    return answers


def failures(answers: Sequence[object]) -> list[object]:
    return [answer for answer in answers if isinstance(answer, Exception)]


def test_of_many_requests_at_once_one_starts_and_the_others_join_it(support_actor):
    session = long_session()
    answers = at_once(*[lambda: request(actor=support_actor, session=session)] * 6)
    assert failures(answers) == []
    assert sorted(answer.joined for answer in answers) == [False] + [True] * 5
    assert Compaction.objects.filter(session=session, status__in=OPEN_STATUSES).count() == 1
    assert verify_stream(log.session_stream(session.pk)).broken_at is None


def test_a_task_that_is_delivered_to_several_workers_is_run_by_one(support_actor):
    session = long_session()
    compaction = request(actor=support_actor, session=session).compaction
    assert failures(at_once(*[lambda: run_compaction(compaction.pk)] * 4)) == []
    assert fresh(compaction).status == Status.COMPLETED
    assert (fresh(session).compaction_count, session.last_generation) == (1, 1)
    assert Event.objects.filter(compaction_id=compaction.pk, type=EventType.COMPACTION_PERSISTED).count() == 1


def test_of_two_ends_at_once_one_comes_about(support_actor):
    for _ in range(5):
        session = long_session()
        compaction = request(actor=support_actor, session=session).compaction
        works = [
            lambda compaction=compaction: run_compaction(compaction.pk),
            lambda compaction=compaction, session=session: cancel(actor=support_actor, session=session, compaction_id=compaction.pk),
            lambda compaction=compaction: end(compaction.pk, CANCELLED),
        ]
        assert failures(at_once(*works)) == []
        assert not fresh(compaction).is_open
        assert fresh(session).running is None
        assert verify_stream(log.session_stream(session.pk)).broken_at is None


def test_a_signal_that_is_derived_twice_at_once_is_that_of_the_last_state(support_actor):
    session = long_session()
    compaction = request(actor=support_actor, session=session).compaction
    answers = at_once(lambda: run_compaction(compaction.pk), *[lambda: signals.refresh(session.pk)] * 4)
    assert failures(answers) == []
    stored = fresh(session).signal_tokens
    signals.refresh(session.pk)
    assert fresh(session).signal_tokens == stored


def test_two_policies_that_contradict_each_other_are_not_set_at_once():
    def set_to(field: str, value: float) -> Callable[[], object]:
        return lambda: policies.set_value(actor=ADMIN, scope="installation", field=field, value=value)

    for _ in range(3):
        PolicyValue.objects.all().delete()
        answers = at_once(set_to("keep_recent_fraction", 0.5), set_to("target_fraction", 0.3))  # each alone is allowed
        assert [type(failure) for failure in failures(answers)] == [PolicyError]
        plans.policy_for()  # raises on a contradiction


def test_events_of_many_writers_are_numbered_without_a_gap(support_actor):
    session = long_session()
    before = Event.objects.filter(stream=log.session_stream(session.pk)).count()

    def write() -> None:
        for _ in range(5):
            log.append(log.session_stream(session.pk), EventType.SESSION_VIEWED, actor=support_actor)

    assert failures(at_once(*[write] * 4)) == []
    verdict = verify_stream(log.session_stream(session.pk))
    assert (verdict.broken_at, verdict.events) == (None, before + 20)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite commits in the order in which transactions begin.")
def test_a_change_that_is_committed_after_a_later_one_is_told_to_the_list(support_actor):
    early, late = long_session(), long_session()
    cursor = followed.list_cursor()
    written, release = threading.Event(), threading.Event()

    def slow() -> None:
        with transaction.atomic():
            log.append(log.session_stream(early.pk), EventType.SESSION_VIEWED, actor=support_actor)
            written.set()
            assert release.wait(PATIENCE_S)
        connection.close()

    thread = threading.Thread(target=slow)
    thread.start()
    assert written.wait(PATIENCE_S)
    log.append(log.session_stream(late.pk), EventType.SESSION_VIEWED, actor=support_actor)
    told, cursor = followed.sessions_changed_after(cursor)
    assert told == (late.pk,)
    release.set()
    thread.join(PATIENCE_S)
    told, cursor = followed.sessions_changed_after(cursor)
    assert early.pk in told
    assert followed.sessions_changed_after(cursor)[0] == ()
    assert Session.objects.filter(pk__in=[early.pk, late.pk]).count() == 2
