"""The five-step events of an attempt: numbered from 1 within it, with what is known of it at that moment."""

import uuid

from django.db.models import F
from django.utils import timezone

from sessions_app.engine.flush import ReceiptStatus
from sessions_app.engine.terms import OPEN_STATUSES, CoverageStatus, FlushMode, SkipReason, Status, SummarySource, Trigger
from sessions_app.events import log
from sessions_app.events.actors import Actor, system_actor
from sessions_app.events.types import FIVE_STEPS, EventType
from sessions_app.models import Compaction, Event, EventResult

WORKER = system_actor("worker")
STARTED, OBSERVED, REPLAYED = "started", "observed", "replayed"
"""Words of the lifecycle that are no status of an attempt."""

_TOLD = (
    "step", "reason", "status", "outcome", "phase", "trigger", "evaluation", "policy", "turn_id", "tokens_before", "tokens_after",
    "entries_folded", "entries_kept", "chunk_index", "chunk_count", "summary_source", "coverage_status", "started_at", "finished_at",
    "session__window", "session__trigger_tokens", "session__signal_tokens", "session__signal_origin", "memory_flush__status",
)  # fmt: skip
"""Columns of which an event tells: an attempt's whole row holds what was found in its history, some hundred kilobytes."""


def append_step(
    compaction_id: uuid.UUID, event_type: EventType, *, status: str, actor: Actor = WORKER, source: SummarySource | None = None
) -> log.Appended:
    """Appends the attempt's next step in the caller's transaction. `status` is the word of the lifecycle table.

    `source`: who wrote what the step tells of, while the attempt's row does not say it yet.
    """
    Compaction.objects.filter(pk=compaction_id).update(step=F("step") + 1)
    compaction = Compaction.objects.select_related("session", "memory_flush").only(*_TOLD).get(pk=compaction_id)
    return log.append(
        log.session_stream(compaction.session_id),
        event_type,
        actor=actor,
        result=EventResult.FAILED if status in {Status.FAILED, Status.TIMED_OUT} else EventResult.ALLOWED,
        target=("compaction", str(compaction_id)),
        compaction_id=compaction_id,
        step=compaction.step,
        reason=compaction.reason,
        payload=_payload(compaction, event_type, status, source),
    )


def append_heartbeat(compaction: Compaction, phase: str, elapsed_s: float) -> log.Appended:
    """Appends the sign of life of an attempt that is at work in `phase`."""
    return log.append(
        log.session_stream(compaction.session_id),
        EventType.COMPACTION_HEARTBEAT,
        actor=WORKER,
        target=("compaction", str(compaction.pk)),
        compaction_id=compaction.pk,
        payload={"phase": phase, "elapsed_ms": int(elapsed_s * 1000)},
    )


BENIGN = frozenset({SkipReason.EMPTY_SESSION, SkipReason.FEWER_THAN_THREE_ROUNDS, SkipReason.NOTHING_TO_FOLD, SkipReason.WOULD_NOT_SHRINK})
"""Why an attempt that started by itself may end without anybody being told."""


def _payload(compaction: Compaction, event_type: EventType, status: str, source: SummarySource | None) -> dict[str, object]:
    after = compaction.tokens_after
    is_applied = status in {Status.COMPLETED, Status.EMERGENCY_EPHEMERAL, REPLAYED}
    window = compaction.evaluation.get("window") or compaction.session.window
    payload: dict[str, object] = {
        "status": status,
        "event": event_type.value,
        "event_chain": _chain(compaction.pk, event_type),
        "phase": compaction.phase,
        "trigger": compaction.trigger,
        "source": "manual" if compaction.trigger == Trigger.MANUAL else "automatic",
        "applied": is_applied,
        "durability": _durability(status),
        "user_visible": _is_visible(compaction, status),
        "tokens_before": compaction.tokens_before,
        "tokens_after": after,
        "remaining_budget_tokens": None if after is None else compaction.session.trigger_tokens - after,
        "removed_count": compaction.entries_folded,
        "kept_count": compaction.entries_kept,
        "chunk_index": compaction.chunk_index,
        "chunk_count": compaction.chunk_count,
        "summary_source": source.value if source else compaction.summary_source if is_applied else SummarySource.SKIPPED.value,
        "coverage_status": compaction.coverage_status or CoverageStatus.UNKNOWN,
        "flush_receipt_status": _flush_receipt_status(compaction, status),
        "elapsed_ms": _elapsed_ms(compaction),
    }
    if status == STARTED:
        signal = {"signal_tokens": compaction.session.signal_tokens, "signal_origin": compaction.session.signal_origin}
        payload |= signal | {"window": window, "heartbeat_s": compaction.policy.get("values", {}).get("heartbeat_s")}
    if compaction.turn_id:
        payload["turn_id"] = str(compaction.turn_id)
    if compaction.status not in OPEN_STATUSES:
        payload["outcome"] = compaction.outcome
    return payload


def _flush_receipt_status(compaction: Compaction, status: str) -> str:
    """What is known of the flush beside it at this moment: `pending` until that has ended, whichever of the two comes first."""
    if status == Status.EMERGENCY_EPHEMERAL:
        return Status.EMERGENCY_EPHEMERAL.value
    flush = getattr(compaction, "memory_flush", None)
    if flush is not None:
        return str(flush.status)
    mode = compaction.policy.get("values", {}).get("flush_mode", FlushMode.OFF)
    is_open_yet = status == STARTED and mode != FlushMode.OFF  # the plan decides whether anything has to be kept
    return (ReceiptStatus.UNKNOWN if is_open_yet else ReceiptStatus.NOT_REQUIRED).value


def _durability(status: str) -> str:
    if status in {Status.COMPLETED, REPLAYED}:
        return "durable"
    return "request_scoped" if status == Status.EMERGENCY_EPHEMERAL else "none"


def _is_visible(compaction: Compaction, status: str) -> bool:
    """Whether people are told. Nobody asked for what started by itself: that it had nothing to do, or lost a race, is no news."""
    if compaction.trigger == Trigger.MANUAL:
        return True
    return status != Status.STALE and not (status == Status.SKIPPED and compaction.reason in BENIGN)


def _elapsed_ms(compaction: Compaction) -> int:
    """Milliseconds since the attempt started; 0 for one that never did."""
    if compaction.started_at is None:
        return 0
    return int(((compaction.finished_at or timezone.now()) - compaction.started_at).total_seconds() * 1000)


def _chain(compaction_id: uuid.UUID, last: EventType) -> list[str]:
    """Which of the five steps the attempt reached, in their order."""
    seen = set(Event.objects.filter(compaction_id=compaction_id, step__isnull=False).values_list("type", flat=True)) | {last}
    return [event_type.value for event_type in EventType if event_type in FIVE_STEPS and event_type in seen]
