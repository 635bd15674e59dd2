"""The history tab: a window of entries, the fate of each in the view that is shown, and the places to go from here."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from sessions_app.engine.entries import Checkpoint, SyntheticMessage
from sessions_app.engine.fates import EntryFate, fate_of
from sessions_app.engine.shapes import EntryShape
from sessions_app.engine.terms import Lineage, SegmentKind
from sessions_app.models import Compaction, Session
from sessions_app.selectors import plans
from sessions_app.selectors.chosen_view import chosen_view
from sessions_app.selectors.history_window import Detail, EntryWindow, HistoryItem, WindowPlace, entry_window, read_items
from sessions_app.selectors.prefixes import REWOUND

NO_GENERATION = 0
MAX_HEAD = 200
_CHECKPOINT_COLUMNS = (
    "pk", "generation", "parent_id", "parent__generation", "lineage", "trigger", "requested_by", "outcome", "divider_index", "warnings",
    "boundary_index", "prefix_hash", "entries_folded", "tokens_before", "tokens_before_scope", "tokens_after", "tokens_after_scope",
    "started_at", "finished_at", "detail",
)  # fmt: skip
BOUNDARY_LEAD = 32
"""Beside a block more of what it stands for is shown."""


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
    """One window, ready to be laid out."""

    options: HistoryOptions
    layout: Layout
    context: Lineage
    contexts: tuple[Lineage, ...]
    window: EntryWindow
    fates: dict[int, EntryFate]
    checkpoint: Checkpoint | None
    checkpoints: tuple[CheckpointRow, ...]
    block: Block | None
    head: tuple[HistoryItem, ...]
    entry_count: int
    view_tokens: int
    upto: int | None = None  # the page shows everything as it was when this entry was the newest

    @property
    def generation(self) -> int:
        """The generation whose view is shown; 0 for the whole history."""
        return self.checkpoint.generation if self.checkpoint else NO_GENERATION

    @property
    def boundary_index(self) -> int:
        """First entry of the verbatim tail of the view; 0 when nothing is folded."""
        return self.checkpoint.boundary_index if self.checkpoint else 0

    def divider_at(self, index: int) -> CheckpointRow | None:
        return next((row for row in self.checkpoints if row.divider_index == index), None)


def history_page(session: Session, options: HistoryOptions) -> HistoryPage:
    """The window that the options ask for. A dozen queries at most, whatever the length of the history.

    Raises `LookupError` for a generation or an entry that the session does not have.
    """
    context = options.context or plans.default_context(session)
    committed = _committed(session)
    if options.at_view is None:
        chain = _chain(session, context, options.generation, committed)
    else:
        then = chosen_view(session, context=options.context, at=options.at_view)
        context, chain = then.context, then.clipped()
    checkpoint = chain[-1] if chain else None
    layout = options.layout or (Layout.SPLIT if checkpoint and checkpoint.generation else Layout.CANONICAL)
    window = entry_window(session.pk, _place(options, layout, checkpoint))
    fates = {item.index: fate_of(_shape(item), chain) for item in _all_items(window)}
    rows = _checkpoint_rows(session, committed)
    block = _block(checkpoint, rows)
    return HistoryPage(
        options=options,
        layout=layout,
        context=context,
        contexts=_contexts(session),
        window=window,
        fates=fates,
        checkpoint=checkpoint,
        checkpoints=rows,
        block=block,
        head=_head(session, checkpoint, window, layout),
        entry_count=session.entry_count,
        view_tokens=_view_tokens(session, checkpoint, options),
        upto=options.at_view,
    )


def _view_tokens(session: Session, checkpoint: Checkpoint | None, options: HistoryOptions) -> int:
    """The estimate of the view; of the default one it stands in the session's row."""
    if checkpoint is None and options.at_view is not None:
        return plans.tokens_between(session.pk, 0, options.at_view)
    is_default = options.generation is None and options.context is None and options.at_view is None
    if is_default and session.composition:
        return sum(session.composition.values())
    return plans.view_tokens(session, checkpoint)


def checkpoint_rows(session: Session) -> tuple[CheckpointRow, ...]:
    """All checkpoints of a session, oldest first; one query over small columns, as plain rows, since there may be hundreds."""
    return _checkpoint_rows(session, _committed(session))


def _committed(session: Session) -> list[dict[str, Any]]:
    rows = Compaction.objects.filter(session=session, generation__isnull=False).order_by("generation")
    return list(rows.values(*_CHECKPOINT_COLUMNS))


def _checkpoint_rows(session: Session, rows: list[dict[str, Any]]) -> tuple[CheckpointRow, ...]:
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


def _chain(session: Session, context: Lineage, generation: int | None, committed: list[dict[str, Any]]) -> tuple[Checkpoint, ...]:
    if generation is None:
        newest = session.active_agent_id if context is Lineage.AGENT else plans.newest_of_console(session)
    elif generation == NO_GENERATION:
        newest = None
    else:
        newest = next((row["pk"] for row in committed if row["generation"] == generation), None)
        if newest is None:
            raise LookupError(f"This session has no generation #{generation}.")
    rows = (plans.Committed(*(row[name] for name in plans.Committed._fields)) for row in committed)
    chain = plans.chain_among(rows, newest) if newest else ()
    is_agents = chain[-1].lineage is Lineage.AGENT if chain and generation is not None else context is Lineage.AGENT
    return chain if is_agents else plans.with_overrides(chain, plans.overrides_of(session))


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
