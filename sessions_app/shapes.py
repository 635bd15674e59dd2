"""The objects that the API and commands under `--json` give. Stable: a field may come, but none goes or changes its meaning."""

from datetime import datetime
from typing import Any

from sessions_app.models import Event
from sessions_app.selectors.compaction_panel import CompactionPanel
from sessions_app.selectors.session_list import SessionRow

Shape = dict[str, Any]


def tokens(amount: int | None, *, origin: str, scope: str, at: str = "") -> Shape | None:
    """A number of tokens: how many, where the number comes from, what it counts, and when it was measured."""
    if amount is None:
        return None
    shape: Shape = {"tokens": amount, "origin": origin, "scope": scope}
    return shape | {"measured_at": at} if at else shape


def iso(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def session_shape(row: SessionRow) -> Shape:
    """A session as the list shows it."""
    meter = row.meter
    return {
        "object": "session",
        "id": row.id,
        "title": row.title,
        "agent": row.agent,
        "model": row.model,
        "kind": row.kind,
        "status": row.status,
        "project": row.project,
        "labels": row.labels,
        "entries": row.entries,
        "compactions": row.compactions,
        "failures": row.failures,
        "findings": row.warnings,
        "signal": tokens(meter.tokens, origin=meter.origin, scope=meter.scope, at=meter.measured_at),
        "window": meter.window,
        "trigger": meter.trigger_tokens,
        "pressure": None if meter.share is None else round(meter.share, 4),
        "active_at": iso(row.active_at),
    }


def attempt_shape(panel: CompactionPanel, *, lineage: str) -> Shape:
    """A compaction as the ledger shows it."""
    return {
        "object": "compaction",
        "id": panel.id,
        "session_id": panel.session_id,
        "attempt": panel.attempt,
        "generation": panel.generation,
        "lineage": lineage,
        "trigger": panel.trigger,
        "requested_by": panel.requested_by,
        "status": panel.status,
        "outcome": panel.outcome or None,
        "reason": panel.reason or None,
        "explanation": panel.explanation,
        "phase": panel.phase or None,
        "chunks": {"done": panel.chunk_index, "of": panel.chunk_count},
        "tokens_before": tokens(panel.tokens_before, origin=panel.before_origin, scope=panel.before_scope),
        "tokens_after": tokens(panel.tokens_after, origin=panel.after_origin, scope=panel.after_scope),
        "entries_folded": panel.entries_folded,
        "entries_kept": panel.entries_kept,
        "summariser": panel.summariser,
        "summary_source": panel.summary_source,
        "warnings": panel.warnings,
        "duration_s": panel.duration_s,
        "started_at": iso(panel.since),
    }


def event_shape(event: Event) -> Shape:
    """An event of the audit log."""
    return {
        "object": "event",
        "id": event.pk,
        "stream": event.stream,
        "seq": event.seq,
        "type": event.type,
        "at": event.at,
        "actor": {
            "kind": event.actor_kind,
            "id": event.actor_id,
            "name": event.actor_name,
            "role": event.actor_role or None,
            "address": event.address or None,
        },
        "target": {"kind": event.target_kind, "id": event.target_id} if event.target_id else None,
        "result": event.result,
        "reason": event.reason or None,
        "before": event.before,
        "after": event.after,
        "compaction_id": event.compaction_id,
        "step": event.step,
        "request_id": event.request_id or None,
        "gesture_id": event.gesture_id or None,
        "payload": event.payload,
    }
