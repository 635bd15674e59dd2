"""Stores the compactions that an agent made itself, as its file tells them."""

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec
from django.db import transaction

from sessions_app.engine.entries import Segment
from sessions_app.engine.terms import Lineage, Origin, Outcome, Role, Scope, SegmentKind, Status, SummarySource
from sessions_app.models import ClearedResult, Compaction, Entry, Session, ViewSegment
from sessions_app.readers.base import AgentCheckpoint
from sessions_app.readers.times import can_be, parse_time
from sessions_app.services.imports.lanes import Lane

CHUNK = 50  # checkpoints that one transaction writes


def store_checkpoints(lane: Lane, found: Sequence[AgentCheckpoint], off_branch: set[int]) -> None:
    """Adds what is new of a session's own compactions and brings the plans of known ones up to date.

    `off_branch` holds indexes of the session: a boundary that was rewound is stored, but is not in force.
    Several short transactions; done again after a crash, it goes on where it was.
    """
    if not found and not lane.session.compaction_count:
        return
    stored = Compaction.objects.filter(session=lane.session, lineage=Lineage.AGENT, divider_index__isnull=False)
    known = {compaction.divider_index: compaction for compaction in stored}
    in_force: Compaction | None = None
    for start in range(0, len(found), CHUNK):
        with transaction.atomic():
            in_force = _store_chunk(lane, found[start : start + CHUNK], off_branch, known, in_force)
    Session.objects.filter(pk=lane.session.pk).exclude(active_agent=in_force).update(active_agent=in_force)


def _store_chunk(
    lane: Lane, found: Sequence[AgentCheckpoint], off_branch: set[int], known: dict[int | None, Compaction], in_force: Compaction | None
) -> Compaction | None:
    """Stores some checkpoints; returns the one that is in force behind them."""
    session = Session.objects.select_for_update(no_key=True).get(pk=lane.session.pk)
    before = _rows_before(lane, [_index(lane, checkpoint.boundary_index) for checkpoint in found])
    new: list[Compaction] = []
    segments: list[ViewSegment] = []
    cleared: list[ClearedResult] = []
    for checkpoint in found:
        divider = lane.placed[checkpoint.divider_index]
        compaction = known.get(divider)
        if compaction is None:
            compaction = _make(session, lane, checkpoint, in_force)
            new.append(compaction)
            _describe(compaction, lane, checkpoint, before)
            segments += _segments(compaction, lane, checkpoint)
        else:
            segments += _update(compaction, lane, checkpoint, before)
        cleared += [ClearedResult(compaction=compaction, entry_index=_index(lane, place), reason="cleared") for place in checkpoint.cleared]
        if divider not in off_branch:
            in_force = compaction
    Compaction.objects.bulk_create(new)
    ViewSegment.objects.bulk_create(segments)
    ClearedResult.objects.bulk_create(cleared, ignore_conflicts=True)
    Session.objects.filter(pk=session.pk).update(
        last_attempt=session.last_attempt,
        last_generation=session.last_generation,
        compaction_count=session.compaction_count + len(new),
        active_agent=in_force,
    )
    return in_force


def _rows_before(lane: Lane, boundaries: list[int]) -> dict[int, tuple[bytes, str]]:
    """Boundary → (rolling hash, source id) of the entry before it."""
    rows = Entry.objects.filter(session=lane.session, index__in=[boundary - 1 for boundary in boundaries])
    return {index + 1: (bytes(digest), source_id) for index, digest, source_id in rows.values_list("index", "prefix_hash", "source_id")}


def _make(session: Session, lane: Lane, checkpoint: AgentCheckpoint, parent: Compaction | None) -> Compaction:
    session.last_attempt += 1
    session.last_generation += 1
    told = _time(str(checkpoint.detail.get("timestamp", "")))
    first = parent.boundary_index or 0 if parent else 0
    divider = lane.placed[checkpoint.divider_index]
    kept = sum(segment.kind is SegmentKind.ENTRY for segment in checkpoint.segments)
    sent = Entry.objects.filter(session=session, index__gte=first, index__lt=divider, off_branch=False).exclude(role=Role.NOTICE).count()
    return Compaction(
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


def _describe(compaction: Compaction, lane: Lane, checkpoint: AgentCheckpoint, before: dict[int, tuple[bytes, str]]) -> None:
    """Fills what may still change while the file grows behind a boundary."""
    boundary = _index(lane, checkpoint.boundary_index)
    compaction.boundary_index = boundary
    compaction.prefix_hash, compaction.boundary_source_id = before.get(boundary, (b"", ""))
    compaction.summary = checkpoint.summary
    compaction.tokens_before, compaction.tokens_after = checkpoint.tokens_before, checkpoint.tokens_after
    if checkpoint.tokens_before is not None:
        compaction.tokens_before_origin, compaction.tokens_before_scope = Origin.REPORTED, Scope.WHOLE_REQUEST
    if checkpoint.tokens_after is not None:
        compaction.tokens_after_origin, compaction.tokens_after_scope = Origin.REPORTED, Scope.CONVERSATION
    compaction.detail = {**checkpoint.detail, "duration_ms": checkpoint.duration_ms}


def _update(compaction: Compaction, lane: Lane, checkpoint: AgentCheckpoint, before: dict[int, tuple[bytes, str]]) -> list[ViewSegment]:
    """Brings a stored checkpoint up to date; gives the segments to write when its plan is another one by now."""
    told = (compaction.boundary_index, compaction.summary)
    _describe(compaction, lane, checkpoint, before)
    wanted = _segments(compaction, lane, checkpoint)
    stored = list(compaction.segments.order_by("position").values_list("kind", "first_index", "last_index"))
    is_same = stored == [(segment.kind, segment.first_index, segment.last_index) for segment in wanted]
    if is_same and told == (compaction.boundary_index, compaction.summary):
        return []
    compaction.save()
    if is_same:
        return []
    compaction.segments.all().delete()
    return wanted


def _segments(compaction: Compaction, lane: Lane, checkpoint: AgentCheckpoint) -> list[ViewSegment]:
    return [_segment(compaction, position, lane, segment) for position, segment in enumerate(checkpoint.segments)]


def _segment(compaction: Compaction, position: int, lane: Lane, segment: Segment) -> ViewSegment:
    if segment.payload is not None:
        payload = msgspec.to_builtins(segment.payload)
        return ViewSegment(compaction=compaction, position=position, kind=segment.kind.value, payload=payload)
    last = None if segment.last is None else _index(lane, segment.last)
    return ViewSegment(
        compaction=compaction,
        position=position,
        kind=segment.kind.value,
        first_index=_index(lane, segment.first or 0),
        last_index=last,
    )


def _index(lane: Lane, ordinal: int) -> int:
    """The session's index of a reader's ordinal; of one past the end, the index that the next entry will take."""
    return lane.placed[ordinal] if ordinal < len(lane.placed) else lane.next_index


def _time(told: str) -> datetime:
    now = datetime.now(UTC)
    moment = parse_time(told)
    return moment if moment is not None and can_be(moment, now) else now
