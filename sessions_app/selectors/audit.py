"""The audit log of all streams: filtered, newest first, paged by key on an index, and never searched without an end."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import datetime

from django.db.models import Q, QuerySet

from sessions_app.events.log import session_stream
from sessions_app.models import Event, EventResult

PAGE_EVENTS = 100
LOOKED_AT = 20_000
"""One page looks at no more events than this; where a rare one was not found among them, the next page goes on."""

COUNTED = 1_000
EXPORTED_AT_ONCE = 1_000
ACCESS = "access"
FAMILIES = ("session", "security", ACCESS, "imports", "project")
"""Kinds of streams: what stands before the colon of their names."""


class UnknownPlaceError(LookupError):
    """There is no event at the place from which a page was to go on."""


@dataclass(frozen=True, kw_only=True)
class AuditFilters:
    """What the address asks for. An empty string means any; `since` and `until` are moments in UTC."""

    stream: str = ""
    family: str = ""
    actor: str = ""
    kind: str = ""
    role: str = ""
    action: str = ""
    session: str = ""
    target: str = ""
    result: str = ""
    compaction: str = ""
    request: str = ""
    gesture: str = ""
    address: str = ""
    since: datetime | None = None
    until: datetime | None = None
    q: str = ""

    def value_of(self, name: str) -> str:
        """What the address holds for one filter."""
        value = getattr(self, name)
        return value.isoformat(timespec="minutes").removesuffix("+00:00") if isinstance(value, datetime) else value or ""

    @property
    def chosen(self) -> dict[str, str]:
        """The filters that are set, by name."""
        return {field.name: self.value_of(field.name) for field in fields(self) if getattr(self, field.name)}


@dataclass(frozen=True)
class AuditPage:
    """At most as many events as were asked for. `newer` and `older` are the ids from which the neighbouring pages go on, or None.

    `searched_back_to` is set when older events were not looked at, because there are too many of them: the page may hold
    fewer events than it could, and `older` leads on. `newest` is the last event of all streams when the page was read.
    """

    events: tuple[Event, ...]
    newer: int | None
    older: int | None
    searched_back_to: str
    newest: int


@dataclass(frozen=True)
class Matching:
    """How many events match: `number`, and more than that if `has_more` (it is not worth counting all of them)."""

    number: int
    has_more: bool


def audit_page(filters: AuditFilters, *, before: int | None = None, after: int | None = None, size: int = PAGE_EVENTS) -> AuditPage:
    """The newest `size` events that match, or those before or after one. At most four queries, each on an index.

    Raises `UnknownPlaceError` when there is no event `before` or `after`.
    """
    newest = newest_id()
    place = _place(before or after)
    backwards = after is not None
    reach = _Reach(filters, place, backwards=backwards)
    found = list(reach.matching()[: size + 1])
    has_more = len(found) > size
    events = found[:size]
    if backwards:
        events.reverse()
    ends_early = reach.edge is not None and not has_more
    further = events[0 if backwards else -1].pk if has_more else reach.edge[1] if reach.edge is not None else None
    returning = _returning(events, place, backwards=backwards)
    return AuditPage(
        events=tuple(events),
        newer=further if backwards else returning,
        older=returning if backwards else further,
        searched_back_to=reach.edge[0] if reach.edge is not None and ends_early else "",
        newest=newest,
    )


def count_matching(filters: AuditFilters) -> Matching:
    """Counts what matches among the newest events, up to a thousand. Two queries."""
    reach = _Reach(filters, None, backwards=False)
    number = len(reach.matching().values_list("pk", flat=True)[: COUNTED + 1])
    return Matching(min(number, COUNTED), has_more=number > COUNTED or reach.edge is not None)


def newest_id() -> int:
    """The id of the last event of all streams, 0 without one. One query."""
    return Event.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


def count_newer(filters: AuditFilters, than: int) -> Matching:
    """How many matching events were written after the one with this id; reads of people only when they are asked for."""
    query = Event.objects.filter(filters_condition(filters), pk__gt=than)
    if filters.family != ACCESS and not filters.stream:
        query = query.exclude(stream__startswith=f"{ACCESS}:")
    number = len(query.order_by("pk").values_list("pk", flat=True)[: PAGE_EVENTS + 1])
    return Matching(min(number, PAGE_EVENTS), has_more=number > PAGE_EVENTS)


def count_exactly(filters: AuditFilters, *, up_to: int) -> int:
    """How many events match, all of them counted, up to an id. One query, which may look at all of the log."""
    return Event.objects.filter(filters_condition(filters), pk__lte=up_to).count()


def matching_events(filters: AuditFilters, *, up_to: int) -> Iterator[Event]:
    """Every event that matches, the oldest first, up to an id. In constant memory, and without a cursor that stays open."""
    condition = filters_condition(filters)
    place: tuple[str, int] | None = None
    while True:
        query = Event.objects.filter(condition, _beyond(place, forwards=True), pk__lte=up_to).order_by("at", "pk")
        events = list(query[:EXPORTED_AT_ONCE])
        yield from events
        if len(events) < EXPORTED_AT_ONCE:
            return
        place = events[-1].at, events[-1].pk


class _Reach:
    """The stretch of the log that one page looks at: `edge` is (time, id) of its far end, None if that is the log's own."""

    def __init__(self, filters: AuditFilters, place: tuple[str, int] | None, *, backwards: bool) -> None:
        self._forwards = backwards
        self._condition = filters_condition(filters) & _beyond(place, forwards=self._forwards)
        near = driving_condition(filters) & _times(filters) & _beyond(place, forwards=self._forwards)
        self.edge: tuple[str, int] | None = (
            Event.objects.filter(near).order_by(*self._order()).values_list("at", "pk")[LOOKED_AT : LOOKED_AT + 1].first()
            if _needs_a_search(filters)
            else None
        )

    def matching(self) -> "QuerySet[Event]":
        query = Event.objects.filter(self._condition)
        if self.edge is not None:
            query = query.filter(at__lte=self.edge[0]) if self._forwards else query.filter(at__gte=self.edge[0])
        return query.order_by(*self._order())

    def _order(self) -> tuple[str, str]:
        return ("at", "pk") if self._forwards else ("-at", "-pk")


_EXACT = {"request": "request_id", "gesture": "gesture_id", "compaction": "compaction_id", "target": "target_id"}
_DRIVERS = {**_EXACT, "stream": "stream", "actor": "actor_name", "action": "type", "result": "result"}
"""Filters with an index in the order of time, the one that finds fewest events first."""

_LEFT_OUT = {"target_id": "", "request_id": "", "gesture_id": "", "result": str(EventResult.ALLOWED)}
"""The value that no index holds, by column: nearly every event has it. All others come after it in order."""


def driving_condition(filters: AuditFilters) -> Q:
    """The one filter whose index is walked; an empty condition walks the index of times."""
    if filters.session and not any(getattr(filters, name) for name in _EXACT):
        return _session(filters.session)
    for name, column in _DRIVERS.items():
        value = getattr(filters, name)
        if value and (name, value) != ("result", EventResult.ALLOWED):
            return equals(column, value)
    return Q()


def equals(column: str, value: str) -> Q:
    """That a column has this value, said so that an index which leaves the most frequent value out is known to hold it."""
    most = _LEFT_OUT.get(column, value)
    return Q(**{column: value}) if value == most else Q(**{column: value, f"{column}__gt": most})


def _needs_a_search(filters: AuditFilters) -> bool:
    """Whether events on the index that is walked may not match, so that there could be many between two that do."""
    indexed = [name for name in _DRIVERS if getattr(filters, name)]
    loose = [name for name in filters.chosen if name not in (*_DRIVERS, "since", "until")]
    return bool(loose) or len(indexed) > 1 or filters.result == EventResult.ALLOWED


def filters_condition(filters: AuditFilters) -> Q:
    """All filters as one condition."""
    condition = _times(filters)
    columns = {**_DRIVERS, "kind": "actor_kind", "role": "actor_role", "address": "address"}
    for name, column in columns.items():
        if value := getattr(filters, name):
            condition &= equals(column, value)
    if filters.session:
        condition &= _session(filters.session)
    if filters.family:
        condition &= Q(stream=filters.family) | Q(stream__startswith=f"{filters.family}:")
    if filters.q:
        texts = ("actor_name", "type", "target_id", "reason", "request_id", "gesture_id")
        condition &= Q(*((f"{text}__icontains", filters.q) for text in texts), _connector=Q.OR)
    return condition


def _session(session_id: str) -> Q:
    return Q(stream=session_stream(session_id)) | equals("target_id", session_id)


def _times(filters: AuditFilters) -> Q:
    """Moments are compared as the text that an event keeps: ISO 8601 in UTC, all of one length."""
    condition = Q()
    if filters.since:
        condition &= Q(at__gte=filters.since.isoformat(timespec="microseconds"))
    if filters.until:
        condition &= Q(at__lt=filters.until.isoformat(timespec="microseconds"))
    return condition


def _place(identifier: int | None) -> tuple[str, int] | None:
    if identifier is None:
        return None
    found = Event.objects.filter(pk=identifier).values_list("at", "pk").first()
    if found is None:
        raise UnknownPlaceError
    return found


def _beyond(place: tuple[str, int] | None, *, forwards: bool) -> Q:
    """Events on the far side of a place. The first condition is the one that an index can use."""
    if place is None:
        return Q()
    at, identifier = place
    word = "gt" if forwards else "lt"
    return Q(**{f"at__{word}e": at}) & (Q(**{f"at__{word}": at}) | Q(**{f"pk__{word}": identifier}))


def _returning(events: list[Event], place: tuple[str, int] | None, *, backwards: bool) -> int | None:
    """From where the page that one came from goes on, if one came from anywhere."""
    if place is None:
        return None
    return events[-1 if backwards else 0].pk if events else place[1]
