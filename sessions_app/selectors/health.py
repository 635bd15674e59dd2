"""Whether the database, the channel layer and the broker answer, and workers take what is queued."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar

import structlog
from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import DatabaseError
from django.db.models.functions import Now
from django.utils.module_loading import import_string

from sessions_app.engine.terms import Status
from sessions_app.live import poke
from sessions_app.models import Compaction, ImportRun, ImportState, WorkerHeartbeat

logger = structlog.get_logger(__name__)
_Answer = TypeVar("_Answer")

UNCLAIMED_AFTER = timedelta(seconds=60)
SILENT_AFTER = timedelta(seconds=60)
"""A worker that gave no sign of life for so long counts as gone; it gives one every ten seconds, beside its sweep."""

ANSWER_S = 2.0
"""How long a service may take before it counts as failing."""

KEEP_S = 2.0
"""An answer is given again for so long: nobody is signed in here, and each look costs a little."""


@dataclass(frozen=True)
class HealthReport:
    """One word each, and `unserved`: the queues that no living worker takes from.

    `worker` is `missing` when there is such a queue, `stalled` when something waits that nobody took, `unknown` without a database.
    """

    database: str
    layer: str
    broker: str
    worker: str
    unserved: tuple[str, ...]

    @property
    def is_well(self) -> bool:
        return {self.database, self.layer, self.broker, self.worker} == {"ok"}

    @property
    def status(self) -> str:
        return "ok" if self.is_well else "failing"


class _Kept(Generic[_Answer]):
    """What a look found last. One look at a time, however many ask."""

    def __init__(self, look: Callable[[], _Answer]) -> None:
        self._look = look
        self._lock = threading.Lock()
        self._answer: _Answer | None = None
        self._good_until = 0.0

    def get(self) -> _Answer:
        with self._lock:
            if self._answer is None or time.monotonic() >= self._good_until:
                self._answer = self._look()
                self._good_until = time.monotonic() + KEEP_S
            return self._answer

    def forget(self) -> None:
        with self._lock:
            self._answer = None


def health_report() -> HealthReport:
    """Of the whole product: three queries, one message over the layer, one connection to the broker. Never raises."""
    layer, broker = _services.get()
    database, worker, unserved = _work.get()
    return HealthReport(database=database, layer=layer, broker=broker, worker=worker, unserved=unserved)


def can_serve() -> bool:
    """Whether this process can show pages: the database answers. All else may be away for a while."""
    database, *_ = _work.get()
    return database == "ok"


def forget() -> None:
    """The next report looks anew."""
    _services.forget()
    _work.forget()


def _look_at_work() -> tuple[str, str, tuple[str, ...]]:
    """(database, worker, unserved queues)."""
    try:
        unserved = _queues() - _served()
        waits = _waits()
    except DatabaseError:
        return "failing", "unknown", ()
    return "ok", "missing" if unserved else "stalled" if waits else "ok", tuple(sorted(unserved))


def _queues() -> set[str]:
    routes: dict[str, dict[str, str]] = settings.CELERY_TASK_ROUTES
    return {settings.CELERY_TASK_DEFAULT_QUEUE, *(route["queue"] for route in routes.values())}


def _served() -> set[str]:
    living = WorkerHeartbeat.objects.filter(at__gt=Now() - SILENT_AFTER)
    return {queue for queues in living.values_list("queues", flat=True) for queue in queues}


def _waits() -> bool:
    limit = Now() - UNCLAIMED_AFTER
    return (
        Compaction.objects.filter(status=Status.REQUESTED, requested_at__lt=limit).exists()
        or ImportRun.objects.filter(state=ImportState.QUEUED, requested_at__lt=limit).exists()
    )


def _look_at_services() -> tuple[str, str]:
    """(layer, broker), each in one word."""
    crosses = async_to_sync(poke.crosses)(ANSWER_S)
    return "ok" if crosses else "failing", "ok" if _broker_answers() else "failing"


def _broker_answers() -> bool:
    try:
        with import_string(settings.TASK_APPLICATION)().connection_for_write(connect_timeout=ANSWER_S) as connection:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=int(ANSWER_S))
    except Exception as error:  # noqa: BLE001  each transport has errors of its own
        logger.warning("broker_failed", error=type(error).__name__)
        return False
    return True


_services = _Kept(_look_at_services)
_work = _Kept(_look_at_work)
