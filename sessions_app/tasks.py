"""Background tasks: each calls one service with ids. They may be delivered twice; the services mind."""

import uuid

from celery import shared_task

from sessions_app import queue
from sessions_app.services.compactions import run as compactions
from sessions_app.services.imports import runs as imports


@shared_task(name=queue.RUN_COMPACTION)
def run_compaction(compaction_id: str) -> None:
    compactions.run_compaction(uuid.UUID(compaction_id))


@shared_task(name=queue.IMPORT_SESSIONS)
def import_sessions(run_id: str) -> None:
    imports.run_import(uuid.UUID(run_id))
