"""Background tasks: each calls one service with ids. They may be delivered twice; the services mind."""

import mmap
import uuid
from typing import Any

from celery import shared_task
from celery.exceptions import Reject
from celery.signals import worker_shutting_down
from celery.worker import state as worker

from sessions_app import queue
from sessions_app.services import memory_flush
from sessions_app.services.compactions import run as compactions
from sessions_app.services.imports import runs as imports
from sessions_app.services.turns import run as turns

_is_asked_to_end = mmap.mmap(-1, 1)
"""One byte that a worker shares with the child processes of its pool: only the parent gets the signal."""


@worker_shutting_down.connect
def note_request_to_end(**_: Any) -> None:
    _is_asked_to_end[0] = 1


@shared_task(name=queue.RUN_COMPACTION)
def run_compaction(compaction_id: str) -> None:
    _begin()
    compactions.run_compaction(uuid.UUID(compaction_id), must_end=_is_cut_off)


@shared_task(name=queue.RUN_TURN)
def run_turn(session_id: str) -> None:
    _begin()
    turns.run_turn(uuid.UUID(session_id), must_end=_is_cut_off)


@shared_task(name=queue.REPAIR_MEMORY)
def repair_memory(compaction_id: str) -> None:
    _begin()
    memory_flush.repair(uuid.UUID(compaction_id))


@shared_task(name=queue.IMPORT_SESSIONS)
def import_sessions(run_id: str) -> None:
    _begin()
    if not imports.run_import(uuid.UUID(run_id), must_end=_is_ending):
        # Anew, not by giving this one back: what the child of a pool gives back as its worker ends gets lost.
        queue.enqueue(queue.IMPORT_SESSIONS, run_id)


def _begin() -> None:
    """Gives the task back when its worker is about to stop: begun now, it would be cut off and end as failed."""
    if _is_ending():
        raise Reject("the worker stops", requeue=True)


def _is_ending() -> bool:
    """Whether no task may be begun any more. A running import goes back into the queue, with all that it has stored."""
    return _is_asked_to_end[0] == 1 or worker.should_stop is not None


def _is_cut_off() -> bool:
    """Whether a running compaction can't be brought to its end. A worker that is asked to end waits for it; `up` does not."""
    return _is_asked_to_end[0] == 0 and worker.should_stop is not None
