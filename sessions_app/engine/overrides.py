"""What a person decided about single entries: pinned ones stand word for word in every view, excluded ones in none.

A checkpoint's plan names, beside its block, every entry before its boundary that it did not fold: what was pinned then,
and what was excluded then. So nothing is lost when a decision is taken back: what is no longer pinned stays until the
next compaction folds it, and what is no longer excluded comes back.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import msgspec

from sessions_app.engine.entries import Checkpoint, Entry, Segment
from sessions_app.engine.shapes import EntryShape
from sessions_app.engine.terms import Kind, Lineage, SegmentKind

MAX_OVERRIDES = 500
"""Entries of a session that may be pinned or excluded: each is read one by one, and pins are sent with every request."""


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """Indexes of entries; no entry is in both sets. `version` counts the decisions of a session; 0: there was none."""

    pinned: frozenset[int] = frozenset()
    excluded: frozenset[int] = frozenset()
    version: int = 0
    since: int = 0  # entries that there were when exclusions last changed: what was measured before counted another view

    @property
    def is_empty(self) -> bool:
        return not self.pinned and not self.excluded


def applied(checkpoint: Checkpoint | None, overrides: Overrides) -> Checkpoint | None:
    """The plan with what holds now: pins that its view would lack behind its block, in their order; exclusions named.

    Without a checkpoint it is a plan of the whole history, of generation 0; or still none, where nothing was decided.
    """
    if overrides.is_empty:
        return checkpoint
    base = checkpoint or Checkpoint(
        generation=0, lineage=Lineage.CONSOLE, segments=(Segment(kind=SegmentKind.RANGE, first=0),), boundary_index=0
    )
    singles, ranges = base.places()
    lacking = sorted(index for index in overrides.pinned if index not in singles and not _lies_in(index, ranges))
    kept = [segment for segment in base.segments if segment.kind is not SegmentKind.ENTRY or segment.first not in overrides.excluded]
    return msgspec.structs.replace(
        base,
        segments=_with_singles(kept, lacking),
        cleared=base.cleared - overrides.pinned,
        pinned=overrides.pinned,
        excluded=overrides.excluded,
    )


def _with_singles(segments: list[Segment], indexes: Sequence[int]) -> tuple[Segment, ...]:
    """The plan with these entries right behind its block, among what it carries there."""
    if not indexes:
        return tuple(segments)
    blocks = [place for place, segment in enumerate(segments) if segment.kind is SegmentKind.SYNTHETIC]
    start = blocks[-1] + 1 if blocks else max(0, len(segments) - 1)
    end = start
    while end < len(segments) and segments[end].kind is SegmentKind.ENTRY:
        end += 1
    carried = [segment.first or 0 for segment in segments[start:end]]
    in_order = all(first < second for first, second in pairwise(carried))
    among = sorted({*carried, *indexes}) if in_order else [*indexes, *carried]  # an agent's own order stays as it is
    return (*segments[:start], *(Segment(kind=SegmentKind.ENTRY, first=index) for index in among), *segments[end:])


def unfolded(checkpoint: Checkpoint) -> tuple[Segment, ...]:
    """The plan as it is to be stored: with what is excluded before its boundary, so that it can come back."""
    _, ranges = checkpoint.places()
    before = (index for index in checkpoint.excluded if index < checkpoint.boundary_index)
    return _with_singles(list(checkpoint.segments), sorted(index for index in before if not _lies_in(index, ranges)))


def folded_of(overrides: Overrides, segments: Sequence[Segment], boundary_index: int) -> frozenset[int]:
    """What is excluded, but was folded by a plan that did not know it: every plan names what it leaves out."""
    plan = Checkpoint(generation=0, lineage=Lineage.CONSOLE, segments=tuple(segments), boundary_index=boundary_index)
    return frozenset(index for index in overrides.excluded if index < boundary_index and not plan.holds(index))


def _lies_in(index: int, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(first <= index <= last for first, last in ranges)


def without(shapes: Sequence[EntryShape], excluded: frozenset[int]) -> Sequence[EntryShape]:
    """The shapes of a whole history, or of a stretch, as planning takes them: what is excluded counts as off the branch."""
    if not excluded or not shapes:
        return shapes
    marked, offset = list(shapes), shapes[0].index
    for index in excluded:
        if 0 <= index - offset < len(marked):
            marked[index - offset] = msgspec.structs.replace(marked[index - offset], off_branch=True)
    return marked


def reading(load: Callable[[int, int], Iterator[Entry]], excluded: frozenset[int]) -> Callable[[int, int], Iterator[Entry]]:
    """The same for what reads entries."""

    def read(first: int, last: int) -> Iterator[Entry]:
        for entry in load(first, last):
            yield msgspec.structs.replace(entry, off_branch=True) if entry.index in excluded else entry

    return read if excluded else load


class Together(msgspec.Struct, frozen=True, kw_only=True):
    """Entries that stand or fall together: a call and its results, with every call and result that shares an entry with them.

    `unanswered`: (index, call id) of calls among them without a result; `orphans`: indexes of results without a call.
    """

    indexes: frozenset[int]
    unanswered: tuple[tuple[int, str], ...] = ()
    orphans: tuple[int, ...] = ()


def together(shapes: Sequence[EntryShape], index: int) -> Together:
    """What must be decided together with entry `index`. `shapes` may be any stretch around it; linear.

    Calls and results are paired as everywhere: a result answers the latest open call of its id, further results too.
    """
    partners: dict[int, set[int]] = {}
    open_calls: dict[str, list[int]] = {}
    answered: dict[str, int] = {}
    orphans: set[int] = set()
    for shape in shapes:
        if not shape.call_ids or not shape.is_sent:
            continue
        if shape.kind is Kind.CALL:
            for call_id in shape.call_ids:
                open_calls.setdefault(call_id, []).append(shape.index)
        elif shape.kind is Kind.RESULT:
            for call_id in shape.call_ids:
                if calls := open_calls.get(call_id):
                    answered[call_id] = calls.pop()
                if call_id in answered:
                    partners.setdefault(answered[call_id], set()).add(shape.index)
                    partners.setdefault(shape.index, set()).add(answered[call_id])
                else:
                    orphans.add(shape.index)
    found, waiting = {index}, [index]
    while waiting:
        new = partners.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    unanswered = tuple((call, call_id) for call_id, calls in open_calls.items() for call in calls if call in found)
    return Together(indexes=frozenset(found), unanswered=unanswered, orphans=tuple(sorted(orphans & found)))
