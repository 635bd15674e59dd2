"""The five-step events of an attempt: numbered from 1 within it, with what is known of it at that moment."""

import uuid

from django.db.models import F
from django.utils import timezone

from sessions_app.engine.terms import Status
from sessions_app.events import log
from sessions_app.events.actors import Actor, system_actor
from sessions_app.events.types import FIVE_STEPS, EventType
from sessions_app.models import Compaction, Event, EventResult

WORKER = system_actor("worker")


def append_step(compaction_id: uuid.UUID, event_type: EventType, *, status: str, actor: Actor = WORKER) -> Event:
    """Appends the attempt's next step in the caller's transaction. `status` is the word of the lifecycle table."""
    Compaction.objects.filter(pk=compaction_id).update(step=F("step") + 1)
    compaction = Compaction.objects.select_related("session").get(pk=compaction_id)
    return log.append(
        log.session_stream(compaction.session_id),
        event_type,
        actor=actor,
        result=EventResult.FAILED if status in {Status.FAILED, Status.TIMED_OUT} else EventResult.ALLOWED,
        target=("compaction", str(compaction_id)),
        compaction_id=compaction_id,
        step=compaction.step,
        reason=compaction.reason,
        payload=_payload(compaction, event_type, status),
    )


def append_heartbeat(compaction: Compaction, phase: str, elapsed_s: float) -> Event:
    """Appends the sign of life of an attempt that is at work in `phase`."""
    return log.append(
        log.session_stream(compaction.session_id),
        EventType.COMPACTION_HEARTBEAT,
        actor=WORKER,
        target=("compaction", str(compaction.pk)),
        compaction_id=compaction.pk,
        payload={"phase": phase, "elapsed_ms": int(elapsed_s * 1000)},
    )


def _payload(compaction: Compaction, event_type: EventType, status: str) -> dict[str, object]:
    ends = compaction.status not in {Status.REQUESTED, Status.WAITING_FOR_IDLE, Status.RUNNING}
    applied = compaction.status == Status.COMPLETED
    after = compaction.tokens_after
    payload: dict[str, object] = {
        "status": status,
        "event": event_type.value,
        "phase": compaction.phase,
        "trigger": compaction.trigger,
        "applied": applied,
        "durability": "durable" if applied else "none",
        "user_visible": True,
        "tokens_before": compaction.tokens_before,
        "tokens_after": after,
        "remaining_budget_tokens": None if after is None else compaction.session.trigger_tokens - after,
        "removed_count": compaction.entries_folded,
        "kept_count": compaction.entries_kept,
        "chunk_index": compaction.chunk_index,
        "chunk_count": compaction.chunk_count,
        "summary_source": compaction.summary_source,
        "elapsed_ms": _elapsed_ms(compaction),
    }
    if ends:
        payload |= {"outcome": compaction.outcome, "event_chain": _chain(compaction.pk, event_type)}
    return payload


def _elapsed_ms(compaction: Compaction) -> int:
    """Milliseconds since the attempt started; 0 for one that never did."""
    if compaction.started_at is None:
        return 0
    return int(((compaction.finished_at or timezone.now()) - compaction.started_at).total_seconds() * 1000)


def _chain(compaction_id: uuid.UUID, last: EventType) -> list[str]:
    """Which of the five steps the attempt reached, in their order."""
    seen = set(Event.objects.filter(compaction_id=compaction_id, step__isnull=False).values_list("type", flat=True)) | {last}
    return [event_type.value for event_type in EventType if event_type in FIVE_STEPS and event_type in seen]
