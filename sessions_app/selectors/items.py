"""Entries of a history as the API's list of items reads them: filtered, from a place on, in either direction."""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from django.db.models import Q

from sessions_app.engine.entries import Checkpoint, Entry, with_whole_text
from sessions_app.engine.fates import EntryFate
from sessions_app.engine.shapes import shape_of
from sessions_app.engine.terms import Fate, Kind, Lineage, Outcome, PartKind, Role
from sessions_app.models import Compaction, Session
from sessions_app.models import Entry as EntryRow
from sessions_app.selectors import entry_rows, plans
from sessions_app.selectors.history import marked_view
from sessions_app.selectors.lineages import Mark, window_fates


class ItemType(StrEnum):
    """What an item is, in the words of the interfaces of model providers."""

    MESSAGE = "message"
    FUNCTION_CALL = "function_call"
    FUNCTION_CALL_OUTPUT = "function_call_output"
    REASONING = "reasoning"
    COMPACTION = "compaction"
    ERROR = "error"
    NOTICE = "notice"


def _beside(kind: Kind, part: PartKind) -> Q:
    """Entries of a kind, and answers that hold a part of that kind beside their text, as a model's own tools leave them."""
    return Q(kind=kind) | Q(role=Role.ASSISTANT, parts__contains=f'"kind":"{part}"')


# Entries that may hold an item of the type: what they hold is looked at once they are read.
_MAY_HOLD = {
    ItemType.MESSAGE: ~Q(role=Role.NOTICE),
    ItemType.FUNCTION_CALL: ~Q(role=Role.NOTICE) & _beside(Kind.CALL, PartKind.CALL),
    ItemType.FUNCTION_CALL_OUTPUT: ~Q(role=Role.NOTICE) & _beside(Kind.RESULT, PartKind.RESULT),
    ItemType.REASONING: ~Q(role=Role.NOTICE) & _beside(Kind.THINKING, PartKind.THINKING),
    ItemType.COMPACTION: Q(role=Role.NOTICE, kind=Kind.COMPACTED),
    ItemType.ERROR: Q(role=Role.NOTICE, kind=Kind.ERROR),
    ItemType.NOTICE: Q(role=Role.NOTICE) & ~Q(kind__in=[Kind.COMPACTED, Kind.ERROR]),
}


@dataclass(frozen=True)
class ItemFilters:
    """What a list of items is narrowed to. None: any."""

    role: Role | None = None
    kind: Kind | None = None
    type: ItemType | None = None
    fate: Fate | None = None


class JudgedEntry(NamedTuple):
    """An entry, and what became of it in the view that was asked for."""

    entry: Entry
    fate: EntryFate | None


class _Judge:
    """What became of entries in a view. Of the checkpoints that led to it only what bears on those entries is read."""

    def __init__(self, session: Session, context: Lineage | None, *, is_needed: bool) -> None:
        self.is_known = True
        self.last: Checkpoint | None = None
        self.chain: tuple[Mark, ...] = ()
        try:
            self.chain, self.last = marked_view(session, context)
        except plans.BrokenPlan:
            if is_needed:
                raise
            self.is_known = False

    def fates(self, entries: Sequence[Entry]) -> dict[int, EntryFate]:
        """Index → fate. At most two queries."""
        return window_fates([shape_of(entry) for entry in entries], self.chain, self.last) if self.is_known else {}

    @property
    def has_trimmed(self) -> bool:
        """Whether any of them left out entries without a summary."""
        return any(mark.outcome == Outcome.TRIMMED for mark in self.chain)

    @property
    def has_summarised(self) -> bool:
        return any(mark.outcome != Outcome.TRIMMED for mark in self.chain)


@dataclass(frozen=True)
class Divider:
    """What a compaction left at its place in the history."""

    id: uuid.UUID
    generation: int | None
    lineage: str
    summary: str
    model: str
    boundary_index: int | None
    tokens_before: int | None
    tokens_after: int | None
    reported: dict[str, Any] | None  # the item as its agent reported it


def walk(
    session: Session, filters: ItemFilters, context: Lineage | None, *, start: int, backwards: bool, at_once: int, whole: bool = False
) -> Iterator[JudgedEntry]:
    """The entries that match, from `start` on (or down from it), `at_once` at a time: whoever has enough reads no further.

    `context`: whose view the fates are of; where that is broken they are not known. `whole` fetches shortened texts from
    their blobs. Raises `plans.BrokenPlan` where entries of one fate are asked for.
    """
    judge = _Judge(session, context, is_needed=filters.fate is not None)
    condition = _condition(filters, judge)
    if condition is None:
        return
    rows = EntryRow.objects.filter(condition, session_id=session.pk)
    while True:
        ahead = rows.filter(index__lte=start).order_by("-index") if backwards else rows.filter(index__gte=start).order_by("index")
        page = [entry_rows.shown_entry(*row) for row in entry_rows.fetch(entry_rows.for_entries(ahead)[:at_once])]
        fates = judge.fates(page)
        for entry in page:
            fate = fates.get(entry.index)
            if filters.fate is None or (fate is not None and fate.fate is filters.fate):
                yield JudgedEntry(with_whole_text(entry, plans.load_blob) if whole else entry, fate)
        if len(page) < at_once:
            return
        start = page[-1].index + (-1 if backwards else 1)


def dividers(session: Session, indexes: Sequence[int]) -> dict[int, Divider]:
    """What compactions left at these places. One query."""
    found = Compaction.objects.filter(session_id=session.pk, divider_index__in=indexes)
    columns = ("id", "generation", "lineage", "summary", "summariser", "boundary_index", "tokens_before", "tokens_after", "detail__item")
    return {index: Divider(*row) for index, *row in found.values_list("divider_index", *columns)}


def _condition(filters: ItemFilters, judge: _Judge) -> Q | None:
    """The filters as a condition that leaves out most of what does not match; None when nothing can match."""
    condition = Q()
    if filters.role is not None:
        condition &= Q(role=filters.role)
    if filters.kind is not None:
        condition &= Q(kind=filters.kind)
    if filters.type is not None:
        condition &= _MAY_HOLD[filters.type]
    if filters.fate is None:
        return condition
    judged = _of_fate(filters.fate, judge)
    return None if judged is None else condition & judged


def _of_fate(fate: Fate, judge: _Judge) -> Q | None:
    """Entries that may have a fate, by what `fate_of` asks first; None: no entry can have it."""
    if fate is Fate.DISPLAY_ONLY:
        return Q(role=Role.NOTICE)
    sent = ~Q(role=Role.NOTICE)
    if fate is Fate.OFF_BRANCH:
        return sent & Q(off_branch=True)
    live = sent & Q(off_branch=False)
    last = judge.last
    if last is None:
        return live if fate is Fate.VERBATIM else None
    named = {Fate.EXCLUDED: last.excluded, Fate.PINNED: last.pinned, Fate.CLEARED: last.cleared}
    if fate in named:
        return live & Q(index__in=sorted(named[fate])) if named[fate] else None
    if fate is Fate.VERBATIM:
        return live & _held(last)
    can_be = judge.has_trimmed if fate is Fate.TRIMMED else judge.has_summarised
    return live & ~_held(last) if can_be else None


def _held(checkpoint: Checkpoint) -> Q:
    singles, ranges = checkpoint.places()
    held = Q(index__in=sorted(singles))
    for first, last in ranges:
        held |= Q(index__gte=first, index__lte=min(last, 2**31 - 1))
    return held
