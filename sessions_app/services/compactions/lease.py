"""The right to run an attempt: 30 seconds by the database's clock, renewed by its holder, fenced by a token."""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now

from sessions_app.engine.terms import Phase, Status
from sessions_app.models import Compaction, Lease, Session
from sessions_app.services.compactions.transitions import move

LEASE_S = 30
RENEW_S = 5
FIRST_DEADLINE_S = 120
"""What an attempt has until its plan says how many chunks there are."""


class LeaseLost(Exception):
    """Somebody else ended this attempt, or its lease ran out: its worker must write nothing more."""


@dataclass(frozen=True)
class Claim:
    """A claimed attempt. Every write of its worker names `token`."""

    compaction_id: uuid.UUID
    session_id: uuid.UUID
    token: uuid.UUID


def claim(compaction_id: uuid.UUID) -> Claim | None:
    """Takes a requested attempt, once: None when it is not to be had, which is what a redelivered task finds."""
    token = uuid.uuid4()
    with transaction.atomic():
        # The session's row first, as in every ending: a claim that met one halfway would wait for it crosswise.
        session = Session.objects.select_for_update(of=("self",), no_key=True).filter(compactions=compaction_id).only("pk").first()
        if session is None:
            return None
        session_id = session.pk
        deadline = Now() + timedelta(seconds=FIRST_DEADLINE_S)
        columns: dict[str, Any] = {
            "phase": Phase.LEASE,
            "lease_token": token,
            "started_at": Now(),
            "heartbeat_at": Now(),
            "deadline_at": deadline,
        }
        if not move(compaction_id, Status.RUNNING, **columns):
            return None
        if not _take(session_id, compaction_id, token):
            transaction.set_rollback(True)
            return None
    return Claim(compaction_id, session_id, token)


def retake(compaction_id: uuid.UUID, session_id: uuid.UUID) -> Claim | None:
    """Takes the lease for a draft that is to be committed: None when an attempt holds it. Call with the session's row locked."""
    token = uuid.uuid4()
    if not Compaction.objects.filter(pk=compaction_id, status=Status.DRAFTED).update(lease_token=token, heartbeat_at=Now()):
        return None
    return Claim(compaction_id, session_id, token) if _take(session_id, compaction_id, token) else None


def _take(session_id: uuid.UUID, compaction_id: uuid.UUID, token: uuid.UUID) -> bool:
    Lease.objects.get_or_create(session_id=session_id)
    free = Lease.objects.filter(Q(token=None) | Q(expires_at__lte=Now()), session_id=session_id)
    return bool(free.update(token=token, compaction_id=compaction_id, expires_at=Now() + timedelta(seconds=LEASE_S)))


def renew(held: Claim) -> bool:
    """Prolongs a lease that has not run out. False: it is lost, for good."""
    alive = Lease.objects.filter(session_id=held.session_id, token=held.token, expires_at__gt=Now())
    if not alive.update(expires_at=Now() + timedelta(seconds=LEASE_S)):
        return False
    return bool(Compaction.objects.filter(pk=held.compaction_id, lease_token=held.token).update(heartbeat_at=Now()))


def write(held: Claim, **columns: object) -> None:
    """Writes columns of the running attempt. Raises `LeaseLost` when it is not this worker's any more."""
    rows = Compaction.objects.filter(pk=held.compaction_id, lease_token=held.token, status=Status.RUNNING)
    if not rows.update(**columns):
        raise LeaseLost


def from_start(seconds: int) -> CombinedExpression:
    """The moment that lies `seconds` after the attempt started, as the database reckons it."""
    return F("started_at") + timedelta(seconds=seconds)


def release(compaction_id: uuid.UUID) -> None:
    """Frees the session for the next attempt. Call in the transaction that ends this one."""
    Lease.objects.filter(compaction_id=compaction_id).update(token=None, compaction=None, expires_at=None)


def give_up(held: Claim) -> None:
    """Lets a lease lapse now, so that the next sweep ends its attempt without waiting for the clock."""
    Lease.objects.filter(session_id=held.session_id, token=held.token).update(expires_at=Now())


def lapsed() -> QuerySet[Compaction]:
    """Running attempts that no live lease stands behind: their worker is gone. What a runner still may report on has none."""
    alive = Lease.objects.filter(compaction=OuterRef("pk"), token=OuterRef("lease_token"), expires_at__gt=Now())
    rows = Compaction.objects.filter(~Exists(alive), status=Status.RUNNING)
    return rows.exclude(operation_id__isnull=False, deadline_at__gt=Now())


def database_time() -> datetime:
    """What the database holds for the time. One query."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT CURRENT_TIMESTAMP")
        told = cursor.fetchone()[0]
    moment = told if isinstance(told, datetime) else datetime.fromisoformat(told)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
