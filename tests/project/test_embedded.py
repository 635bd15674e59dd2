"""The workers inside the web's process: they take tasks at once, keep imports apart, and stop in time."""

import io
import threading

import pytest
from celery.worker import state as worker_state

from project.embedded import INTERRUPT_S, STOP_S, BackgroundWork
from project.sweeping import SweepThread
from sessions_app import queue
from sessions_app.engine.terms import SkipReason, Status
from sessions_app.models import Entry, ImportRun, Session, WorkerHeartbeat
from sessions_app.models.import_run import ImportState
from sessions_app.selectors import health
from sessions_app.services import imports, sweeper
from sessions_app.services.compactions.request import request
from sessions_app.services.imports import writer as writing
from tests.readers.rows import SESSION, encode, prompt
from tests.services.compaction_scenes import PATIENCE_S, fresh, long_session, make_slow, wait_until

pytestmark = pytest.mark.django_db(transaction=True)
ENTRIES = 1_000


@pytest.fixture
def background():
    work = BackgroundWork(sweeps=False)
    work.start()
    yield work
    assert work.stop(), "a worker did not stop in time"


def test_a_request_is_taken_by_a_worker_and_carried_to_its_end(background, support_actor):
    compaction = request(actor=support_actor, session=long_session()).compaction
    wait_until(lambda: not fresh(compaction).is_open)
    assert compaction.status == Status.COMPLETED


def test_a_worker_looks_for_tasks_many_times_a_second(settings):
    options = getattr(settings, "CELERY_BROKER_TRANSPORT_OPTIONS", {})  # a broker of its own is waited at
    assert options.get("polling_interval", 0) <= 0.01


def test_long_imports_do_not_keep_a_compaction_waiting(background, support_actor, monkeypatch):
    release, started = threading.Event(), threading.Event()

    def endless(run_id: str, **_options: object) -> bool:
        started.set()
        return release.wait(PATIENCE_S)

    monkeypatch.setattr("sessions_app.services.imports.run_import", endless)
    monkeypatch.setattr("sessions_app.services.imports.runs.run_import", endless)
    for _ in range(5):
        queue.enqueue(queue.IMPORT_SESSIONS, "00000000-0000-0000-0000-000000000000")
    assert started.wait(PATIENCE_S)
    compaction = request(actor=support_actor, session=long_session()).compaction
    wait_until(lambda: not fresh(compaction).is_open)
    assert not release.is_set()
    release.set()


def test_a_stop_takes_no_longer_than_a_person_waits():
    """Nothing that runs then is brought to its end: tests hold what it waits for, so that it would have none."""
    assert INTERRUPT_S + STOP_S < 5


def test_stopping_in_the_middle_of_a_compaction_ends_it_as_failed(support_actor, summaries):
    work = BackgroundWork(sweeps=False)
    work.start()
    session = long_session()
    make_slow(session)
    compaction = request(actor=support_actor, session=session).compaction
    wait_until(lambda: fresh(compaction).phase == "summarise")
    assert work.stop()
    assert (fresh(compaction).status, compaction.reason) == (Status.FAILED, SkipReason.WORKER_LOST)
    assert fresh(session).running is None


def test_stopping_in_the_middle_of_an_import_lets_it_wait_and_the_next_start_brings_it_to_its_end(
    operator_actor, settings, tmp_path, monkeypatch
):
    settings.DATA_DIR = tmp_path
    rows = [prompt(f"p{number}", f"p{number - 1}" if number else None, f"{number} " + "x" * 5_000) for number in range(ENTRIES)]
    store = writing.SourceWriter.store

    def store_and_wait(self, **options):
        store(self, **options)
        wait_until(lambda: worker_state.should_stop is not None)

    work = BackgroundWork()
    work.start()
    with monkeypatch.context() as patch:
        patch.setattr(writing.SourceWriter, "store", store_and_wait)
        run = imports.request_upload(actor=operator_actor, upload=io.BytesIO(encode(rows)), name=f"{SESSION}.jsonl")
        wait_until(Entry.objects.exists)
        assert work.stop()
    run.refresh_from_db()
    assert (run.state, Session.objects.get().is_complete) == (ImportState.QUEUED, False)
    kept = Entry.objects.count()
    assert 0 < kept < ENTRIES
    work = BackgroundWork()
    work.start()
    wait_until(lambda: ImportRun.objects.filter(pk=run.pk, state=ImportState.COMPLETED).exists())
    assert work.stop()
    run.refresh_from_db()
    assert run.counts["entries"] == ENTRIES - kept
    assert (Session.objects.get().is_complete, Entry.objects.count()) == (True, ENTRIES)
    assert list((tmp_path / "uploads").iterdir()) == []


def test_the_sweep_runs_beside_the_workers(support_actor, monkeypatch):
    """A request whose task got lost is taken up by the sweep that a start begins with."""
    with monkeypatch.context() as patch:
        patch.setattr("sessions_app.queue.enqueue", lambda *task: None)
        compaction = request(actor=support_actor, session=long_session()).compaction
    work = BackgroundWork()
    work.start()
    wait_until(lambda: fresh(compaction).status == Status.COMPLETED)
    assert work.stop()


def test_what_waits_behind_running_compactions_is_not_begun_by_a_stop(support_actor, summaries):
    """The workers hold tasks ahead of time: one that begins as another is cut off would be cut off as well."""
    work = BackgroundWork(sweeps=False)
    work.start()
    compactions = []
    for _ in range(5):
        session = long_session()
        make_slow(session)
        compactions.append(request(actor=support_actor, session=session).compaction)
    wait_until(lambda: sum(fresh(compaction).status == Status.RUNNING for compaction in compactions) == 2)
    assert work.stop()
    assert sorted(fresh(compaction).status for compaction in compactions) == [Status.FAILED] * 2 + [Status.REQUESTED] * 3


def test_work_that_never_started_stops_without_fuss():
    assert BackgroundWork().stop()


def test_a_sweep_that_fails_is_not_the_last_one(monkeypatch):
    swept = []

    def sweep(*, at_start: bool) -> sweeper.SweepReport:
        swept.append(at_start)
        if len(swept) == 1:
            raise RuntimeError
        return sweeper.SweepReport()

    monkeypatch.setattr(sweeper, "sweep", sweep)
    monkeypatch.setattr(sweeper, "EVERY_S", 0.02)
    signs = []
    thread = SweepThread(lambda: signs.append(len(swept)))
    thread.start()
    wait_until(lambda: len(swept) > 2)
    thread.stop()
    assert swept[:3] == [True, True, False]
    assert signs[:3] == [0, 1, 2]  # a sign of life before each


def test_background_work_says_that_it_lives_and_takes_from_all_queues(transactional_db):
    health.forget()
    work = BackgroundWork()
    work.start()
    wait_until(WorkerHeartbeat.objects.exists)
    assert work.stop()
    assert (health.health_report().worker, WorkerHeartbeat.objects.get().queues) == ("ok", ["compactions", "imports", "turns"])
