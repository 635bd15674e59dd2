"""What a command does that follows an attempt in a process without a worker: who runs it, and what it waits for."""

from datetime import timedelta

from django.db.models.functions import Now

from sessions_app import queue
from sessions_app.engine.terms import Status
from sessions_app.models import Compaction, WorkerHeartbeat
from sessions_app.providers.registry import is_usable
from sessions_app.services import sweeper
from sessions_app.services.compactions.request import start_waiting

LIVING = timedelta(seconds=30)
"""A server gives a sign of life every ten seconds."""


def let_begin(compaction: Compaction) -> None:
    """Looks whether the session of a waiting attempt is idle by now, and lets it begin then. Leaves what others wait for to servers."""
    is_shared = queue.is_shared()
    sweeper.sweep(is_served=is_shared)
    if not is_shared and Compaction.objects.filter(pk=compaction.pk, status=Status.WAITING_FOR_IDLE).exists():
        start_waiting(compaction.pk, compaction.session_id, actor=sweeper.SWEEPER)


def runs_here(compaction: Compaction) -> bool:
    """Whether the command has to run the attempt itself: no worker gets it from the queue.

    Where a server lives that takes it at its next look, and a summariser of the policy can't be asked here, that is left to it: its
    keys are the ones that were set for that.
    """
    if queue.is_shared():
        return False
    return not (lacking(compaction) and is_taken_by_server("compactions"))


def lacking(compaction: Compaction) -> tuple[str, ...]:
    """The summarisers of the attempt's policy that can't be asked from this process."""
    names = compaction.policy.get("values", {}).get("summarisers", ())
    return tuple(name for name in names if not is_usable(name))


def is_taken_by_server(queue_name: str) -> bool:
    """Whether a server lives that takes from this queue."""
    living = WorkerHeartbeat.objects.filter(at__gt=Now() - LIVING)
    return any(queue_name in queues for queues in living.values_list("queues", flat=True))
