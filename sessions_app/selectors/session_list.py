"""The list of sessions: one page of rows, and each row by itself."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sessions_app.engine.breaker import OPENS_AT
from sessions_app.engine.terms import Origin
from sessions_app.models import Session, SessionStatus
from sessions_app.models.session import SessionQuerySet
from sessions_app.selectors.followed import list_cursor
from sessions_app.selectors.keyset import Cursor, Ordering, Position, page_of
from sessions_app.selectors.session_filters import ATTENTION_PRESSURE, VIEWS, FilterChoices, SessionFilters, facets_and_matching
from sessions_app.selectors.session_page import current_chunk

PAGE_ROWS = 100
ORDERINGS = {
    "active": Ordering("last_activity_at", descending=True, value_type=datetime),
    "title": Ordering("title", descending=False, value_type=str),
    "entries": Ordering("entry_count", descending=True, value_type=int),
    "context": Ordering("pressure", descending=True, value_type=float),
}
DEFAULT_SORT = "active"

COLUMNS = (
    "title", "agent", "model", "kind", "status", "labels", "entry_count", "compaction_count", "failure_count", "warning_count",
    "signal_tokens", "signal_origin", "signal_scope", "signal_measured_at", "window", "trigger_tokens", "pressure",
    "last_activity_at", "project__name", "running__chunk_index", "running__chunk_count", "relation",
    "breaker_failures", "refill_warning",
)  # fmt: skip


@dataclass(frozen=True)
class Meter:
    """How full a context is. `fill` and `trigger` are whole per cent of the bar and never leave it."""

    tokens: int | None
    window: int
    share: float | None  # of the window, as 1; the pressure
    fill: int
    trigger: int
    state: str  # `is-over` from 90 %, `is-near` from the trigger, else empty
    is_estimated: bool
    scope: str
    origin: str
    measured_at: str
    trigger_tokens: int = 0  # from so many tokens on a compaction is due


@dataclass(frozen=True)
class SessionRow:
    """One session in the list. Nothing in it depends on who looks."""

    id: uuid.UUID
    title: str
    agent: str
    model: str
    kind: str
    status: str
    project: str
    labels: tuple[str, ...]
    meter: Meter
    entries: int
    compactions: int
    active_at: datetime
    chunk: tuple[int, int] | None  # the one that is under way, of how many
    failures: int
    warnings: int
    relation: str = ""  # `fork`, `continuation`, or empty
    attention: str = ""  # why automatic compaction needs somebody's attention


@dataclass(frozen=True)
class ViewTab:
    key: str
    label: str
    count: int


@dataclass(frozen=True)
class SessionListPage:
    """One page of the list, and all that stands around it."""

    rows: tuple[SessionRow, ...]
    tabs: tuple[ViewTab, ...]
    choices: tuple[FilterChoices, ...]
    filters: SessionFilters
    sort: str
    descending: bool
    matching: int
    position: Position
    cursor: int  # of the live feed: what came later is told by the socket

    @property
    def order(self) -> str:
        """`sort` as it stands in the address."""
        return self.sort if ORDERINGS[self.sort].descending == self.descending else f"-{self.sort}"

    @property
    def leads_to(self) -> dict[str, str]:
        """What `sort` becomes when somebody chooses a column: its natural order, or the other one if it is chosen already."""
        return {column: f"-{column}" if column == self.order else column for column in ORDERINGS}


def session_list_page(
    filters: SessionFilters, *, sort: str = DEFAULT_SORT, reverse: bool = False, cursor: str = "", size: int = PAGE_ROWS
) -> SessionListPage:
    """At most `size` rows from `cursor` on, in the order `sort` (`reverse`: the other way round).

    Two queries, and two for counts and choices unless they are cached and no filter is set.
    Raises `keyset.CursorError`.
    """
    ordering = ORDERINGS[sort].reversed() if reverse else ORDERINGS[sort]
    live_from = list_cursor()
    query = _rows().filter(VIEWS[filters.view][1], filters.condition())
    sessions, position = page_of(query, ordering, Cursor.decode(cursor, ordering), size)
    facets, matching = facets_and_matching(filters)
    rows = tuple(row_of(session) for session in sessions)
    return SessionListPage(
        rows=rows,
        tabs=tuple(ViewTab(key, label, facets.counts[key]) for key, (label, _) in VIEWS.items()),
        choices=tuple(choice.choosing(filters.value_of(choice.name), _label(choice.name, filters, rows)) for choice in facets.choices),
        filters=filters,
        sort=sort,
        descending=ordering.descending,
        matching=matching,
        position=position,
        cursor=live_from,
    )


def rows(session_ids: Sequence[uuid.UUID]) -> tuple[SessionRow, ...]:
    """The rows of these sessions, in this order, without those that stand in no list. One query."""
    found = _rows().in_bulk(session_ids)
    return tuple(row_of(found[session_id]) for session_id in session_ids if session_id in found)


def _label(name: str, filters: SessionFilters, rows: tuple[SessionRow, ...]) -> str:
    """What a chosen value is called that is not among those on offer."""
    return rows[0].project if name == "project" and rows else filters.value_of(name)


def _rows() -> SessionQuerySet:
    return Session.objects.listed().select_related("project", "running").only(*COLUMNS)


def row_of(session: Session) -> SessionRow:
    """A session as the list shows it, from a row with its `project` and `running`; no query."""
    running = session.running
    return SessionRow(
        id=session.pk,
        title=session.title or "Untitled",
        agent=session.agent,
        model=session.model,
        kind=session.kind,
        status=SessionStatus.COMPACTING if running else session.status,
        project=session.project.name if session.project else "",
        labels=tuple(session.labels),
        meter=meter_of(session),
        entries=session.entry_count,
        compactions=session.compaction_count,
        active_at=session.last_activity_at,
        chunk=(current_chunk(running), running.chunk_count) if running and running.chunk_count else None,
        failures=session.failure_count,
        warnings=session.warning_count,
        relation=session.relation,
        attention=_attention(session),
    )


def _attention(session: Session) -> str:
    if session.breaker_failures >= OPENS_AT:
        return f"The last {session.breaker_failures} automatic compactions failed"
    return session.refill_warning


def meter_of(session: Session) -> Meter:
    """The session's signal against its window and trigger, from the row alone."""
    state = ""
    if session.signal_tokens is not None and session.signal_tokens >= session.trigger_tokens:
        state = "is-near"
    if session.pressure >= ATTENTION_PRESSURE:
        state = "is-over"
    return Meter(
        tokens=session.signal_tokens,
        window=session.window,
        share=None if session.signal_tokens is None else session.pressure,
        fill=min(100, round(session.pressure * 100)),
        trigger=min(100, round(session.trigger_tokens / session.window * 100)) if session.window else 100,
        state=state,
        is_estimated=session.signal_origin == Origin.ESTIMATED,
        scope=session.signal_scope,
        origin=session.signal_origin,
        measured_at=session.signal_measured_at,
        trigger_tokens=session.trigger_tokens,
    )
