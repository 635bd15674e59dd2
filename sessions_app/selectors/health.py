"""Whether the database, the channel layer and the broker answer, and a worker is at work."""

import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog
from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import DatabaseError
from django.utils.module_loading import import_string

from sessions_app.engine.terms import Status
from sessions_app.live import poke
from sessions_app.models import Compaction, ImportRun, ImportState

logger = structlog.get_logger(__name__)

UNCLAIMED_AFTER = timedelta(seconds=60)
ANSWER_S = 2.0
"""How long a service may take before it counts as failing."""

KEEP_S = 2.0
"""An answer of the services is given again for so long: nobody is signed in here, and each look costs them a little."""


@dataclass(frozen=True)
class HealthReport:
    """One word each. `worker` is judged by its work: `stalled` when something waits that nobody took."""

    database: str
    layer: str
    broker: str
    worker: str

    @property
    def is_well(self) -> bool:
        return {self.database, self.layer, self.broker, self.worker} == {"ok"}

    @property
    def status(self) -> str:
        return "ok" if self.is_well else "failing"


def health_report() -> HealthReport:
    """Two queries, one message over the layer, one connection to the broker; never raises."""
    layer, broker = _services.report()
    database, worker = _work()
    return HealthReport(database=database, layer=layer, broker=broker, worker=worker)


def _work() -> tuple[str, str]:
    """(database, worker), each in one word."""
    limit = datetime.now(UTC) - UNCLAIMED_AFTER
    try:
        waiting = (
            Compaction.objects.filter(status=Status.REQUESTED, requested_at__lt=limit).exists()
            or ImportRun.objects.filter(state=ImportState.QUEUED, requested_at__lt=limit).exists()
        )
    except DatabaseError:
        return "failing", "unknown"
    return "ok", "stalled" if waiting else "ok"


class _Services:
    """What the services answered last. One look at a time, however many ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answer = ("unknown", "unknown")
        self._good_until = 0.0

    def report(self) -> tuple[str, str]:
        """(layer, broker), each in one word."""
        with self._lock:
            if time.monotonic() >= self._good_until:
                crosses = async_to_sync(poke.crosses)(ANSWER_S)
                self._answer = ("ok" if crosses else "failing", "ok" if _broker_answers() else "failing")
                self._good_until = time.monotonic() + KEEP_S
            return self._answer

    def forget(self) -> None:
        with self._lock:
            self._good_until = 0.0


_services = _Services()


def _broker_answers() -> bool:
    try:
        with import_string(settings.TASK_APPLICATION)().connection_for_write(connect_timeout=ANSWER_S) as connection:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=int(ANSWER_S))
    except Exception as error:  # noqa: BLE001  each transport has errors of its own
        logger.warning("broker_failed", error=type(error).__name__)
        return False
    return True
