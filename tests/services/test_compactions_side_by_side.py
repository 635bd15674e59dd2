"""Chunks that a real model server is asked for side by side: how many at once, cancelled while all hang, and with signs of life."""

import threading

import pytest

from sessions_app.engine.asking import UNUSED
from sessions_app.engine.terms import Status
from sessions_app.models import Event, Lease, Session
from sessions_app.services.compactions.cancel import cancel
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from tests.fakes.keys import point_at
from tests.fakes.model_server import Answer, Asked, Fault, ModelServer, say
from tests.services.compaction_scenes import PATIENCE_S, fresh, history_digest, long_session, run_in_thread, set_policy, wait_until

pytestmark = pytest.mark.django_db(transaction=True)
SUMMARY = "## Primary request and intent\nMend the builds.\n\n## Next step\nGo on."


class Crowd:
    """Answers nobody before so many ask at once; from then on everybody. Counts how many were there at most."""

    def __init__(self, waits_for: int) -> None:
        self.most = self._here = 0
        self._waits_for = waits_for
        self._lock = threading.Lock()
        self._are_there = threading.Event()

    def reply(self, asked: Asked) -> Answer:
        with self._lock:
            self._here += 1
            self.most = max(self.most, self._here)
            if self._here == self._waits_for:
                self._are_there.set()
        assert self._are_there.wait(PATIENCE_S)
        with self._lock:
            self._here -= 1
        return say(f"{SUMMARY} {hash(asked.texts[-1]) % 1_000}")


@pytest.fixture
def server(monkeypatch, queue_of_nobody):
    with ModelServer() as server:
        point_at(server, "openai", monkeypatch)
        yield server


def session_of(**policy: object) -> Session:
    session = long_session(40)
    set_policy(session, **{"summarisers": ["openai:scripted-model@4000"], "coverage_blocking": False} | policy)
    return session


@pytest.mark.parametrize("concurrency", [1, 2, 4])
def test_so_many_are_asked_at_once_and_no_more(support_actor, server, concurrency):
    crowd = Crowd(concurrency)
    server.reply = crowd.reply
    attempt = request(actor=support_actor, session=session_of(concurrency=concurrency)).compaction
    run_compaction(attempt.pk)
    assert fresh(attempt).status == Status.COMPLETED, attempt.explanation
    assert crowd.most == concurrency
    assert attempt.chunk_count == attempt.chunk_index >= concurrency
    told = Event.objects.filter(compaction_id=attempt.pk, type="compaction.chunk_summarized").order_by("seq")
    chunks = [event.payload["chunk_index"] for event in told]
    assert chunks == sorted(chunks)
    assert chunks[-1] == attempt.chunk_count
    assert len([one for one in attempt.summarisers_tried if not one.get("refused")]) == len(server.prompts)


def test_a_cancel_while_all_hang_takes_effect_and_changes_nothing(support_actor, server):
    server.reply = lambda _: Answer(fault=Fault.SILENT)
    session = session_of(concurrency=3, heartbeat_s=1)
    before = history_digest(session)
    attempt = request(actor=support_actor, session=session).compaction
    running = run_in_thread(attempt.pk)
    wait_until(lambda: len(server.prompts) == 3)
    beats = Event.objects.filter(compaction_id=attempt.pk, type="compaction.heartbeat", payload__phase="summarise")
    wait_until(beats.exists)
    expires_at = Lease.objects.get(session=session).expires_at
    wait_until(lambda: Lease.objects.get(session=session).expires_at > expires_at)
    cancel(actor=support_actor, session=fresh(session), compaction_id=attempt.pk)
    running.join(PATIENCE_S)
    assert not running.is_alive()
    assert (fresh(attempt).status, len(server.prompts)) == (Status.CANCELLED, 3)
    assert history_digest(session) == before


def test_a_model_that_hangs_is_given_up_once_for_all(support_actor, server):
    server.reply = lambda _: Answer(fault=Fault.SILENT)
    session = session_of(concurrency=3, summarisers=["openai:scripted-model@4000", "extractive"], call_timeout_s=1)
    attempt = request(actor=support_actor, session=session).compaction
    run_compaction(attempt.pk)
    assert (fresh(attempt).status, attempt.summary_source) == (Status.COMPLETED, "extractive")
    assert len(server.prompts) == 3
    tried = [one for one in attempt.summarisers_tried if one["summariser"] != "extractive"]
    assert [one.get("chunk_index", 1) for one in tried] == [1, 2, 3]
    assert [one["refused"] == UNUSED for one in tried] == [False, True, True]
