"""Commands beside a server: what they let begin, what they run themselves, and what they leave to those who can."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from sessions_app.engine.terms import Status
from sessions_app.models import Compaction, SessionStatus, WorkerHeartbeat
from sessions_app.services import heartbeats, sweeper
from sessions_app.services.compactions import following
from sessions_app.services.compactions.request import request
from tests.management.commands import run
from tests.services.compaction_scenes import fresh, long_session, set_policy

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def queued(monkeypatch) -> list[tuple[str, ...]]:
    tasks: list[tuple[str, ...]] = []
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *task: tasks.append(task))
    return tasks


@pytest.fixture(autouse=True)
def _one_process(settings):
    settings.CELERY_BROKER_URL = "memory://"


def waiting(actor, **columns) -> Compaction:
    attempt = request(actor=actor, session=long_session(status=SessionStatus.WORKING, **columns)).compaction
    assert attempt.status == Status.WAITING_FOR_IDLE
    return attempt


def make_idle(attempt: Compaction) -> None:
    attempt.session.status = SessionStatus.IDLE
    attempt.session.save()


def test_a_process_without_a_worker_takes_nothing_from_those_who_have_one(support_actor, queued):
    lost = request(actor=support_actor, session=long_session()).compaction
    Compaction.objects.filter(pk=lost.pk).update(heartbeat_at=Now() - timedelta(hours=1))
    other = waiting(support_actor)
    make_idle(other)
    queued.clear()
    told = run("sweep")[0]
    assert "queued" not in told
    assert "started" not in told
    assert (queued, fresh(other).status) == ([], Status.WAITING_FOR_IDLE)
    report = sweeper.sweep()
    assert (report.requeued, report.started, len(queued)) == (1, 1, 2)


def test_what_is_followed_begins_once_its_session_is_idle_and_nothing_else_does(support_actor, queued):
    followed, other = waiting(support_actor), waiting(support_actor)
    following.let_begin(followed)
    assert fresh(followed).status == Status.WAITING_FOR_IDLE
    make_idle(followed)
    make_idle(other)
    following.let_begin(followed)
    assert (fresh(followed).status, fresh(other).status) == (Status.REQUESTED, Status.WAITING_FOR_IDLE)


def test_beside_workers_whatever_waits_begins(support_actor, queued, settings):
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
    attempts = [waiting(support_actor), waiting(support_actor)]
    for attempt in attempts:
        make_idle(attempt)
    queued.clear()
    following.let_begin(attempts[0])
    assert [fresh(attempt).status for attempt in attempts] == [Status.REQUESTED] * 2
    assert len(queued) == 2
    assert not following.runs_here(attempts[0])


def test_what_needs_a_key_is_left_to_a_server_that_lives(support_actor, queued, monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    session = long_session()
    set_policy(session, summarisers=["anthropic:claude-haiku-4-5", "extractive"])
    attempt = request(actor=support_actor, session=session).compaction
    assert following.lacking(attempt) == ("anthropic:claude-haiku-4-5",)
    assert following.runs_here(attempt)  # nobody else would
    heartbeats.beat("imports only", ["imports"])
    assert following.runs_here(attempt)
    heartbeats.beat("up", ["compactions", "imports"])
    assert not following.runs_here(attempt)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    assert following.runs_here(attempt)
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    WorkerHeartbeat.objects.update(at=Now() - timedelta(minutes=2))
    assert following.runs_here(attempt)


def test_a_command_leaves_it_to_the_server_and_takes_it_over_when_that_is_gone(support_actor, queued, monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    session = long_session()
    set_policy(session, summarisers=["anthropic:claude-haiku-4-5", "extractive"])
    heartbeats.beat("up", ["compactions"])
    looks = iter(range(100))

    def die_after_some_looks(_seconds: float) -> None:
        assert Compaction.objects.get(session=session).status == Status.REQUESTED or next(looks) > 3
        if next(looks) > 3:
            heartbeats.end("up")

    monkeypatch.setattr("sessions_app.management.commands.compact.pause", die_after_some_looks)
    out, err, _ = run("compact", session.pk)
    assert "No key for anthropic:claude-haiku-4-5 is set here, so the server runs it." in err
    assert out.startswith("#1 committed")
