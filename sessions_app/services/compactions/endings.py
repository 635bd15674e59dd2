"""The one way in which an attempt ends without a checkpoint, and what every ending gives back to the session."""

import uuid
from collections.abc import Mapping

import msgspec
from django.db import transaction
from django.db.models.functions import Now

from sessions_app.engine.steps import Ended
from sessions_app.engine.terms import CoverageStatus, Outcome, SkipReason, Status
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import Compaction, Session, SessionStatus
from sessions_app.selectors import drafts_page
from sessions_app.services.compactions import breakers, lease, unknown
from sessions_app.services.compactions.step_events import WORKER, append_step
from sessions_app.services.compactions.transitions import move
from sessions_app.services.turns import claims

CANCELLED = Ended(
    status=Status.CANCELLED,
    outcome=Outcome.CANCELLED,
    reason="cancelled",
    explanation="It was cancelled before anything was changed.",
)
TIMED_OUT = Ended(
    status=Status.TIMED_OUT,
    outcome=Outcome.TIMED_OUT,
    reason="deadline",
    explanation="It took longer than it may, and was stopped. Nothing was changed. Try again, or with a shorter session.",
)
NEVER_IDLE = Ended(
    status=Status.TIMED_OUT,
    outcome=Outcome.TIMED_OUT,
    reason=SkipReason.NEVER_IDLE,
    explanation="The session stayed busy for as long as this waited. Nothing was changed. Try again when its turn is over.",
)
WORKER_LOST = Ended(
    status=Status.FAILED,
    outcome=Outcome.FAILED,
    reason=SkipReason.WORKER_LOST,
    explanation="The process that ran it stopped. Nothing was changed. Start it again.",
)
STALE = Ended(
    status=Status.STALE,
    outcome=Outcome.STALE,
    reason=SkipReason.STALE_PREIMAGE,
    explanation="What it had folded was changed meanwhile, so its summary was not used. Nothing was changed. Start it again.",
)


def end(
    compaction_id: uuid.UUID,
    ended: Ended,
    *,
    token: uuid.UUID | None = None,
    actor: Actor = WORKER,
    counts_as: Outcome | None = None,
    columns: Mapping[str, object] | None = None,
) -> bool:
    """Ends an attempt without a checkpoint; False when it had already ended, or moved on, or `token` lost its lease.

    One transaction: terminal status, lease freed, session given back, the breaker counted, the terminal event.
    `counts_as`: what the breaker takes it for, where that is not its outcome; `columns` are stored with it.
    """
    with transaction.atomic():
        # The session's row first, as in a commit: two that end the same attempt then wait, and never block each other.
        Session.objects.select_for_update(of=("self",), no_key=True).filter(compactions=compaction_id).first()
        moved = move(
            compaction_id,
            ended.status,
            token=token,
            outcome=ended.outcome,
            reason=str(ended.reason)[:80],
            explanation=ended.explanation,
            **({"coverage_status": ended.coverage_status} if ended.coverage_status is not CoverageStatus.UNKNOWN else {}),
            rungs=msgspec.to_builtins(ended.rungs),
            summarisers_tried=msgspec.to_builtins(ended.tried),
            finished_at=Now(),
            **(columns or {}),
        )
        if not moved:
            return False
        give_back(compaction_id)
        breakers.count(compaction_id, counts_as or ended.outcome)
        append_step(compaction_id, EventType.COMPACTION_TRIGGERED, status=ended.status, actor=actor)
    return True


def end_lost(compaction_id: uuid.UUID, *, actor: Actor = WORKER) -> bool:
    """Ends an attempt whose lease has lapsed: its worker is gone. False when its worker was quicker, or still holds it."""
    if not lease.lapsed().filter(pk=compaction_id).exists():
        return False
    with transaction.atomic():
        # Looked at again under the session's lock, which every ending takes first.
        Session.objects.select_for_update(of=("self",), no_key=True).filter(compactions=compaction_id).first()
        ended = unknown.if_forwarded(compaction_id) or WORKER_LOST
        return lease.lapsed().filter(pk=compaction_id).exists() and end(compaction_id, ended, actor=actor)


def give_back(compaction_id: uuid.UUID) -> None:
    """Frees the lease, and puts the session's status back unless something else has changed it meanwhile."""
    lease.release(compaction_id)
    session_id, before = Compaction.objects.values_list("session_id", "session_status_before").get(pk=compaction_id)
    Session.objects.filter(pk=session_id, running_id=compaction_id).update(running=None)
    if before:
        Session.objects.filter(pk=session_id, status=SessionStatus.COMPACTING).update(status=before)
    transaction.on_commit(drafts_page.count_anew)  # it may have been one, or become one
    claims.go_on(session_id)  # messages that came meanwhile wait for it
