"""Imports whose process is gone: an upload that is still there is taken up again, once; the others end with a sentence."""

from datetime import timedelta
from pathlib import Path

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Coalesce, Now

from sessions_app import queue
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import EventResult, ImportRun, ImportState
from sessions_app.services.imports.runs import IMPORTS_STREAM, TAKEN_UP

SILENT_S = 120
WORKER_LOST = "worker_lost"


def settle_lost_imports(actor: Actor) -> tuple[int, int]:
    """(taken up again, failed) of the imports that gave no sign of life for `SILENT_S` seconds.

    What an import stored is recognised by the next one, so that nothing comes twice. A second loss ends it: the source may be
    what kills its workers.
    """
    silent = ImportRun.objects.annotate(last_sign=Coalesce("heartbeat_at", "requested_at")).filter(
        state=ImportState.RUNNING, last_sign__lte=Now() - timedelta(seconds=SILENT_S)
    )
    taken_up = failed = 0
    for run in list(silent):
        if _may_take_up(run):
            taken_up += _take_up(silent, run, actor)
        else:
            failed += _end(silent, run, actor)
    return taken_up, failed


def _may_take_up(run: ImportRun) -> bool:
    """A command's paths may be those of another machine or user: only what was uploaded is read by another process."""
    return not run.counts.get(TAKEN_UP) and not run.cancel_requested and bool(run.staged_path) and Path(run.staged_path).is_file()


def _take_up(silent: QuerySet[ImportRun], run: ImportRun, actor: Actor) -> bool:
    with transaction.atomic():
        if not silent.filter(pk=run.pk).update(state=ImportState.QUEUED, heartbeat_at=Now(), counts={TAKEN_UP: 1}):
            return False
        _tell(EventType.IMPORT_REQUESTED, EventResult.ALLOWED, run, actor)
        queue.enqueue(queue.IMPORT_SESSIONS, str(run.pk))
    return True


def _end(silent: QuerySet[ImportRun], run: ImportRun, actor: Actor) -> bool:
    error = "The process that ran this import stopped. What it had finished is kept; import again to get the rest."
    with transaction.atomic():
        if not silent.filter(pk=run.pk).update(state=ImportState.FAILED, error=error, finished_at=Now()):
            return False
        _tell(EventType.IMPORT_FINISHED, EventResult.FAILED, run, actor)
    if run.staged_path:
        Path(run.staged_path).unlink(missing_ok=True)  # nobody takes this upload up again
    return True


def _tell(event_type: EventType, result: EventResult, run: ImportRun, actor: Actor) -> None:
    log.append(IMPORTS_STREAM, event_type, actor=actor, result=result, target=("import", str(run.pk)), reason=WORKER_LOST)
