"""The objects that the API and commands under `--json` give. Stable: a field may come, but none goes or changes its meaning."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from sessions_app.engine.entries import Entry, Part
from sessions_app.engine.fates import EntryFate
from sessions_app.engine.messages import ViewMessage, ViewPart
from sessions_app.engine.terms import Origin, Scope
from sessions_app.models import Event
from sessions_app.selectors.compaction_panel import CompactionPanel
from sessions_app.selectors.compactions_page import AttemptDetail, LedgerRow, RungLine
from sessions_app.selectors.runners import RunnerRow
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


def ledger_shape(row: LedgerRow) -> Shape:
    """An attempt as a line of the ledger."""
    return attempt_shape(row.attempt, lineage=row.lineage) | {"is_in_force": row.is_active}


def detail_shape(detail: AttemptDetail) -> Shape:
    """An attempt with its texts."""
    return ledger_shape(detail.row) | {
        "boundary": detail.boundary_index,
        "profile": detail.profile,
        "instructions": detail.instructions,
        "standing_instructions": detail.standing_instructions,
        "force": detail.force,
        "started_from": detail.started_from,
        "revert_to": detail.revert_to,
        "summary": detail.summary,
        "block": detail.block,
        "state": [{"name": one.name, "total": one.total, "lines": one.lines} for one in detail.state],
        "policy": {field: {"value": value, "source": source} for field, value, source in detail.policy},
        "why": detail.evaluation.explanation if detail.evaluation else None,
        "rungs": [_rung_shape(rung) for rung in detail.rungs],
        "summarisers_tried": tuple(dict.fromkeys(call.summariser for call in detail.tried)),
        "memory": {"status": detail.memory.status, "words": detail.memory.words} if detail.memory else None,
        "estimator": detail.estimator,
        "cost_usd": detail.cost_usd,
        "summary_calls": [asdict(call) for call in detail.tried],
    }


def _rung_shape(rung: RungLine) -> Shape:
    sizes = {"tokens_before": rung.tokens_before, "tokens_after": rung.tokens_after, "entries": rung.entries}
    return {"rung": rung.rung} | sizes | {"note": rung.note}


def message_shape(message: ViewMessage) -> Shape:
    """A message of a view: each part with the entry that it comes from (null: the view adds it), and its fate."""
    return {
        "object": "message",
        "role": message.role.value,
        "size": tokens(message.tokens, origin=Origin.ESTIMATED, scope=Scope.VIEW),
        "parts": [_view_part_shape(part) for part in message.parts],
    }


def entry_shape(entry: Entry, fate: EntryFate) -> Shape:
    """An entry of the canonical history, with what became of it in the view that was asked for."""
    return {
        "object": "entry",
        "index": entry.index,
        "role": entry.role.value,
        "kind": entry.kind.value,
        "timestamp": entry.timestamp or None,
        "model": entry.model or None,
        "size": tokens(entry.tokens, origin=Origin.ESTIMATED, scope=Scope.VIEW),
        "fate": fate.fate.value,
        "generation": fate.generation,
        "parts": [part_shape(part) for part in entry.parts],
    }


def part_shape(part: Part) -> Shape:
    """One part. `text` of a call is its arguments as JSON; `bytes` is the size of an image or document."""
    shape: Shape = {"kind": part.kind.value, "text": part.text}
    more = {
        "name": part.name,
        "call_id": part.call_id,
        "is_error": part.is_error,
        "media_type": part.media_type,
        "bytes": part.size_bytes,
        "encrypted": part.encrypted,
        "chars": part.chars,
    }
    return shape | {name: value for name, value in more.items() if value}


def _view_part_shape(part: ViewPart) -> Shape:
    shape = part_shape(part.part) | {"entry": part.entry_index, "fate": part.fate.value, "tokens": part.tokens}
    return shape | {name: True for name in ("glued", "synthetic") if getattr(part, name)}


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


def runner_shape(row: RunnerRow) -> Shape:
    """A runner as `--json` and the API show it; of its credential the variable's name alone."""
    told = {"object": "runner", "id": row.id, "name": row.name, "kind": row.kind, "base_url": row.base_url}
    moments = {"last_seen_at": iso(row.last_seen_at), "checked_at": iso(row.checked_at)}
    state = {"health": row.health, "last_error": row.last_error or None, "capabilities": row.capabilities, "sessions": row.sessions}
    return told | {"credential_variable": row.credential_variable or None} | state | moments
