"""The commit of a compaction: one transaction in which the checkpoint, its divider and its event appear together."""

import uuid
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

import msgspec
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from sessions_app.engine import overrides
from sessions_app.engine.entries import Entry as EngineEntry
from sessions_app.engine.entries import Part, chain_prefix_hash, encode_parts
from sessions_app.engine.steps import Commit, Ended
from sessions_app.engine.terms import Kind, Origin, Outcome, PartKind, Phase, Role, Scope, SegmentKind, SkipReason, Status, Trigger
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import ClearedResult, Compaction, Entry, Session, ViewSegment
from sessions_app.selectors import plans
from sessions_app.selectors.prefixes import is_prefix_changed
from sessions_app.services import signals
from sessions_app.services.compactions import breakers, lease
from sessions_app.services.compactions.endings import CANCELLED, STALE, end, give_back
from sessions_app.services.compactions.lease import Claim, LeaseLost
from sessions_app.services.compactions.step_events import WORKER, append_step
from sessions_app.services.compactions.transitions import move

OVERTAKEN = Ended(
    status=Status.STALE,
    outcome=Outcome.STALE,
    reason=SkipReason.STALE_PREIMAGE,
    explanation=(
        "Another compaction of this session was committed while this draft waited, so it fits no view any more. Nothing of it was used."
    ),
)


@dataclass(frozen=True)
class InForce:
    """The checkpoints that a session shows at one moment, and which overrides: what an attempt builds on."""

    console_id: uuid.UUID | None
    agent_id: uuid.UUID | None
    override_version: int = 0

    @classmethod
    def of(cls, session: Session) -> Self:
        return cls(session.active_console_id, session.active_agent_id, plans.overrides_of(session).version)

    @property
    def checkpoint_id(self) -> uuid.UUID | None:
        """The one that decides the default context: this console's before the agent's."""
        return self.console_id or self.agent_id

    def summary(self) -> str:
        """What the checkpoint in force says of the entries before its boundary; empty without one."""
        rows = Compaction.objects.filter(pk=self.checkpoint_id) if self.checkpoint_id else Compaction.objects.none()
        return rows.values_list("summary", flat=True).first() or ""


def lock(held: Claim, in_force: InForce) -> tuple[Session, Compaction] | Ended:
    """The rows of an attempt whose result is about to be stored, locked; or how it ends instead. Call in a transaction.

    Raises `LeaseLost`.
    """
    session = Session.objects.select_for_update(no_key=True).get(pk=held.session_id)
    if not lease.renew(held):
        raise LeaseLost
    compaction = Compaction.objects.get(pk=held.compaction_id)
    if compaction.cancel_requested:
        return CANCELLED
    return STALE if InForce.of(session).checkpoint_id != in_force.checkpoint_id else (session, compaction)


def commit(held: Claim, result: Commit, in_force: InForce, off_branch: Collection[int], *, actor: Actor = WORKER) -> Ended | None:
    """Makes the result the session's checkpoint in force; or returns how the attempt ends instead, with nothing changed.

    `off_branch`: indexes of the entries that its plan left out. Entries that were appended while it ran lie after the
    boundary, and so stay in the tail. It is stale only when the folded prefix, its live branch or the checkpoint that
    it builds on is not what it was, or when an entry was excluded that it folded: any other override is added to its
    view, or can be taken back in it. Drafts of the session that waited meanwhile end as stale. Raises `LeaseLost`.
    """
    with transaction.atomic():
        found = lock(held, in_force)
        if isinstance(found, Ended):
            return found
        session, compaction = found
        if is_prefix_changed(compaction, result.boundary_index, off_branch):
            return STALE
        if overrides.folded_of(plans.overrides_of(session), result.segments, result.boundary_index):
            return STALE
        generation = session.last_generation + 1
        divider = _append_divider(session, generation, result)
        warning = breakers.refill_warning(session, compaction.trigger)
        result = _with_warning(result, warning if compaction.trigger != Trigger.MANUAL else "")
        _store_segments(compaction, result)
        if not move(compaction.pk, Status.COMPLETED, token=held.token, **_columns(result, generation, divider, in_force)):
            raise LeaseLost
        Session.objects.filter(pk=session.pk).update(
            active_console=compaction,
            last_generation=generation,
            compaction_count=F("compaction_count") + 1,
            entry_count=divider.index + 1,
            head_hash=divider.prefix_hash,
            refill_warning=warning,
        )
        give_back(compaction.pk)
        breakers.count(compaction.pk, result.outcome)
        signals.refresh(session.pk)
        append_step(compaction.pk, EventType.COMPACTION_PERSISTED, status=Status.COMPLETED, actor=actor)
        for waiting in Compaction.objects.filter(session_id=session.pk, status=Status.DRAFTED).values_list("pk", flat=True):
            end(waiting, OVERTAKEN)
    return None


def _with_warning(result: Commit, warning: str) -> Commit:
    return msgspec.structs.replace(result, warnings=(*result.warnings, warning)) if warning else result


def _append_divider(session: Session, generation: int, result: Commit) -> Entry:
    """The one entry that a compaction adds to the history: a notice, which no model ever sees."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    said = EngineEntry(
        index=session.entry_count,
        role=Role.NOTICE,
        kind=Kind.COMPACTED,
        parts=(Part(kind=PartKind.TEXT, text=f"Compacted: #{generation}, {result.entries_folded:,} entries folded"),),
        source_id=f"palimpsest:{session.pk}:{generation}",
        timestamp=now,
    )
    return Entry.objects.create(
        session=session,
        index=said.index,
        source_id=said.source_id,
        role=said.role,
        kind=said.kind,
        parts=encode_parts(said.parts),
        timestamp=now,
        prefix_tokens=session.tokens_total,
        prefix_hash=chain_prefix_hash(bytes(session.head_hash), said.digest()),
    )


def _store_segments(compaction: Compaction, result: Commit) -> None:
    ViewSegment.objects.bulk_create(
        ViewSegment(
            compaction=compaction,
            position=position,
            kind=segment.kind,
            first_index=segment.first,
            last_index=segment.last,
            payload=msgspec.to_builtins(segment.payload) if segment.payload else None,
            tokens=result.block_tokens if segment.kind is SegmentKind.SYNTHETIC else 0,
        )
        for position, segment in enumerate(result.segments)
    )
    ClearedResult.objects.bulk_create(ClearedResult(compaction=compaction, entry_index=index) for index in result.cleared)


def _retention(result: Commit) -> dict[str, object]:
    """The report, and its total for lists, which read that alone. Empty where nothing was checked."""
    if not result.retention.classes:
        return {}
    total = msgspec.structs.asdict(result.retention.total) | {"unsupported": len(result.unsupported)}
    return {**msgspec.to_builtins(result.retention), "total": total}


def _columns(result: Commit, generation: int, divider: Entry, in_force: InForce) -> dict[str, object]:
    return result_columns(result) | {
        "generation": generation,
        "parent_id": in_force.checkpoint_id,
        "outcome": result.outcome,
        "phase": Phase.COMMIT,
        "divider_index": divider.index,
        "override_version": in_force.override_version,
        "finished_at": Now(),
    }


def result_columns(result: Commit) -> dict[str, object]:
    """What a result says of itself, committed or not."""
    return {
        "boundary_index": result.boundary_index,
        "boundary_source_id": result.boundary_source_id,
        "entries_folded": result.entries_folded,
        "entries_kept": result.entries_kept,
        "summary": result.summary,
        "summary_source": result.summary_source,
        "summariser": result.summariser,
        "summarisers_tried": msgspec.to_builtins(result.tried),
        "rungs": msgspec.to_builtins(result.rungs),
        "mechanical_state": result.mechanical_state,
        "warnings": list(result.warnings),
        "retention": _retention(result),
        "unsupported": msgspec.to_builtins(result.unsupported),
        "coverage_status": result.coverage_status,
        "tokens_before": result.tokens_before,
        "tokens_before_origin": Origin.ESTIMATED,
        "tokens_before_scope": Scope.VIEW,
        "tokens_after": result.tokens_after,
        "tokens_after_origin": Origin.ESTIMATED,
        "tokens_after_scope": Scope.VIEW,
    }
