"""Emergency views: what one request is served with where no durable compaction came about. Nothing of them is stored but their attempt."""

import uuid

import msgspec
import structlog
from django.db import transaction

from sessions_app.engine.attempt import Task
from sessions_app.engine.attempt import trim as engine_trim
from sessions_app.engine.entries import Checkpoint
from sessions_app.engine.policy import Policy
from sessions_app.engine.steps import Commit, Ended, RungReport, ShouldStop, Stopped
from sessions_app.engine.terms import Lineage, Origin, Outcome, Rung, Scope, SkipReason, Status
from sessions_app.engine.triggers import Reason
from sessions_app.events.actors import Actor
from sessions_app.models import Compaction, Session
from sessions_app.selectors import plans
from sessions_app.services.compactions.endings import end
from sessions_app.services.compactions.request import open_attempt
from sessions_app.services.compactions.task import task_of

logger = structlog.get_logger(__name__)

COMPACT_FAILED = "compact_failed"
_RESCUED = frozenset({Outcome.FAILED, Outcome.TIMED_OUT})


def may_rescue(ended: Ended) -> bool:
    """Whether an attempt that ends so may leave its turn a trimmed view. A process that is about to end serves nobody any more."""
    return ended.outcome in _RESCUED and ended.status in {Status.FAILED, Status.TIMED_OUT} and ended.reason != SkipReason.WORKER_LOST


def rescue(compaction_id: uuid.UUID, should_stop: ShouldStop) -> Commit | None:
    """A trimmed view for the turn that waits for a failed attempt; None where none waits, none is due, or none can be made."""
    try:
        compaction = Compaction.objects.select_related("session").get(pk=compaction_id)
        policy = msgspec.convert(compaction.policy["values"], Policy)
        if compaction.turn_id is None or not policy.allow_fallback:
            return None
        task = task_of(compaction, plans.load_shapes(compaction.session_id), policy)
        return _trimmed(task, should_stop) if task.would_overflow else None
    except Stopped:
        return None
    except Exception:
        logger.exception("emergency_failed", compaction=str(compaction_id))
        return None


def end_with(compaction_id: uuid.UUID, ended: Ended, trimmed: Commit, *, token: uuid.UUID) -> bool:
    """Ends a failed attempt as an emergency; False when its lease is lost. The breaker counts the failure."""
    words = f"{ended.explanation} This request was served from a trimmed view instead."
    emergency = _ended(COMPACT_FAILED, words, ended, trimmed)
    return end(compaction_id, emergency, token=token, counts_as=ended.outcome, columns=_columns(trimmed))


def serve(attempt: Compaction, session: Session, *, actor: Actor) -> Commit | None:
    """A trimmed view while automatic compaction rests, and the attempt that tells of it; None where none can be made.

    `attempt`: a new one, not stored, with its `session`.
    """
    policy = msgspec.convert(attempt.policy["values"], Policy)
    trimmed = _trimmed(task_of(attempt, plans.load_shapes(session.pk), policy))
    if trimmed is None:
        return None
    words = "Automatic compaction rests after several failures. This request was served from a trimmed view; nothing was changed."
    with transaction.atomic():
        current = Session.objects.select_for_update(no_key=True).get(pk=session.pk)
        open_attempt(attempt, current)
        end(attempt.pk, _ended(Reason.CIRCUIT_OPEN, words, None, trimmed), actor=actor, columns=_columns(trimmed))
    return trimmed


def plan_of(trimmed: Commit, session: Session) -> Checkpoint:
    """The trimmed view as a plan, with what is pinned and excluded now; it has no generation, and no row stands behind it."""
    plan = Checkpoint(
        generation=0,
        lineage=Lineage.CONSOLE,
        segments=trimmed.segments,
        boundary_index=trimmed.boundary_index,
        cleared=frozenset(trimmed.cleared),
        trimmed=True,
    )
    return plans.with_overrides((plan,), plans.overrides_of(session))[-1]


def _trimmed(task: Task, should_stop: ShouldStop = lambda: None) -> Commit | None:
    found = engine_trim(task, should_stop=should_stop)
    return found if isinstance(found, Commit) else None


def _ended(reason: str, words: str, failure: Ended | None, trimmed: Commit) -> Ended:
    rung = RungReport(
        rung=Rung.EMERGENCY, tokens_before=trimmed.tokens_before, tokens_after=trimmed.tokens_after, entries=trimmed.entries_folded
    )
    return Ended(
        status=Status.EMERGENCY_EPHEMERAL,
        outcome=Outcome.EMERGENCY,
        reason=reason,
        explanation=words,
        rungs=(*(failure.rungs if failure else ()), rung),
        tried=failure.tried if failure else (),
    )


def _columns(trimmed: Commit) -> dict[str, object]:
    return {
        "boundary_index": trimmed.boundary_index,
        "boundary_source_id": trimmed.boundary_source_id,
        "entries_folded": trimmed.entries_folded,
        "entries_kept": trimmed.entries_kept,
        "summary_source": trimmed.summary_source,
        "tokens_before": trimmed.tokens_before,
        "tokens_before_origin": Origin.ESTIMATED,
        "tokens_before_scope": Scope.VIEW,
        "tokens_after": trimmed.tokens_after,
        "tokens_after_origin": Origin.ESTIMATED,
        "tokens_after_scope": Scope.VIEW,
    }
