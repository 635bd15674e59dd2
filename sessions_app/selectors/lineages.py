"""Which checkpoints led to a view, each in a line, and what of their plans bears on a window of entries.

A session may have hundreds of checkpoints, each with a block as long as a page. A window needs the plan that is in force and, of
the ones before it, where they hold an entry of the window and the next one does not.
"""

import uuid
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from django.db.models import Q

from sessions_app.engine.entries import Checkpoint, Segment
from sessions_app.engine.fates import EntryFate, fate_of
from sessions_app.engine.shapes import EntryShape
from sessions_app.engine.terms import Lineage, Outcome, SegmentKind
from sessions_app.models import ClearedResult, Compaction, ViewSegment
from sessions_app.selectors import plans


class Mark(NamedTuple):
    """A committed compaction in a line: where it stands in its lineage and in the history, nothing of its plan."""

    pk: uuid.UUID
    generation: int
    lineage: str
    parent_id: uuid.UUID | None
    boundary_index: int | None
    divider_index: int | None
    outcome: str


def marks_of(session_id: uuid.UUID | str) -> tuple[Mark, ...]:
    """All committed compactions of a session, oldest first; one query."""
    rows = Compaction.objects.filter(session_id=session_id, generation__isnull=False).order_by("generation")
    return tuple(Mark(*row) for row in rows.values_list(*Mark._fields))


def chain_to(marks: Iterable[Mark], newest_id: uuid.UUID | None) -> tuple[Mark, ...]:
    """The marks that lead up to one of them, oldest first, itself the last; empty for None."""
    known = {mark.pk: mark for mark in marks}
    chain: list[Mark] = []
    at = newest_id
    while at is not None and (mark := known.pop(at, None)) is not None:
        chain.append(mark)
        at = mark.parent_id
    return tuple(reversed(chain))


def plan_of(mark: Mark) -> Checkpoint:
    """The whole plan of one checkpoint, but for its prefix hash; two queries."""
    fields = (mark.pk, mark.generation, mark.lineage, mark.parent_id, mark.boundary_index, b"", mark.outcome)
    return plans.load_checkpoint(plans.Committed(*fields))


def window_fates(shapes: Sequence[EntryShape], chain: Sequence[Mark], last: Checkpoint | None) -> dict[int, EntryFate]:
    """Index → fate of some entries under `last`, the plan at the end of `chain`, as `fate_of` tells it from all the plans.

    At most two queries, over what bears on these entries.
    """
    bearing = _bearing(shapes, chain[:-1], last) if last is not None else ()
    return {shape.index: fate_of(shape, bearing) for shape in shapes}


def _bearing(shapes: Sequence[EntryShape], earlier: Sequence[Mark], last: Checkpoint) -> tuple[Checkpoint, ...]:
    """Of a chain what decides about these entries: `last` whole, of earlier ones only their places among the entries."""
    sent = [shape.index for shape in shapes if shape.is_sent and shape.index not in last.excluded]
    gone = sorted(index for index in sent if not last.holds(index))
    clearing = _first_clearing(earlier, [index for index in sent if index in last.cleared])
    segments: dict[uuid.UUID, tuple[Segment, ...]] = {}
    start = len(earlier)
    if gone:
        # A plan holds all that lies behind its boundary: nothing before the newest that holds them all decides about any.
        start = max((place for place, mark in enumerate(earlier) if _holds_from(mark, gone[0])), default=0)
        segments = _segments(earlier[start:], gone[0], gone[-1])
    kept: list[Checkpoint] = []
    is_run = False  # of plans that hold none of them, of which the oldest took them out
    for place, mark in enumerate(earlier):
        if mark.pk not in clearing and (place < start or (is_run and mark.pk not in segments)):
            continue
        plan = _outlined(mark, segments.get(mark.pk, ()), clearing.get(mark.pk))
        if place >= start:
            is_run = not any(plan.holds(index) for index in gone)
        kept.append(plan)
    return (*kept, last)


def _holds_from(mark: Mark, index: int) -> bool:
    return mark.boundary_index is not None and mark.boundary_index <= index


def _segments(marks: Sequence[Mark], first: int, last: int) -> dict[uuid.UUID, tuple[Segment, ...]]:
    """Where plans hold any of the entries from `first` to `last`, by their ids; without the texts of their blocks."""
    if not marks:
        return {}
    found: dict[uuid.UUID, list[Segment]] = {}
    inside = Q(kind=SegmentKind.ENTRY, first_index__gte=first) | Q(kind=SegmentKind.RANGE, last_index__gte=first)
    rows = ViewSegment.objects.filter(
        inside | Q(kind=SegmentKind.RANGE, last_index__isnull=True), compaction__in=[mark.pk for mark in marks], first_index__lte=last
    )
    for pk, kind, start, end in rows.order_by().values_list("compaction_id", "kind", "first_index", "last_index"):
        found.setdefault(pk, []).append(Segment(kind=SegmentKind(kind), first=start, last=end))
    return {pk: tuple(places) for pk, places in found.items()}


def _first_clearing(earlier: Sequence[Mark], indexes: list[int]) -> dict[uuid.UUID, set[int]]:
    """Which plan before the last one was the first to clear each of these results."""
    if not indexes or not earlier:
        return {}
    places = {mark.pk: place for place, mark in enumerate(earlier)}
    rows = ClearedResult.objects.filter(compaction__in=list(places), entry_index__in=indexes).values_list("compaction_id", "entry_index")
    first: dict[int, uuid.UUID] = {}
    for pk, index in sorted(rows, key=lambda row: places[row[0]]):
        first.setdefault(index, pk)
    found: dict[uuid.UUID, set[int]] = {}
    for index, pk in first.items():
        found.setdefault(pk, set()).add(index)
    return found


def _outlined(mark: Mark, segments: tuple[Segment, ...], cleared: set[int] | None) -> Checkpoint:
    return Checkpoint(
        generation=mark.generation,
        lineage=Lineage(mark.lineage),
        segments=segments,
        boundary_index=mark.boundary_index or 0,
        cleared=frozenset(cleared or ()),
        trimmed=mark.outcome == Outcome.TRIMMED,
    )
