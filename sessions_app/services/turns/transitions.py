"""Every status that a turn may have, and how it gets from one to the next. Nothing else writes a status."""

import uuid

from sessions_app.models import Turn, TurnStatus

TRANSITIONS: dict[TurnStatus, frozenset[TurnStatus]] = {
    TurnStatus.QUEUED: frozenset({TurnStatus.RUNNING, TurnStatus.WITHDRAWN, TurnStatus.FAILED}),
    TurnStatus.RUNNING: frozenset({TurnStatus.COMPLETED, TurnStatus.FAILED, TurnStatus.CANCELLED}),
}
"""From → to. A status that is no key here is terminal: nothing leads out of it."""


def move(turn_id: uuid.UUID, to: TurnStatus, *, token: uuid.UUID | None = None, **columns: object) -> bool:
    """Moves a turn to another status in one conditional UPDATE; False when it is not where it would have to be.

    With `token`, only while the turn is held under that lease. `columns` are written in the same statement.
    """
    sources = [source for source, targets in TRANSITIONS.items() if to in targets]
    rows = Turn.objects.filter(pk=turn_id, status__in=sources)
    if token is not None:
        rows = rows.filter(lease_token=token)
    return rows.update(status=to, **columns) == 1
