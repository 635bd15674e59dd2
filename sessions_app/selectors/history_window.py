"""One window of a canonical history: some sixty entries around a place, read by index and never by OFFSET."""

import uuid
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import orjson
from django.db.models import Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from sessions_app.engine.entries import Entry
from sessions_app.engine.terms import Kind, Role
from sessions_app.models import Entry as EntryRow
from sessions_app.models import Session, SessionRelation
from sessions_app.selectors.entry_rows import as_shown, readable_usage

WINDOW_ENTRIES = 60
LEAD_ENTRIES = 12
"""So many entries stand before the one that was asked for."""

MAX_RESULTS_BEYOND = 40
"""Results that a window takes in beyond its end, so that a call and its results are one card."""


class Detail(StrEnum):
    """How much of a history is shown."""

    EVERYTHING = "everything"
    NO_OUTPUT = "no-output"
    PROMPTS = "prompts"


@dataclass(frozen=True)
class SubAgent:
    """The session that a call started."""

    id: uuid.UUID
    title: str
    entry_count: int
    tokens: int


@dataclass(frozen=True)
class HistoryItem:
    """An entry with what a page shows of it beyond what it says. `results` are those of its calls."""

    entry: Entry
    annex: dict[str, Any]
    call_ids: tuple[str, ...]
    is_error: bool = False
    has_record: bool = False
    results: tuple["HistoryItem", ...] = ()
    sub_agents: tuple[SubAgent, ...] = ()

    @property
    def index(self) -> int:
        return self.entry.index

    @property
    def last_index(self) -> int:
        return max((result.index for result in self.results), default=self.entry.index)

    @property
    def tokens(self) -> int:
        """Of the entry and its results."""
        return self.entry.tokens + sum(result.entry.tokens for result in self.results)

    @property
    def is_user_message(self) -> bool:
        return self.entry.role is Role.USER and self.entry.kind is Kind.MESSAGE and not self.entry.meta

    @property
    def is_divider(self) -> bool:
        return self.entry.role is Role.NOTICE and self.entry.kind is Kind.COMPACTED


@dataclass(frozen=True)
class EntryWindow:
    """Items in order; `first` and `last` are the indexes that it covers, None when there is nothing to show."""

    items: tuple[HistoryItem, ...] = ()
    first: int | None = None
    last: int | None = None
    has_earlier: bool = False
    has_later: bool = False


@dataclass(frozen=True)
class WindowPlace:
    """Where a window lies: around `at`, or the entries before `before`, or those from `start` on; else the newest."""

    at: int | None = None
    before: int | None = None
    start: int | None = None
    last: int | None = None  # with `start`: the same window once more, whatever its length was
    detail: Detail = Detail.EVERYTHING
    floor: int = 0  # nothing before this index is shown
    ceiling: int | None = None  # nothing after this index is shown
    lead: int = LEAD_ENTRIES  # entries before `at`
    limit: int = WINDOW_ENTRIES


def entry_window(session_id: uuid.UUID, place: WindowPlace) -> EntryWindow:
    """Reads a window: one or two queries, whatever the length of the history."""
    rows, has_earlier, has_later = _rows(session_id, place)
    if not rows:
        return EntryWindow(has_earlier=has_earlier, has_later=has_later)
    items = _paired(rows)
    return EntryWindow(
        items=_with_sub_agents(session_id, items),
        first=rows[0].index,
        last=rows[-1].index,
        has_earlier=has_earlier,
        has_later=has_later,
    )


def child_window(parent_id: uuid.UUID, call_id: str, *, start: int = 0) -> tuple[Session | None, EntryWindow]:
    """The session that a call of the parent started, and its entries from `start` on."""
    child = Session.objects.filter(parent_id=parent_id, parent_call_id=call_id, relation=SessionRelation.SUB_AGENT).first()
    if child is None:
        return None, EntryWindow()
    return child, entry_window(child.pk, WindowPlace(start=start))


def item_with_results(session_id: uuid.UUID, index: int) -> HistoryItem | None:
    """One entry with the results of its calls, as far as they stand in a window from it on; None where there is no such entry."""
    items = entry_window(session_id, WindowPlace(start=index)).items
    return items[0] if items and items[0].index == index else None


def read_items(session_id: uuid.UUID, indexes: list[int]) -> list[HistoryItem]:
    """Some entries by their indexes, in order, without results of their calls; one query."""
    return [_item(row) for row in _columns(EntryRow.objects.filter(session_id=session_id, index__in=indexes)).order_by("index")]


def _columns(rows: QuerySet[EntryRow]) -> QuerySet[EntryRow]:
    return rows.defer("prefix_hash", "prefix_tokens", "parent_source_id")


def _shown(session_id: uuid.UUID, place: WindowPlace) -> QuerySet[EntryRow]:
    rows = _columns(EntryRow.objects.filter(session_id=session_id))
    if place.floor:
        rows = rows.filter(index__gte=place.floor)
    if place.ceiling is not None:
        rows = rows.filter(index__lte=place.ceiling)
    if place.detail is Detail.PROMPTS:
        rows = rows.filter(
            Q(role__in=[Role.USER, Role.ASSISTANT], kind=Kind.MESSAGE, meta=False) | Q(kind__in=[Kind.COMPACTED, Kind.SUMMARY]),
        )
    return rows


def _rows(session_id: uuid.UUID, place: WindowPlace) -> tuple[list[EntryRow], bool, bool]:
    """The rows of a window in order, and whether there are more on either side."""
    shown = _shown(session_id, place)
    limit = place.limit
    if place.before is not None:
        rows = list(shown.filter(index__lt=place.before).order_by("-index")[: limit + 1])
        rows, has_earlier = _from_a_call(list(reversed(rows)), limit)
        return rows, has_earlier, place.ceiling is None or (bool(rows) and rows[-1].index < place.ceiling)
    if place.start is None and place.at is None:
        rows = list(shown.order_by("-index")[: limit + 1])
        rows, has_earlier = _from_a_call(list(reversed(rows)), limit)
        return rows, has_earlier, False
    if place.start is not None and place.last is not None:
        rows = list(shown.filter(index__range=(place.start, place.last)).order_by("index")[: 2 * (limit + MAX_RESULTS_BEYOND)])
        return rows, place.start > place.floor, True
    if place.start is not None:
        rows = list(shown.filter(index__gte=place.start).order_by("index")[: limit + MAX_RESULTS_BEYOND + 1])
        kept = _to_the_results(rows, limit)
        return rows[:kept], place.start > place.floor, len(rows) > kept
    at = place.at or 0
    from_index = Subquery(shown.filter(index__lt=at).order_by("-index").values("index")[place.lead : place.lead + 1])
    around = shown.filter(index__gte=Coalesce(from_index, 0)).order_by("index")
    rows = list(around[: limit + MAX_RESULTS_BEYOND + 2])
    lead, has_earlier = _from_a_call([row for row in rows if row.index < at], place.lead)
    rows = [row for row in rows if row.index >= at]
    kept = _to_the_results(rows, limit - len(lead))
    return lead + rows[:kept], has_earlier, len(rows) > kept


def _from_a_call(rows: list[EntryRow], limit: int) -> tuple[list[EntryRow], bool]:
    """At most `limit` of the last rows, not starting with results whose call was cut off, and whether rows were cut."""
    has_earlier = len(rows) > limit
    rows = rows[-limit:]
    if has_earlier:
        start = next((place for place, row in enumerate(rows) if row.kind != Kind.RESULT), 0)
        rows = rows[start:]
    return rows, has_earlier


def _to_the_results(rows: list[EntryRow], limit: int) -> int:
    """How many rows to keep so that results which follow the last call directly stay with it."""
    kept = min(limit, len(rows))
    if not kept or rows[kept - 1].kind not in (Kind.CALL, Kind.RESULT):
        return kept
    while kept < len(rows) and rows[kept].kind == Kind.RESULT:
        kept += 1
    return kept


def _paired(rows: list[EntryRow]) -> tuple[HistoryItem, ...]:
    """Items in order, each result moved into the card of its call where both are in the window."""
    items: list[HistoryItem] = []
    place_by_call: dict[str, int] = {}
    for row in rows:
        item = _item(row)
        if item.entry.kind is Kind.RESULT:
            place = next((place_by_call[call_id] for call_id in item.call_ids if call_id in place_by_call), None)
            if place is not None:
                items[place] = replace(items[place], results=(*items[place].results, item))
                continue
        elif item.call_ids:
            place_by_call.update(dict.fromkeys(item.call_ids, len(items)))
        items.append(item)
    return tuple(items)


def _with_sub_agents(session_id: uuid.UUID, items: tuple[HistoryItem, ...]) -> tuple[HistoryItem, ...]:
    call_ids = [call_id for item in items if item.entry.kind is not Kind.RESULT for call_id in item.call_ids]
    if not call_ids:
        return items
    agents: dict[str, list[SubAgent]] = {}
    children = Session.objects.filter(parent_id=session_id, parent_call_id__in=call_ids, relation=SessionRelation.SUB_AGENT)
    for pk, call_id, title, count, tokens in children.values_list("pk", "parent_call_id", "title", "entry_count", "tokens_total"):
        agents.setdefault(call_id, []).append(SubAgent(pk, title, count, tokens))
    if not agents:
        return items
    return tuple(
        replace(item, sub_agents=tuple(agent for call_id in item.call_ids for agent in agents.get(call_id, ()))) if item.call_ids else item
        for item in items
    )


def _item(row: EntryRow) -> HistoryItem:
    call_ids = (row.call_id, *row.more_call_ids) if row.call_id else ()
    role, kind, parts = as_shown(row.role, row.kind, row.parts)
    entry = Entry(
        index=row.index,
        role=role,
        kind=kind,
        parts=parts,
        tokens=row.tokens,
        source_id=row.source_id,
        message_key=row.message_key,
        off_branch=row.off_branch,
        meta=row.meta,
        usage=readable_usage(row.usage),
        model=row.model,
        timestamp=row.timestamp,
    )
    annex = row.annex if isinstance(row.annex, dict) else orjson.loads(row.annex or b"{}")
    return HistoryItem(
        entry=entry,
        annex=annex,
        call_ids=call_ids,
        is_error=row.is_error,
        has_record=row.record_ordinal is not None,
    )
