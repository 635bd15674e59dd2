"""Whether the database answers and a worker is at work."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import DatabaseError

from sessions_app.engine.terms import Status
from sessions_app.models import Compaction, ImportRun, ImportState

UNCLAIMED_AFTER = timedelta(seconds=60)


@dataclass(frozen=True)
class HealthReport:
    """One word each. `worker` is judged by its work: `stalled` when something waits that nobody took."""

    database: str
    worker: str

    @property
    def is_well(self) -> bool:
        return self.database == "ok" and self.worker != "stalled"

    @property
    def status(self) -> str:
        return "ok" if self.is_well else "failing"


def health_report() -> HealthReport:
    """Two queries; never raises."""
    limit = datetime.now(UTC) - UNCLAIMED_AFTER
    try:
        waiting = (
            Compaction.objects.filter(status=Status.REQUESTED, requested_at__lt=limit).exists()
            or ImportRun.objects.filter(state=ImportState.QUEUED, requested_at__lt=limit).exists()
        )
    except DatabaseError:
        return HealthReport(database="failing", worker="unknown")
    return HealthReport(database="ok", worker="stalled" if waiting else "ok")
