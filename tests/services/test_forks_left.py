"""Forks whose process is gone before they were whole: nobody sees them, and the sweep leaves nothing of them."""

import os
import subprocess
import sys
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import DatabaseError, connection
from django.utils import timezone

from sessions_app.models import Compaction, Entry, Event, EventStream, Override, PolicyValue, Session, ViewSegment
from sessions_app.services import forks, overrides, sweeper
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.forks import InvalidFork, fork
from tests.services.compaction_scenes import fresh, long_session, set_policy
from tests.services.turn_scenes import ROOT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody")]

STEPS = (
    ("_copy_entries", 1),  # the row is there, and nothing else
    ("_copy_entries", 3),
    ("_finish", 1),
    ("_copy_overrides", 1),
    ("_tell", 2),
)
"""What a fork is about to do when its process is killed, and for the how manieth time."""

_PROCESS = """
import sys, uuid
import django
from django.conf import settings
settings.DATABASES["default"]["NAME"] = sys.argv[1]
django.setup()
from sessions_app.models import Session
from sessions_app.permissions import command_actor
from sessions_app.services import forks
name, times = sys.argv[3], int(sys.argv[4])
real = getattr(forks, name)
def waits(*args, **named):
    global times
    times -= 1
    if not times:
        print("here", flush=True)
        sys.stdin.read()
    return real(*args, **named)
setattr(forks, name, waits)
forks.CHUNK = 10
forks.fork(actor=command_actor(), session=Session.objects.get(pk=uuid.UUID(sys.argv[2])))
"""


@pytest.fixture
def origin(support_actor) -> Session:
    """A session with all that a fork takes along."""
    session = long_session()
    compaction = request(actor=support_actor, session=session).compaction
    run_compaction(compaction.pk)
    overrides.pin(actor=support_actor, session=fresh(session), index=4)
    set_policy(session, threshold_pct=0.5)
    return fresh(session)


def stored() -> dict[str, int]:
    """Rows of everything that a fork is made of."""
    models = (Session, Entry, Compaction, ViewSegment, Override, PolicyValue)
    return {model.__name__: model.objects.count() for model in models}


def process_at(origin: Session, step: str, times: int) -> "subprocess.Popen[str]":
    """A process of its own that stands still in the middle of a fork."""
    process = subprocess.Popen(
        [sys.executable, "-c", _PROCESS, str(connection.settings_dict["NAME"]), str(origin.pk), step, str(times)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": settings.SETTINGS_MODULE or "project.settings.test"},
    )
    assert process.stdout.readline() == "here\n"
    return process


def left() -> Session:
    return Session.objects.get(is_complete=False)


def pass_by(session: Session) -> None:
    """As if nobody had written to it for long."""
    Session.objects.filter(pk=session.pk).update(changed_at=timezone.now() - timedelta(seconds=2 * forks.SILENT_S))


@pytest.mark.parametrize(("step", "times"), STEPS)
def test_whenever_its_process_is_killed_nobody_sees_it_and_the_sweep_leaves_nothing_of_it(origin, step, times):
    before, events = stored(), Event.objects.count()
    with process_at(origin, step, times) as process:
        process.kill()
    assert not Session.objects.listed().exclude(pk=origin.pk).exists()
    assert Event.objects.count() == events
    assert sweeper.sweep().forks_removed == 0  # it may still be at work, for all that anybody knows
    copy = left()
    pass_by(copy)
    assert sweeper.sweep().forks_removed == 1
    assert stored() == before
    told = Event.objects.get(type="session.forked")
    assert (told.stream, told.result, told.reason) == (f"session:{origin.pk}", "failed", "worker_lost")
    assert told.payload == {"fork": str(copy.pk)}
    assert not EventStream.objects.filter(name=f"session:{copy.pk}").exists()
    assert sweeper.sweep().forks_removed == 0


def test_one_that_stood_still_and_was_given_up_makes_nothing_when_it_goes_on(origin, support_actor, monkeypatch):
    before = stored()
    copy_entries = forks._copy_entries

    def stands_still(*args: object) -> None:
        copy_entries(*args)
        if Entry.objects.filter(session=left()).count() == 20:
            pass_by(left())

    def sweeps(copy: object, **columns: object) -> None:
        forks.remove_left(actor=sweeper.SWEEPER)
        hold(copy, **columns)

    hold = forks._hold
    monkeypatch.setattr(forks, "CHUNK", 10)
    monkeypatch.setattr(forks, "_copy_entries", stands_still)
    monkeypatch.setattr(forks, "_hold", sweeps)
    with pytest.raises(InvalidFork, match=r"given up\. Try again\. Nothing was made"):
        fork(actor=support_actor, session=origin)
    assert stored() == before


def test_one_that_is_at_work_is_left_alone(origin, support_actor, monkeypatch):
    copy_entries = forks._copy_entries

    def sweeps(*args: object) -> None:
        assert forks.remove_left(actor=sweeper.SWEEPER) == 0
        copy_entries(*args)

    monkeypatch.setattr(forks, "CHUNK", 10)
    monkeypatch.setattr(forks, "_copy_entries", sweeps)
    assert fork(actor=support_actor, session=origin).is_complete


@pytest.mark.parametrize("step", ["_copy_entries", "_copy_checkpoints", "_copy_plans", "_copy_overrides", "_copy_policy", "_tell"])
def test_whatever_it_trips_over_it_leaves_nothing_behind(origin, support_actor, monkeypatch, step):
    before, events = stored(), Event.objects.count()

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(forks, step, fails)
    with pytest.raises(RuntimeError):
        fork(actor=support_actor, session=origin)
    assert (stored(), Event.objects.count()) == (before, events)


def test_where_even_that_cannot_be_removed_at_once_the_first_error_is_told_and_the_sweep_does_it(origin, support_actor, monkeypatch):
    def away(*_: object) -> None:
        raise DatabaseError("the server closed the connection")

    with monkeypatch.context() as patched:
        patched.setattr(forks, "_copy_policy", lambda *_: 1 / 0)
        patched.setattr(forks, "_remove", away)
        with pytest.raises(ZeroDivisionError):
            fork(actor=support_actor, session=origin)
    pass_by(left())
    assert sweeper.sweep().forks_removed == 1
    assert stored()["Session"] == 1


def test_removing_goes_on_where_a_sweep_was_killed(origin, support_actor, monkeypatch):
    monkeypatch.setattr(forks, "_remove", lambda *_: False)
    with pytest.raises(ZeroDivisionError), monkeypatch.context() as patched:
        patched.setattr(forks, "_copy_policy", lambda *_: 1 / 0)
        fork(actor=support_actor, session=origin)
    pass_by(left())
    sweeper.sweep()
    Entry.objects.filter(session=left(), index__lt=20).delete()
    monkeypatch.undo()
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *task: None)
    assert sweeper.sweep().forks_removed == 1
    assert stored()["Session"] == 1


def test_a_session_that_is_still_being_taken_in_is_not_forked(origin, support_actor):
    Session.objects.filter(pk=origin.pk).update(is_complete=False)
    with pytest.raises(InvalidFork, match="still being taken in"):
        fork(actor=support_actor, session=fresh(origin))
    assert Session.objects.count() == 1
