"""What another process commits reaches this one's followers and workers within a fraction of a second."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from django.db import connection

from project.embedded import BackgroundWork
from sessions_app.engine.terms import Status
from sessions_app.events import log
from sessions_app.events.actors import system_actor
from sessions_app.events.types import EventType
from sessions_app.live import poke
from sessions_app.models import Compaction, Event
from sessions_app.services import sweeper
from sessions_app.services.compactions.request import request
from sessions_app.services.notices import CommitsOfOthers
from sessions_app.services.turns.send import send
from sessions_app.services.turns.sessions import begin
from tests.fakes.keys import point_at
from tests.fakes.model_server import ModelServer, say
from tests.services.compaction_scenes import fresh, long_session, wait_until
from tests.services.turn_scenes import process_of

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="SQLite alone counts the commits of others; else the channel layer tells"),
]

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = """
import sys
import project.settings.test as test
test.DATABASES["default"]["NAME"] = sys.argv[1]
import django
django.setup()
from sessions_app.events import log
from sessions_app.events.actors import system_actor
from sessions_app.events.types import EventType
from sessions_app.models import Session
from sessions_app.services.compactions.request import request
if sys.argv[2] == "tell":
    log.append(log.session_stream(sys.argv[3]), EventType.SESSION_VIEWED, actor=system_actor("elsewhere"))
else:
    request(actor=system_actor("elsewhere"), session=Session.objects.get(pk=sys.argv[3]))
"""


def elsewhere(what: str, session_id: object) -> None:
    """Another process writes to this test's database."""
    command = [sys.executable, "-c", ELSEWHERE, str(connection.settings_dict["NAME"]), what, str(session_id)]
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "project.settings.test"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=150)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def poked(monkeypatch):
    told: list[tuple[str, int]] = []
    monkeypatch.setattr(poke, "poke_session", lambda session, seq: told.append((session, seq)))
    return told


def view(session) -> log.Appended:
    return log.append(log.session_stream(session.pk), EventType.SESSION_VIEWED, actor=system_actor("here"))


def test_what_another_process_wrote_is_told_once_and_then_no_more(poked):
    session = long_session()
    others = CommitsOfOthers()
    others.look()
    poked.clear()
    elsewhere("tell", session.pk)
    assert others.look() == 1
    last = Event.objects.filter(stream=log.session_stream(session.pk)).latest("seq")
    assert poked == [(str(session.pk), last.seq)]
    assert others.look() == 0
    assert len(poked) == 1


def test_what_this_process_told_itself_is_not_told_again():
    session = long_session()
    others = CommitsOfOthers()
    others.look()
    event = view(session)
    assert poke.is_told(str(session.pk), event.seq)
    assert others.look() == 0


def test_a_look_costs_one_statement_while_nobody_writes(django_assert_num_queries):
    others = CommitsOfOthers()
    others.look()
    with django_assert_num_queries(1):
        assert others.look() == 0


def test_a_look_that_fails_is_made_up_for_by_the_next_one(poked, monkeypatch):
    session = long_session()
    others = CommitsOfOthers()
    others.look()
    poked.clear()
    elsewhere("tell", session.pk)
    with monkeypatch.context() as broken:
        broken.setattr("sessions_app.services.notices.followed.events_after", lambda _cursor: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            others.look()
    connection.close()
    assert others.look() == 1
    assert [told for told, _ in poked] == [str(session.pk)]


def test_an_attempt_that_another_process_left_behind_is_run_at_once(monkeypatch):
    session = long_session()
    monkeypatch.setattr(sweeper, "sweep", lambda **_: sweeper.SweepReport())  # which would find it, later
    work = BackgroundWork()
    work.start()
    try:
        elsewhere("request", session.pk)
        wait_until(lambda: not fresh(Compaction.objects.get(session=session, lineage="console")).is_open)
        assert Compaction.objects.get(session=session, lineage="console").status == Status.COMPLETED
    finally:
        assert work.stop()


def test_a_request_of_this_process_is_queued_once(support_actor, monkeypatch):
    queued: list[str] = []
    session = long_session()
    others = CommitsOfOthers()
    others.look()
    request(actor=support_actor, session=session)
    monkeypatch.setattr("sessions_app.services.notices.queue.enqueue", lambda name, *_: queued.append(name))
    others.look()
    assert queued == []


def test_an_answer_that_comes_in_another_process_is_told_while_it_comes(support_actor, poked, monkeypatch):
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *task: None)
    with ModelServer() as server:
        point_at(server, "openai", monkeypatch)
        session = begin(actor=support_actor, model="openai:some-model")
        pieces = threading.Semaphore(2)
        server.script(say("one two three four five six", pieces=6, paced_by=pieces))
        turn = send(actor=support_actor, session=session, text="Count")
        others = CommitsOfOthers()
        others.look()
        poked.clear()
        seen: set[str] = set()
        with process_of(session) as process:
            while process.poll() is None:
                others.look()
                if (str(session.pk), 0) in poked:
                    poked.clear()
                    if fresh(turn).answer_text and turn.answer_text not in seen:
                        seen.add(turn.answer_text)
                        pieces.release(2)
                time.sleep(0.02)
    assert process.returncode == 0
    assert len(seen) > 1
    others.look()
    poked.clear()
    others.look()
    assert poked == []
