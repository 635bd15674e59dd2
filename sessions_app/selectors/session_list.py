"""The list of sessions: one page of rows, the counts of its views, and what can be filtered by."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from django.core.cache import cache
from django.db.models import Count, F, Q

from sessions_app.engine.terms import Origin
from sessions_app.models import Session, SessionKind, SessionStatus
from sessions_app.models.session import SessionQuerySet
from sessions_app.selectors.agents import agent_name
from sessions_app.selectors.keyset import Cursor, Ordering, Position, page_of

PAGE_ROWS = 100
ATTENTION_PRESSURE = 0.9
PRESSURES = (50, 80, 90)  # per cent that the filter offers
CACHED_S = 10  # counts and choices may be this old
_COUNTS_KEY, _CHOICES_KEY = "session_list.counts", "session_list.choices"

LIVE_STATUSES = (SessionStatus.WORKING, SessionStatus.WAITING, SessionStatus.COMPACTING)
VIEWS: dict[str, tuple[str, Q]] = {
    "": ("All", Q()),
    "attention": (
        "Needs attention",
        Q(status__in=(SessionStatus.WAITING, SessionStatus.FAILED)) | Q(pressure__gte=ATTENTION_PRESSURE),
    ),
    "live": ("Live", Q(status__in=LIVE_STATUSES)),
    "pressure": ("Under pressure", Q(signal_tokens__gte=F("trigger_tokens"))),
}
ORDERINGS = {
    "active": Ordering("last_activity_at", descending=True, value_type=datetime),
    "title": Ordering("title", descending=False, value_type=str),
    "entries": Ordering("entry_count", descending=True, value_type=int),
    "context": Ordering("pressure", descending=True, value_type=float),
}
DEFAULT_SORT = "active"

_COLUMNS = (
    "title", "agent", "model", "kind", "status", "labels", "entry_count", "compaction_count", "failure_count", "warning_count",
    "signal_tokens", "signal_origin", "signal_scope", "signal_measured_at", "window", "trigger_tokens", "pressure",
    "last_activity_at", "project__name", "running__chunk_index", "running__chunk_count",
)  # fmt: skip


@dataclass(frozen=True)
class SessionFilters:
    """What the address asks for. An empty string, or None, means any."""

    view: str = ""
    q: str = ""
    agent: str = ""
    model: str = ""
    status: str = ""
    project: str = ""
    kind: str = ""
    pressure: int | None = None  # at least so many per cent

    def condition(self) -> Q:
        """The filters as one condition, without the view."""
        condition = Q()
        for name, value in (("agent", self.agent), ("model", self.model), ("status", self.status), ("kind", self.kind)):
            if value:
                condition &= Q(**{name: value})
        if self.q:
            condition &= Q(title__icontains=self.q)
        if self.project:
            condition &= Q(project_id=self.project)
        if self.pressure is not None:
            condition &= Q(pressure__gte=self.pressure / 100)
        return condition

    def value_of(self, name: str) -> str:
        """What the address holds for one filter."""
        value = getattr(self, name)
        return "" if value is None else str(value)

    @property
    def is_set(self) -> bool:
        return self != SessionFilters(view=self.view)


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
    chunk: tuple[int, int] | None  # of how many, while a compaction summarises
    failures: int
    warnings: int


@dataclass(frozen=True)
class ViewTab:
    key: str
    label: str
    count: int


@dataclass(frozen=True)
class Choice:
    """One value of a filter, and how it reads."""

    value: str
    label: str


@dataclass(frozen=True)
class FilterChoices:
    """One filter of the list: its name in the address, what it says, what it offers."""

    name: str
    label: str
    offered: tuple[Choice, ...]
    chosen: str = ""


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

    @property
    def order(self) -> str:
        """`sort` as it stands in the address."""
        return self.sort if ORDERINGS[self.sort].descending == self.descending else f"-{self.sort}"

    @property
    def leads_to(self) -> dict[str, str]:
        """What `sort` becomes when somebody chooses a column: its natural order, or the other one if it is chosen already."""
        return {column: f"-{column}" if column == self.order else column for column in ORDERINGS}


def session_list_page(filters: SessionFilters, *, sort: str = DEFAULT_SORT, reverse: bool = False, cursor: str = "") -> SessionListPage:
    """At most `PAGE_ROWS` rows from `cursor` on, in the order `sort` (`reverse`: the other way round).

    One query for the rows, one for the counts unless they are cached, one for the choices unless they are.
    Raises `keyset.BadCursor`.
    """
    ordering = ORDERINGS[sort].reversed() if reverse else ORDERINGS[sort]
    query = _rows().filter(VIEWS[filters.view][1], filters.condition())
    sessions, position = page_of(query, ordering, Cursor.decode(cursor, ordering), PAGE_ROWS)
    counts, matching = _counts(filters)
    return SessionListPage(
        rows=tuple(_row(session) for session in sessions),
        tabs=tuple(ViewTab(key, label, counts[key]) for key, (label, _) in VIEWS.items()),
        choices=tuple(replace(choice, chosen=filters.value_of(choice.name)) for choice in _choices()),
        filters=filters,
        sort=sort,
        descending=ordering.descending,
        matching=matching,
        position=position,
    )


def row(session_id: uuid.UUID | str) -> SessionRow | None:
    """The session's row, or None when it does not stand in the list. One query."""
    session = _rows().filter(pk=session_id).first()
    return None if session is None else _row(session)


def _rows() -> SessionQuerySet:
    return Session.objects.listed().select_related("project", "running").only(*_COLUMNS)


def _row(session: Session) -> SessionRow:
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
        chunk=(running.chunk_index, running.chunk_count) if running and running.chunk_count else None,
        failures=session.failure_count,
        warnings=session.warning_count,
    )


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
    )


def _counts(filters: SessionFilters) -> tuple[dict[str, int], int]:
    """How many sessions each view holds, and how many match the filters: at most one query."""
    views: dict[str, int] | None = cache.get(_COUNTS_KEY)
    wanted: dict[str, Count] = {}
    if views is None:
        wanted |= {key or "all": Count("pk", filter=condition) for key, (_, condition) in VIEWS.items()}
    if filters.is_set:
        wanted["matching"] = Count("pk", filter=VIEWS[filters.view][1] & filters.condition())
    found = Session.objects.listed().aggregate(**wanted) if wanted else {}
    if views is None:
        views = {key: found[key or "all"] for key in VIEWS}
        cache.set(_COUNTS_KEY, views, CACHED_S)
    return views, found["matching"] if filters.is_set else views[filters.view]


def _choices() -> tuple[FilterChoices, ...]:
    """Every value that some listed session has: at most one query."""
    choices: tuple[FilterChoices, ...] | None = cache.get(_CHOICES_KEY)
    if choices is None:
        rows = set(Session.objects.listed().values_list("agent", "model", "project_id", "project__name").distinct())
        projects = {(str(identifier), name) for *_, identifier, name in rows if identifier}
        choices = (
            FilterChoices("status", "Status", _same(SessionStatus.values)),
            FilterChoices("agent", "Agent", tuple(Choice(agent, agent_name(agent)) for agent in sorted({row[0] for row in rows}))),
            FilterChoices("model", "Model", _same(sorted({model for _, model, *_ in rows if model}))),
            FilterChoices("project", "Project", tuple(Choice(*project) for project in sorted(projects, key=lambda project: project[1]))),
            FilterChoices("pressure", "Pressure", tuple(Choice(str(share), f"{share} % or more") for share in PRESSURES)),
            FilterChoices("kind", "Kind", _same(SessionKind.values)),
        )
        cache.set(_CHOICES_KEY, choices, CACHED_S)
    return choices


def _same(values: Iterable[str]) -> tuple[Choice, ...]:
    return tuple(Choice(value, value) for value in values)
