"""Every status that an attempt may have, and how it gets from one to the next. Nothing else writes a status."""

import uuid

from sessions_app.engine.terms import Status
from sessions_app.models import Compaction

TRANSITIONS: dict[Status, frozenset[Status]] = {
    Status.WAITING_FOR_IDLE: frozenset({Status.REQUESTED, Status.CANCELLED, Status.TIMED_OUT}),
    Status.REQUESTED: frozenset({Status.RUNNING, Status.CANCELLED, Status.EMERGENCY_EPHEMERAL}),
    Status.RUNNING: frozenset(
        {
            Status.COMPLETED,
            Status.DRAFTED,
            Status.SKIPPED,
            Status.STALE,
            Status.CANCELLED,
            Status.TIMED_OUT,
            Status.FAILED,
            Status.EMERGENCY_EPHEMERAL,
        }
    ),
    # Committed by a person, a draft never runs again: a redelivered task must not be able to claim it.
    Status.DRAFTED: frozenset({Status.COMPLETED, Status.STALE, Status.CANCELLED}),
}
"""From → to. A status that is no key here is terminal: nothing leads out of it."""


def sources_of(status: Status) -> list[Status]:
    """The statuses from which `status` may be reached."""
    return [source for source, targets in TRANSITIONS.items() if status in targets]


def move(compaction_id: uuid.UUID, to: Status, *, token: uuid.UUID | None = None, **columns: object) -> bool:
    """Moves an attempt to another status in one conditional UPDATE; False when it is not where it would have to be.

    With `token`, only while the attempt is held under that lease. `columns` are written in the same statement.
    """
    rows = Compaction.objects.filter(pk=compaction_id, status__in=sources_of(to))
    if token is not None:
        rows = rows.filter(lease_token=token)
    return rows.update(status=to, **columns) == 1
