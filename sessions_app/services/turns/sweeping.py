"""What the sweep does for turns: ends those that their worker left, and queues messages again that nobody delivered."""

import uuid
from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from sessions_app import queue
from sessions_app.events.actors import Actor
from sessions_app.models import Session, Turn, TurnStatus
from sessions_app.services.compactions.lease import LEASE_S
from sessions_app.services.turns.claims import lapsed
from sessions_app.services.turns.endings import WORKER_LOST, end


def end_lost(actor: Actor) -> int:
    """Ends running turns that no live lease stands behind. Returns how many."""
    return sum(end_one_lost(turn_id, actor) for turn_id in list(lapsed().values_list("pk", flat=True)))


def end_one_lost(turn_id: uuid.UUID, actor: Actor) -> bool:
    """Ends one of them; False when its worker was quicker, or still holds it."""
    with transaction.atomic():
        # Looked at again under the session's lock, which every ending takes first.
        Session.objects.select_for_update(of=("self",), no_key=True).filter(turns=turn_id).first()
        return lapsed().filter(pk=turn_id).exists() and end(turn_id, WORKER_LOST, actor=actor)


def requeue(unclaimed_s: int) -> int:
    """Queues sessions again whose first message nobody has delivered for so long. A task that comes twice does nothing more."""
    old = Q(status=TurnStatus.QUEUED, queued_at__lte=Now() - timedelta(seconds=unclaimed_s))
    count = 0
    for session_id in set(Turn.objects.filter(old).values_list("session_id", flat=True)):
        if Turn.objects.filter(session_id=session_id, status=TurnStatus.RUNNING).exists():
            continue  # its end looks by itself
        with transaction.atomic():
            if Turn.objects.filter(old, session_id=session_id).update(queued_at=Now()):
                queue.enqueue(queue.RUN_TURN, str(session_id))
                count += 1
    return count


def set_right(latest_s: int) -> int:
    """Brings back what a clock that was ahead put into the future. Returns the rows."""
    latest = Now() + timedelta(seconds=latest_s)
    running = Turn.objects.filter(status=TurnStatus.RUNNING, lease_expires_at__gt=latest + timedelta(seconds=LEASE_S))
    count = running.update(lease_expires_at=Now() + timedelta(seconds=LEASE_S))
    return count + Turn.objects.filter(status=TurnStatus.QUEUED, queued_at__gt=latest).update(queued_at=Now())
