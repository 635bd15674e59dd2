"""Stores the compactions that an agent made itself, as its file tells them."""

from datetime import UTC, datetime


from sessions_app.engine.entries import Segment
from sessions_app.engine.terms import Lineage, Outcome, Origin, Role, Scope, Status, SummarySource
from sessions_app.models import ClearedResult, Compaction, Entry, Session, ViewSegment
from sessions_app.readers.base import AgentCheckpoint
from sessions_app.services.imports.lanes import Lane


def store_checkpoints(lane: Lane, found: list[AgentCheckpoint], off_branch: set[int]) -> int:
    """Adds what is new of a session's own compactions and brings its newest plan up to date. Returns how many are new.

    `off_branch` holds indexes of the session: a boundary that was rewound is stored, but is not in force.
    Call it in the transaction that completes the import.
    """
    known = {
        compaction.divider_index: compaction
        for compaction in Compaction.objects.filter(session=lane.session, lineage=Lineage.AGENT, divider_index__isnull=False)
    }
    session = Session.objects.select_for_update().get(pk=lane.session.pk)
    in_force: Compaction | None = None
    added = 0
    for checkpoint in found:
        divider = lane.placed[checkpoint.divider_index]
        compaction = known.get(divider)
        if compaction is None:
            session.last_attempt += 1
            session.last_generation += 1
            compaction = _make(session, lane, checkpoint, in_force)
            added += 1
        _store_plan(compaction, lane, checkpoint)
        if divider not in off_branch:
            in_force = compaction
    Session.objects.filter(pk=session.pk).update(
        last_attempt=session.last_attempt,
        last_generation=session.last_generation,
        compaction_count=session.compaction_count + added,
        active_agent=in_force,
    )
    return added


def _make(session: Session, lane: Lane, checkpoint: AgentCheckpoint, parent: Compaction | None) -> Compaction:
    told = _time(str(checkpoint.detail.get("timestamp", "")))
    first = parent.boundary_index or 0 if parent else 0
    divider = lane.placed[checkpoint.divider_index]
    kept = sum(1 for segment in checkpoint.segments if segment.kind == "entry")
    sent = Entry.objects.filter(session=session, index__gte=first, index__lt=divider, off_branch=False).exclude(role=Role.NOTICE).count()
    return Compaction.objects.create(
        session=session,
        attempt=session.last_attempt,
        generation=session.last_generation,
        lineage=Lineage.AGENT,
        parent=parent,
        trigger=checkpoint.trigger,
        requested_by=session.agent,
        instructions=checkpoint.instructions,
        status=Status.COMPLETED,
        outcome=Outcome.COMMITTED,
        divider_index=divider,
        entries_folded=max(0, sent - kept),
        entries_kept=kept,
        summary_source=SummarySource.EXTERNAL,
        summariser=session.agent,
        requested_at=told,
        started_at=told,
        finished_at=told,
    )


def _store_plan(compaction: Compaction, lane: Lane, checkpoint: AgentCheckpoint) -> None:
    """Writes what may still change while the file grows behind a boundary: summary, numbers, segments."""
    boundary = _index(lane, checkpoint.boundary_index)
    before = Entry.objects.filter(session=lane.session, index=boundary - 1).values_list("prefix_hash", "source_id").first()
    compaction.boundary_index = boundary
    compaction.boundary_source_id = before[1] if before else ""
    compaction.prefix_hash = bytes(before[0]) if before else b""
    compaction.summary = checkpoint.summary
    compaction.tokens_before, compaction.tokens_after = checkpoint.tokens_before, checkpoint.tokens_after
    if checkpoint.tokens_before is not None:
        compaction.tokens_before_origin, compaction.tokens_before_scope = Origin.REPORTED, Scope.WHOLE_REQUEST
    if checkpoint.tokens_after is not None:
        compaction.tokens_after_origin, compaction.tokens_after_scope = Origin.REPORTED, Scope.CONVERSATION
    compaction.detail = {**checkpoint.detail, "duration_ms": checkpoint.duration_ms}
    compaction.save()
    wanted = [_segment(lane, segment) for segment in checkpoint.segments]
    stored = [tuple(row) for row in compaction.segments.order_by("position").values_list("kind", "first_index", "last_index")]
    if stored != wanted:
        compaction.segments.all().delete()
        ViewSegment.objects.bulk_create(
            ViewSegment(compaction=compaction, position=position, kind=kind, first_index=first, last_index=last)
            for position, (kind, first, last) in enumerate(wanted)
        )
    ClearedResult.objects.bulk_create(
        (ClearedResult(compaction=compaction, entry_index=_index(lane, ordinal), reason="microcompact") for ordinal in checkpoint.cleared),
        ignore_conflicts=True,
    )


def _segment(lane: Lane, segment: Segment) -> tuple[str, int, int | None]:
    first = _index(lane, segment.first or 0)
    return segment.kind.value, first, None if segment.last is None else _index(lane, segment.last)


def _index(lane: Lane, ordinal: int) -> int:
    """The session's index of a reader's ordinal; of one past the end, the index that the next entry will take."""
    return lane.placed[ordinal] if ordinal < len(lane.placed) else lane.next_index


def _time(told: str) -> datetime:
    try:
        parsed = datetime.fromisoformat(told)
    except ValueError:
        return datetime.now(UTC)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
