"""The rows of flushes: begun before anything is taken, ended by one conditional UPDATE, repaired where that did not come about."""

import time
import uuid
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import msgspec
import structlog
from django.conf import settings
from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import F, Max, Q, QuerySet
from django.db.models.expressions import Combinable
from django.db.models.functions import Now

from sessions_app import queue
from sessions_app.engine.flush import ArchiveReason, Receipt, ReceiptStatus, safety_of, semantic_status, stored_status
from sessions_app.engine.policy import Policy
from sessions_app.engine.state import MechanicalState
from sessions_app.engine.steps import ShouldStop, Stop, Stopped
from sessions_app.engine.terms import FlushMode, Trigger
from sessions_app.events import log
from sessions_app.events.actors import Actor, system_actor
from sessions_app.events.types import EventType
from sessions_app.models import Compaction, EventResult, MemoryFlush, Session, SessionRelation
from sessions_app.permissions import Action, require
from sessions_app.selectors import plans
from sessions_app.services import memory
from sessions_app.services.memory import Kept, Origin
from sessions_app.services.memory_extraction import (
    FlushTask,
    Gathered,
    HistoryChanged,
    Offered,
    changed_receipt,
    error_receipt,
    gather,
    receipt_for,
    skipped_receipt,
)

logger = structlog.get_logger(__name__)

WORKER = system_actor("memory")
GRACE_S = 30
"""So long after its own deadline nobody is at a flush any more."""

MOST_TRIES = 5
FIRST_RETRY_S = 60
REPAIRS_AT_ONCE = 5
_TO_REPAIR = (ReceiptStatus.FAILED, ReceiptStatus.DEGRADED)
_COVERED = (ReceiptStatus.SAFE, ReceiptStatus.NOTHING_FOUND, ReceiptStatus.REPAIRED)
BUSY = "another flush of this session was under way"
LOST = "the process that ran it stopped"


@dataclass(frozen=True)
class FlushClaim:
    """The right to end one flush. `is_repair`: it is not the first try."""

    task: FlushTask
    token: uuid.UUID
    is_repair: bool = False


def is_enabled(policy: Policy) -> bool:
    """Whether anything is kept: the policy wants it, and the installation's switch is not off."""
    return policy.flush_mode is not FlushMode.OFF and settings.SESSION_FLUSH


def task_of(compaction: Compaction, policy: Policy, *, last: int, prefix_hash: bytes) -> FlushTask | None:
    """The flush that an attempt needs: what no flush of its session covers safely yet. None where that is nothing.

    A sub-agent is told what to do by its agent: that is no person's rule, and what the person said stands in the agent's session.
    """
    if compaction.session.relation == SessionRelation.SUB_AGENT:
        return None
    first = _uncovered_from(compaction.session_id)
    if first > last:
        return None
    return FlushTask(
        compaction_id=compaction.pk,
        session_id=compaction.session_id,
        project_id=compaction.session.project_id,
        first=first,
        last=last,
        prefix_hash=prefix_hash,
        policy=policy,
        trigger=Trigger(compaction.trigger),
        author=compaction.requested_by,
        excluded=plans.overrides_of(compaction.session).excluded,
    )


def _uncovered_from(session_id: uuid.UUID) -> int:
    """The first entry that no flush covers safely."""
    covered = MemoryFlush.objects.filter(session_id=session_id, status__in=_COVERED).aggregate(last=Max("last_index"))["last"]
    return 0 if covered is None else covered + 1


def deadline(until: float) -> ShouldStop:
    """Stops at a moment of the monotonic clock."""
    return lambda: Stop.TIMED_OUT if time.monotonic() >= until else None


def begin(task: FlushTask) -> FlushClaim | None:
    """Stores the flush as pending. None when one of this session is under way: of two at a time the second is not begun.

    None as well where another one has covered all of it since the task was made; what it covered of it is left out.
    """
    end_lost(session_id=task.session_id)
    token = uuid.uuid4()
    try:
        with transaction.atomic():
            row = _row(task, token=token, expires_at=Now() + _lasts(task))
            row.save(force_insert=True)
            # Only now no other one can end in between.
            task = replace(task, first=max(task.first, _uncovered_from(task.session_id)))
            if task.first > task.last:
                transaction.set_rollback(True)
                return None
            MemoryFlush.objects.filter(pk=row.pk).update(first_index=task.first)
    except IntegrityError:
        return None
    return FlushClaim(task, token)


def drop(task: FlushTask) -> Receipt:
    """Stores a flush that was not begun, so that its entries are not forgotten: a repair takes them up."""
    receipt = error_receipt(task, BUSY)
    with transaction.atomic():
        row = _row(task, status=ReceiptStatus.FAILED, receipt=msgspec.to_builtins(receipt), finished_at=Now())
        row.retry_at = _retry_at(task.policy.flush_mode, 1)
        row.save(force_insert=True)
        _tell(task, receipt, ReceiptStatus.FAILED, WORKER)
    return receipt


def _row(task: FlushTask, **columns: Any) -> MemoryFlush:
    return MemoryFlush(
        compaction_id=task.compaction_id,
        session_id=task.session_id,
        project_id=task.project_id,
        mode=task.policy.flush_mode,
        first_index=task.first,
        last_index=task.last,
        prefix_hash=task.prefix_hash,
        asked_by=task.author,
        started_at=Now(),
        **columns,
    )


def _lasts(task: FlushTask) -> timedelta:
    return timedelta(seconds=task.policy.flush_background_timeout_s + GRACE_S)


def _retry_at(mode: str, tries: int) -> Combinable | None:
    """When it is tried again by itself: `best_effort` never, the others at growing distances, a few times."""
    if mode == FlushMode.BEST_EFFORT or tries >= MOST_TRIES:
        return None
    return Now() + timedelta(seconds=FIRST_RETRY_S * 2 ** (tries - 1))


def carry_out(held: FlushClaim, offered: Offered, should_stop: ShouldStop) -> Receipt | None:
    """Takes, keeps and ends a flush that was begun. None when it is somebody else's by now, who then says what became of it."""
    begun = time.monotonic()

    def waited_for() -> MechanicalState | None:
        nonlocal begun
        waits = time.monotonic()
        state = offered()
        begun += time.monotonic() - waits  # what the attempt took is none of the flush's time
        return state

    try:
        gathered = gather(held.task, waited_for, should_stop)
        return _finish(held, gathered, begun)
    except Stopped:
        return _end(held, skipped_receipt(held.task))
    except HistoryChanged:
        return _end(held, changed_receipt(held.task))
    except Exception as error:
        logger.exception("memory_flush_failed", compaction=str(held.task.compaction_id))
        return _end(held, error_receipt(held.task, type(error).__name__))


def _finish(held: FlushClaim, gathered: Gathered, begun: float) -> Receipt | None:
    task = held.task
    try:
        with transaction.atomic():
            if not _lock(held):
                return None
            kept = Kept(frozenset(), 0)
            if gathered.candidates and task.project_id is not None:
                kept = memory.keep(gathered.candidates, Origin(task.project_id, task.session_id, task.compaction_id, task.author))
            receipt = receipt_for(task, gathered, kept, _elapsed_ms(begun))
            _store(held, receipt)
            return receipt
    except DatabaseError:
        logger.exception("memory_not_stored", compaction=str(task.compaction_id))
    return _end(held, receipt_for(task, Gathered(failure=ArchiveReason.STORE_ERROR), Kept(frozenset(), 0), _elapsed_ms(begun)))


def _elapsed_ms(begun: float) -> int:
    return int((time.monotonic() - begun) * 1000)


def _end(held: FlushClaim, receipt: Receipt) -> Receipt | None:
    with transaction.atomic():
        if not _lock(held):
            return None
        _store(held, receipt)
    return receipt


def _lock(held: FlushClaim) -> bool:
    """Whether the flush is still this claim's. Takes the session's row first, as every commit and ending does."""
    Session.objects.select_for_update(of=("self",), no_key=True).filter(pk=held.task.session_id).only("pk").first()
    return _held(held.task.compaction_id, held.token).exists()


def _held(compaction_id: uuid.UUID, token: uuid.UUID) -> QuerySet[MemoryFlush]:
    return MemoryFlush.objects.filter(pk=compaction_id, status=ReceiptStatus.PENDING, token=token)


def _store(held: FlushClaim, receipt: Receipt) -> None:
    """Makes the flush final and tells it, in the caller's transaction."""
    status = stored_status(receipt)
    if held.is_repair and status in _COVERED:
        status = ReceiptStatus.REPAIRED
    rows = _held(held.task.compaction_id, held.token)
    tries, mode = rows.values_list("tries", "mode").get()
    retry_at = _retry_at(mode, tries) if status.needs_repair else None
    rows.update(status=status, receipt=msgspec.to_builtins(receipt), token=None, expires_at=None, finished_at=Now(), retry_at=retry_at)
    _tell(held.task, receipt, status, WORKER)


def _tell(task: FlushTask, receipt: Receipt, status: ReceiptStatus, actor: Actor) -> None:
    told: dict[str, object] = {
        "flush_receipt_status": status,
        "memory_safety_status": safety_of(receipt),
        "semantic_memory_status": semantic_status(status),
        "mode": receipt.mode,
        "result": receipt.result_status,
        "archive_reason": receipt.archive_reason,
        "facts_found": receipt.candidate_count,
        "facts_kept": receipt.stored_count,
        "facts_new": receipt.new_count,
        "missing": len(receipt.candidate_missing_ids),
        "invalid": receipt.invalid_candidate_count,
        "obligations": receipt.obligation_count,
        "obligations_added": receipt.obligation_backfilled_count,
        "first_entry": task.first,
        "last_entry": task.last,
        "content_hash": receipt.content_hash,
        "model": receipt.model,
        "calls": receipt.calls,
        "duration_ms": receipt.duration_ms,
    }
    log.append(
        log.session_stream(task.session_id),
        EventType.MEMORY_FLUSH_FAILED if status.needs_repair else EventType.MEMORY_FLUSHED,
        actor=actor,
        result=EventResult.FAILED if status is ReceiptStatus.FAILED else EventResult.ALLOWED,
        target=("compaction", str(task.compaction_id)),
        compaction_id=task.compaction_id,
        reason=receipt.error,
        payload=told,
    )


def end_lost(*, session_id: uuid.UUID | None = None) -> int:
    """Ends flushes as failed whose process is gone; a repair takes them up. Returns how many. Of one session, or of all."""
    lost = MemoryFlush.objects.filter(status=ReceiptStatus.PENDING, expires_at__lte=Now())
    if session_id is not None:
        lost = lost.filter(session_id=session_id)
    count = 0
    for row in list(lost.select_related("compaction", "session")):
        if row.token is not None:
            task = _task(row)
            count += _end(FlushClaim(task, row.token), error_receipt(task, LOST)) is not None
    return count


def give_up(claims: list[FlushClaim]) -> int:
    """Lets these lapse now: their process ends. Returns how many were still its own."""
    return sum(_held(held.task.compaction_id, held.token).update(expires_at=Now()) for held in claims)


def requeue_repairs() -> int:
    """Queues the repairs that are due, a few at a time. A task that comes twice does nothing the second time."""
    if not settings.SESSION_FLUSH:
        return 0
    due = Q(status__in=_TO_REPAIR, retry_at__lte=Now())
    count = 0
    for compaction_id in list(MemoryFlush.objects.filter(due).order_by("retry_at").values_list("pk", flat=True)[:REPAIRS_AT_ONCE]):
        with transaction.atomic():
            if MemoryFlush.objects.filter(due, pk=compaction_id).update(retry_at=_soon()):
                queue.enqueue(queue.REPAIR_MEMORY, str(compaction_id))
                count += 1
    return count


def repair(compaction_id: uuid.UUID) -> Receipt | None:
    """Tries a failed or degraded flush again, here and now. None when it needs no repair, or another of its session is under way."""
    row = _loaded(compaction_id)
    if row is None or not ReceiptStatus(row.status).needs_repair:
        return None
    task, token = _task(row), uuid.uuid4()
    try:
        with transaction.atomic():
            rows = MemoryFlush.objects.filter(pk=compaction_id, status__in=_TO_REPAIR)
            columns = {"token": token, "expires_at": Now() + _lasts(task), "tries": F("tries") + 1, "retry_at": None}
            if not rows.update(status=ReceiptStatus.PENDING, **columns):
                return None
    except IntegrityError:
        return None
    until = time.monotonic() + task.policy.flush_background_timeout_s
    return carry_out(FlushClaim(task, token, is_repair=True), lambda: None, deadline(until))


def ask_for_repairs(*, actor: Actor, compaction_ids: list[uuid.UUID]) -> int:
    """Has workers try these again now, also those that are not tried again by themselves. Returns how many are."""
    require(actor, Action.CHANGE_MEMORY)
    count = 0
    for compaction_id in compaction_ids:
        with transaction.atomic():
            if MemoryFlush.objects.filter(pk=compaction_id, status__in=_TO_REPAIR).update(retry_at=_soon(), tries=1):
                _tell_asked(actor, compaction_id)
                queue.enqueue(queue.REPAIR_MEMORY, str(compaction_id))
                count += 1
    return count


def repair_now(*, actor: Actor, compaction_id: uuid.UUID) -> Receipt | None:
    """Tries one again in the caller's thread. None when it needs no repair by now, or another of its session is under way."""
    require(actor, Action.CHANGE_MEMORY)
    _tell_asked(actor, compaction_id)
    return repair(compaction_id)


def _soon() -> Combinable:
    """When a sweep looks after what a queue lost."""
    return Now() + timedelta(seconds=FIRST_RETRY_S)


def _tell_asked(actor: Actor, compaction_id: uuid.UUID) -> None:
    session_id = MemoryFlush.objects.values_list("session_id", flat=True).get(pk=compaction_id)
    log.append(
        log.session_stream(session_id),
        EventType.MEMORY_REPAIR_REQUESTED,
        actor=actor,
        target=("compaction", str(compaction_id)),
        compaction_id=compaction_id,
    )


def _loaded(compaction_id: uuid.UUID) -> MemoryFlush | None:
    return MemoryFlush.objects.select_related("compaction", "session").filter(pk=compaction_id).first()


def _policy_of(compaction: Compaction) -> Policy:
    """The policy of an attempt as it was; the default one where that can't be read any more: a flush must not stay open for it."""
    try:
        return msgspec.convert(compaction.policy["values"], Policy)
    except (KeyError, ValueError):
        logger.warning("memory_policy_unreadable", compaction=str(compaction.pk))
        return Policy()


def _task(row: MemoryFlush) -> FlushTask:
    return FlushTask(
        compaction_id=row.compaction_id,
        session_id=row.session_id,
        project_id=row.session.project_id,
        first=row.first_index,
        last=row.last_index,
        prefix_hash=bytes(row.prefix_hash),
        policy=_policy_of(row.compaction),
        trigger=Trigger(row.compaction.trigger),
        author=row.asked_by,
        excluded=plans.overrides_of(row.session).excluded,
    )
