"""The history tab: a window of entries, the fate of each in the view that is shown, and the places to go from here."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db.models import QuerySet

from sessions_app.engine.entries import Checkpoint, SyntheticMessage
from sessions_app.engine.fates import EntryFate
from sessions_app.engine.shapes import EntryShape
from sessions_app.engine.terms import Fate, Lineage, SegmentKind
from sessions_app.models import Compaction, Session
from sessions_app.selectors import plans, prefixes
from sessions_app.selectors.chosen_view import ChosenView, in_force_then
from sessions_app.selectors.history_window import Detail, EntryWindow, HistoryItem, WindowPlace, entry_window, read_items
from sessions_app.selectors.lineages import Mark, chain_to, marks_of, plan_of, window_fates
from sessions_app.selectors.lone_results import left_out
from sessions_app.selectors.prefixes import REWOUND

NO_GENERATION = 0
MAX_HEAD = 200
_CHECKPOINT_COLUMNS = (
    "pk", "generation", "parent_id", "parent__generation", "lineage", "trigger", "requested_by", "outcome", "divider_index", "warnings",
    "boundary_index", "entries_folded", "tokens_before", "tokens_before_scope", "tokens_after", "tokens_after_scope",
    "started_at", "finished_at", "detail",
)  # fmt: skip
BOUNDARY_LEAD = 32
"""Beside a block more of what it stands for is shown."""

FEW_GENERATIONS = 12
"""So many are read with all that a page may say of them; of more it reads where they stand, and then those that it names."""

OFFERED_GENERATIONS = 6
"""So many of the newest generations can be chosen on the page; the others in the ledger."""


Rows = QuerySet[Compaction, dict[str, Any]]


class Layout(StrEnum):
    """How a history is laid out."""

    CANONICAL = "canonical"
    VIEW = "view"
    SPLIT = "split"


@dataclass(frozen=True)
class HistoryOptions:
    """What the address of a history page asks for. None: the page's own choice."""

    layout: Layout | None = None
    detail: Detail = Detail.EVERYTHING
    context: Lineage | None = None
    generation: int | None = None
    at: int | None = None
    before: int | None = None
    start: int | None = None
    last: int | None = None  # with `start`: the window ends with this entry
    at_view: int | None = None  # everything as it was when this entry was the newest

    @property
    def names_a_place(self) -> bool:
        """Whether it says which entries to show."""
        return not (self.at is None and self.before is None and self.start is None and self.at_view is None)


@dataclass(frozen=True)
class CheckpointRow:
    """A checkpoint as the history names it: in the row of generations and in its divider."""

    id: str
    generation: int
    lineage: Lineage
    trigger: str
    requested_by: str
    outcome: str
    divider_index: int | None
    boundary_index: int | None
    entries_folded: int
    tokens_before: int | None
    tokens_after: int | None
    scopes_match: bool
    duration_s: float | None
    is_active: bool
    revert_to: int  # the generation that was in force before it; 0 for the whole history
    is_rewound: bool = False  # the agent went back behind what it covers, after it was made


@dataclass(frozen=True)
class Block:
    """What a view holds instead of the folded entries: texts that no entry holds, and entries carried past the boundary."""

    generation: int
    lineage: Lineage
    messages: tuple[SyntheticMessage, ...]
    tokens: int
    folded: int
    is_trim: bool
    rewound: str = ""  # that the agent took back some of what it stands for


@dataclass(frozen=True)
class HistoryPage:
    """One window, ready to be laid out. `checkpoints`: those that it names, oldest first, of all of which `marks` says where they stand."""

    options: HistoryOptions
    layout: Layout
    context: Lineage
    contexts: tuple[Lineage, ...]
    window: EntryWindow
    fates: dict[int, EntryFate]  # by index; of the model view none, all of which is in the view
    checkpoint: Checkpoint | None
    checkpoints: tuple[CheckpointRow, ...]
    marks: tuple[Mark, ...]
    block: Block | None
    head: tuple[HistoryItem, ...]
    entry_count: int
    view_tokens: int
    upto: int | None = None  # the page shows everything as it was when this entry was the newest
    broken: str = ""  # why there is no view: the history is shown without one
    left_out: frozenset[int] = frozenset()  # results of the window that no view can hold, since their call is not there

    @property
    def generation(self) -> int:
        """The generation whose view is shown; 0 for the whole history."""
        return self.checkpoint.generation if self.checkpoint else NO_GENERATION

    @property
    def boundary_index(self) -> int:
        """First entry of the verbatim tail of the view; 0 when nothing is folded."""
        return self.checkpoint.boundary_index if self.checkpoint else 0

    @property
    def left_out_words(self) -> str:
        """What to say of results that are not sent; empty where all are."""
        if not self.left_out:
            return ""
        named = ", ".join(f"{index:,}" for index in sorted(self.left_out)[:5]) + (" …" if len(self.left_out) > 5 else "")
        results = "One result here is" if len(self.left_out) == 1 else f"{len(self.left_out)} results here are"
        return f"{results} not sent ({named}): the call is not in the view, and a provider would refuse the request with it."

    @property
    def offered(self) -> tuple[CheckpointRow, ...]:
        """The checkpoints to choose between: the newest, and the one whose view is shown."""
        newest = {mark.generation for mark in self.marks[-OFFERED_GENERATIONS:]}
        return tuple(row for row in self.checkpoints if row.generation in newest or row.generation == self.generation)

    def checkpoint_of(self, generation: int) -> CheckpointRow | None:
        """The checkpoint of a generation that the page names."""
        return next((row for row in self.checkpoints if row.generation == generation), None)

    def divider_at(self, index: int) -> CheckpointRow | None:
        return next((row for row in self.checkpoints if row.divider_index == index), None)


def history_page(session: Session, options: HistoryOptions) -> HistoryPage:
    """The window that the options ask for. A dozen queries at most, whatever the length of the history.

    Raises `LookupError` for a generation or an entry that the session does not have.
    """
    told = list(_told(session)) if session.last_generation <= FEW_GENERATIONS else None
    marks = marks_of(session.pk) if told is None else tuple(Mark(*(row[name] for name in Mark._fields)) for row in told)
    broken = ""
    try:
        context, chain, checkpoint = _view(session, options, marks)
    except plans.BrokenPlan as error:
        context, chain, checkpoint, broken = options.context or plans.default_context(session), (), None, str(error)
        options = replace(options, layout=Layout.CANONICAL)
    layout = options.layout or (Layout.SPLIT if checkpoint and checkpoint.generation else Layout.CANONICAL)
    window = entry_window(session.pk, _place(options, layout, checkpoint))
    rows = _checkpoint_rows(session, _named(session, marks, checkpoint, window) if told is None else told)
    shapes = [_shape(item) for item in sorted(_all_items(window), key=lambda item: item.index)]
    lone = left_out(session.pk, shapes, checkpoint)
    fates = window_fates(() if layout is Layout.VIEW else shapes, chain, checkpoint)
    return HistoryPage(
        options=options,
        layout=layout,
        context=context,
        contexts=_contexts(session),
        window=window,
        fates=fates | dict.fromkeys(lone, EntryFate(fate=Fate.DISPLAY_ONLY)),
        checkpoint=checkpoint,
        checkpoints=rows,
        marks=marks,
        block=_block(checkpoint, rows),
        head=_head(session, checkpoint, window, layout),
        entry_count=session.entry_count,
        view_tokens=_view_tokens(session, checkpoint, options),
        upto=options.at_view,
        broken=broken,
        left_out=lone,
    )


def _view_tokens(session: Session, checkpoint: Checkpoint | None, options: HistoryOptions) -> int:
    """The estimate of the view; of the default one it stands in the session's row."""
    if checkpoint is None and options.at_view is not None:
        return plans.tokens_between(session.pk, 0, options.at_view)
    is_default = options.generation is None and options.context is None and options.at_view is None
    if is_default and session.composition:
        return sum(session.composition.values())
    return plans.view_tokens(session, checkpoint)


def _told(session: Session) -> Rows:
    rows: Rows = Compaction.objects.filter(session=session, generation__isnull=False).order_by("generation").values(*_CHECKPOINT_COLUMNS)
    return rows


def _named(session: Session, marks: tuple[Mark, ...], checkpoint: Checkpoint | None, window: EntryWindow) -> Rows:
    """The checkpoints that a page names: to choose between, the one that is shown, and those with a divider in the window."""
    generations = {mark.generation for mark in marks[-OFFERED_GENERATIONS:]} | {checkpoint.generation if checkpoint else NO_GENERATION}
    dividers = {item.index for item in window.items if item.is_divider}
    generations |= {mark.generation for mark in marks if mark.divider_index in dividers}
    named: Rows = _told(session).filter(generation__in=generations)
    return named


def _checkpoint_rows(session: Session, rows: Iterable[dict[str, Any]]) -> tuple[CheckpointRow, ...]:
    active = {session.active_agent_id, session.active_console_id}
    return tuple(
        CheckpointRow(
            id=str(row["pk"]),
            generation=row["generation"] or 0,
            lineage=Lineage(row["lineage"]),
            trigger=row["trigger"],
            requested_by=row["requested_by"],
            outcome=row["outcome"],
            divider_index=row["divider_index"],
            boundary_index=row["boundary_index"],
            entries_folded=row["entries_folded"],
            tokens_before=row["tokens_before"],
            tokens_after=row["tokens_after"],
            scopes_match=bool(row["tokens_before_scope"]) and row["tokens_before_scope"] == row["tokens_after_scope"],
            duration_s=_span_s(row["lineage"], row["started_at"], row["finished_at"], row["detail"]),
            is_active=row["pk"] in active,
            revert_to=row["parent__generation"] or NO_GENERATION,
            is_rewound=REWOUND in row["warnings"],
        )
        for row in rows
    )


def duration_s(compaction: Compaction) -> float | None:
    """How long an attempt took, in seconds; of an agent's own, what its record says, if it says so."""
    return _span_s(compaction.lineage, compaction.started_at, compaction.finished_at, compaction.detail)


def _span_s(lineage: str, started: datetime | None, finished: datetime | None, detail: object) -> float | None:
    if started and finished and lineage == Lineage.CONSOLE:
        return (finished - started).total_seconds()
    said = detail.get("duration_ms") if isinstance(detail, dict) else None
    return said / 1000 if isinstance(said, int | float) and said > 0 else None  # agents write 0 where they did not measure


def _view(session: Session, options: HistoryOptions, marks: tuple[Mark, ...]) -> tuple[Lineage, tuple[Mark, ...], Checkpoint | None]:
    """Whose context is shown, the checkpoints that led to it, and its plan with what is pinned and excluded; None: there is none."""
    context = options.context or plans.default_context(session)
    if options.at_view is not None:
        then = in_force_then(session, options.context, options.at_view)
        chain = chain_to(marks, then.newest.pk if then.newest else None)
        held = plans.with_overrides(_planned(chain), then.decided)
        return then.context, chain, ChosenView(then.context, held, options.at_view).clipped_checkpoint
    newest = _newest(session, context, options.generation, marks)
    chain = chain_to(marks, newest)
    if newest is not None and not chain:
        raise plans.BrokenPlan(None)
    is_agents = chain[-1].lineage == Lineage.AGENT if chain and options.generation is not None else context is Lineage.AGENT
    held = _planned(chain)
    if not is_agents:
        held = plans.with_overrides(held, plans.overrides_of(session))
    return context, chain, held[-1] if held else None


def marked_view(session: Session, context: Lineage | None = None) -> tuple[tuple[Mark, ...], Checkpoint | None]:
    """The checkpoints that led to the view of a context, and its plan; a few queries. Raises `plans.BrokenPlan`."""
    _, chain, checkpoint = _view(session, HistoryOptions(context=context), marks_of(session.pk))
    return chain, checkpoint


def _planned(chain: tuple[Mark, ...]) -> tuple[Checkpoint, ...]:
    if not chain:
        return ()
    last = chain[-1]
    if prefixes.is_other_than(last.pk):
        raise plans.PrefixChanged(last.generation, last.boundary_index or 0)
    return (plan_of(last),)


def _newest(session: Session, context: Lineage, generation: int | None, marks: tuple[Mark, ...]) -> uuid.UUID | None:
    if generation is None:
        return session.active_agent_id if context is Lineage.AGENT else plans.newest_of_console(session)
    if generation == NO_GENERATION:
        return None
    newest = next((mark.pk for mark in marks if mark.generation == generation), None)
    if newest is None:
        raise LookupError(f"This session has no generation #{generation}.")
    return newest


def _place(options: HistoryOptions, layout: Layout, checkpoint: Checkpoint | None) -> WindowPlace:
    """Beside a block the page starts at its boundary, where the two histories part; else at the newest entries.

    The model view begins at the boundary: what lies before it is in the head of the view.
    """
    floor = checkpoint.boundary_index if checkpoint and layout is Layout.VIEW else 0
    at = None if options.at is None else max(options.at, floor)
    start = None if options.start is None else max(options.start, floor)
    place = WindowPlace(
        at=at, before=options.before, start=start, last=options.last, detail=options.detail, floor=floor, ceiling=options.at_view
    )
    if not options.names_a_place and checkpoint and checkpoint.generation and layout is Layout.SPLIT:
        return replace(place, at=checkpoint.boundary_index, lead=BOUNDARY_LEAD)
    return place


def _contexts(session: Session) -> tuple[Lineage, ...]:
    """The contexts that may be chosen between: both, when the agent made checkpoints and this console did too."""
    held = []
    if session.active_agent_id:
        held.append(Lineage.AGENT)
    if session.active_console_id or not plans.overrides_of(session).is_empty:
        held.append(Lineage.CONSOLE)
    return tuple(held)


def _all_items(window: EntryWindow) -> list[HistoryItem]:
    return [one for item in window.items for one in (item, *item.results)]


def _shape(item: HistoryItem) -> EntryShape:
    entry = item.entry
    return EntryShape(
        index=entry.index,
        role=entry.role,
        kind=entry.kind,
        tokens=entry.tokens,
        source_id=entry.source_id,
        message_key=entry.message_key,
        call_ids=item.call_ids,
        off_branch=entry.off_branch,
        meta=entry.meta,
    )


def _block(checkpoint: Checkpoint | None, rows: tuple[CheckpointRow, ...]) -> Block | None:
    if checkpoint is None or not checkpoint.generation:
        return None
    row = next((row for row in rows if row.generation == checkpoint.generation), None)
    return Block(
        generation=checkpoint.generation,
        lineage=checkpoint.lineage,
        messages=tuple(segment.payload for segment in checkpoint.segments if segment.payload is not None),
        tokens=plans.synthetic_tokens(checkpoint),
        folded=row.entries_folded if row else 0,
        is_trim=checkpoint.trimmed,
        rewound=REWOUND if row and row.is_rewound else "",
    )


def _head(session: Session, checkpoint: Checkpoint | None, window: EntryWindow, layout: Layout) -> tuple[HistoryItem, ...]:
    """The entries that stand before the verbatim tail of a view: beside the block those that it carries, in the model view all."""
    if checkpoint is None or layout is Layout.CANONICAL or (layout is Layout.VIEW and window.has_earlier):
        return ()
    wanted: list[int] = []
    for segment in checkpoint.segments:
        if segment.kind is SegmentKind.ENTRY and segment.first is not None:
            wanted.append(segment.first)
        elif layout is Layout.VIEW and segment.kind is SegmentKind.RANGE and segment.first is not None and segment.last is not None:
            wanted.extend(range(segment.first, min(segment.last, segment.first + MAX_HEAD) + 1))
    wanted = wanted[:MAX_HEAD]
    known = {item.index: item for item in _all_items(window)}
    missing = [index for index in wanted if index not in known]
    if missing:
        known.update({item.index: item for item in read_items(session.pk, missing)})
    return tuple(known[index] for index in wanted if index in known)
