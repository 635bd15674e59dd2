"""Background tasks: each calls one service with ids. They may be delivered twice; the services mind."""

import uuid

from celery import shared_task
from celery.exceptions import Reject
from celery.worker import state as worker

from sessions_app import queue
from sessions_app.services.compactions import run as compactions
from sessions_app.services.imports import runs as imports


@shared_task(name=queue.RUN_COMPACTION)
def run_compaction(compaction_id: str) -> None:
    _begin()
    compactions.run_compaction(uuid.UUID(compaction_id), must_end=_is_ending)


@shared_task(name=queue.IMPORT_SESSIONS)
def import_sessions(run_id: str) -> None:
    _begin()
    if not imports.run_import(uuid.UUID(run_id), must_end=_is_ending):
        raise Reject("the worker stops", requeue=True)


def _begin() -> None:
    """Gives the task back when its worker is about to stop: begun now, it would be cut off and end as failed."""
    if _is_ending():
        raise Reject("the worker stops", requeue=True)


def _is_ending() -> bool:
    return worker.should_stop is not None
