"""Workers as processes of their own: they share the work, end when asked without losing any of it, and may be killed."""

import io

import pytest
from django.db.models.functions import Now

from sessions_app.engine.terms import SkipReason, Status
from sessions_app.events.log import session_stream
from sessions_app.events.verify import verify_stream
from sessions_app.models import Compaction, Entry, ImportRun, Lease, Session, WorkerHeartbeat
from sessions_app.models.import_run import ImportState
from sessions_app.services import imports
from sessions_app.services.compactions.request import request
from tests.distributed.held_model import SUMMARISERS
from tests.distributed.processes import PATIENCE_S
from tests.readers.rows import SESSION, encode, prompt
from tests.services.compaction_scenes import fresh, long_session, set_policy, steps_of, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
POOLS = ["prefork", "threads"]


def is_over(compaction: Compaction) -> bool:
    return not fresh(compaction).is_open


def held_request(actor) -> Compaction:
    session = long_session()
    set_policy(session, summarisers=SUMMARISERS)
    return request(actor=actor, session=session).compaction


def wait_until_summarising(compaction: Compaction) -> None:
    wait_until(lambda: fresh(compaction).phase == "summarise", PATIENCE_S)


@pytest.mark.parametrize("pool", POOLS)
def test_two_workers_share_the_work_and_each_attempt_is_run_once(pool, start_worker, support_actor):
    start_worker(pool)
    start_worker(pool)
    compactions = [request(actor=support_actor, session=long_session()).compaction for _ in range(6)]
    wait_until(lambda: all(is_over(compaction) for compaction in compactions), PATIENCE_S)
    assert {compaction.status for compaction in compactions} == {Status.COMPLETED}
    for compaction in compactions:
        assert [status for _, _, status in steps_of(compaction)].count("completed") == 1
        assert verify_stream(session_stream(compaction.session_id)).broken_at is None


@pytest.mark.parametrize("pool", POOLS)
def test_a_worker_that_is_asked_to_end_brings_what_it_runs_to_its_end_and_begins_nothing_more(pool, start_worker, support_actor, model):
    model.hold()
    first = start_worker(pool, "--concurrency", "1")
    running, waiting = held_request(support_actor), held_request(support_actor)
    wait_until_summarising(running)
    wait_until(WorkerHeartbeat.objects.exists, PATIENCE_S)
    assert WorkerHeartbeat.objects.get().queues == ["compactions", "imports", "turns"]
    first.ask_to_end()
    first.wait_for("Warm shutdown")
    wait_until(lambda: not WorkerHeartbeat.objects.exists(), PATIENCE_S)  # it lives, and takes nothing more
    model.let()
    assert first.wait_for_end() == 0
    assert fresh(running).status == Status.COMPLETED
    assert fresh(waiting).status == Status.REQUESTED
    start_worker(pool)
    wait_until(lambda: is_over(waiting), PATIENCE_S)
    assert waiting.status == Status.COMPLETED


@pytest.mark.parametrize("pool", POOLS)
def test_an_import_goes_back_into_the_queue_when_its_worker_is_asked_to_end(pool, start_worker, operator_actor, settings, tmp_path):
    settings.DATA_DIR = tmp_path / "data"
    rows = [prompt(f"p{number}", f"p{number - 1}" if number else None, f"{number} " + "x" * 5_000) for number in range(20_000)]
    first = start_worker(pool, "--queues", "imports")
    wait_until(WorkerHeartbeat.objects.exists, PATIENCE_S)
    assert WorkerHeartbeat.objects.get().queues == ["imports"]
    run = imports.request_upload(actor=operator_actor, upload=io.BytesIO(encode(rows)), name=f"{SESSION}.jsonl")
    wait_until(Entry.objects.exists, PATIENCE_S)
    first.ask_to_end()
    assert first.wait_for_end() == 0
    assert fresh(run).state == ImportState.QUEUED
    kept = Entry.objects.count()
    assert 0 < kept < 20_000
    start_worker(pool)
    wait_until(lambda: fresh(run).state == ImportState.COMPLETED, PATIENCE_S)
    assert (Session.objects.get().is_complete, Entry.objects.count(), run.counts["entries"]) == (True, 20_000, 20_000 - kept)
    assert ImportRun.objects.count() == 1


@pytest.mark.parametrize("pool", POOLS)
def test_the_attempt_of_a_killed_worker_is_ended_by_another_one_and_its_session_is_free(pool, start_worker, support_actor, model):
    model.hold()
    first = start_worker(pool)
    compaction = held_request(support_actor)
    wait_until_summarising(compaction)
    first.kill()
    Lease.objects.filter(compaction=compaction).update(expires_at=Now())  # half a minute of silence, shortened
    start_worker(pool)
    wait_until(lambda: is_over(compaction), PATIENCE_S)
    assert (compaction.status, compaction.reason) == (Status.FAILED, SkipReason.WORKER_LOST)
    session = Session.objects.get(pk=compaction.session_id)
    assert session.running is None
    model.let()
    again = request(actor=support_actor, session=session).compaction
    wait_until(lambda: is_over(again), PATIENCE_S)
    assert again.status == Status.COMPLETED
    assert verify_stream(session_stream(session.pk)).broken_at is None
