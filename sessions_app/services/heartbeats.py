"""Signs of life of workers. They are no events: they say who is there now, and nothing of what was done."""

from collections.abc import Collection
from datetime import timedelta

from django.db.models.functions import Now

from sessions_app.models import WorkerHeartbeat

FORGET_AFTER = timedelta(days=1)
"""A worker that ended without a word is named so long by what it left."""


def beat(worker: str, queues: Collection[str]) -> None:
    """Writes down that the worker lives and takes from these queues. One statement."""
    WorkerHeartbeat.objects.bulk_create(
        [WorkerHeartbeat(worker=worker, queues=sorted(queues), at=Now())],
        update_conflicts=True,
        unique_fields=["worker"],
        update_fields=["queues", "at"],
    )


def end(worker: str) -> None:
    """The worker takes nothing more."""
    WorkerHeartbeat.objects.filter(worker=worker).delete()


def forget_old() -> int:
    """Removes what workers left that ended without a word. Returns how many."""
    return WorkerHeartbeat.objects.filter(at__lt=Now() - FORGET_AFTER).delete()[0]
