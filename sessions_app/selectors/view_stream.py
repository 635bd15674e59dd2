"""A model view message by message, whatever its length: no more of it is held than what may still change."""

import uuid
from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec
from django.db.models import F, Max, Min

from sessions_app.engine import view
from sessions_app.engine.entries import Checkpoint, Entry, Segment, SyntheticMessage
from sessions_app.engine.messages import ViewMessage
from sessions_app.engine.terms import Kind, Role, SegmentKind
from sessions_app.models import Entry as EntryRow
from sessions_app.selectors import plans

_EVERYTHING = (Segment(kind=SegmentKind.RANGE, first=0),)


def stream_view(
    session_id: uuid.UUID,
    checkpoint: Checkpoint | None,
    *,
    upto: int | None = None,
    whole: bool = True,
    keep: int = view.HELD_BACK,
    take: Callable[[Entry], object] = lambda _entry: None,
) -> Iterator[ViewMessage]:
    """The messages of a plan's view, the same as `plans.view_of` gives, in order. `upto`: nothing after that entry.
    `keep`: exchanges that are held back. `take` is called with each entry that the plan names, before its message comes.

    Reads entries page by page; `whole` fetches shortened texts from their blobs.
    """
    segments = checkpoint.segments if checkpoint else _EVERYTHING
    places = [place for place in (clipped(segment, upto) for segment in segments) if place is not None]
    awaited = _Awaited(session_id, keep)
    excluded = checkpoint.excluded if checkpoint else frozenset()
    items = _told(take, excluded, awaited.watching(_items(session_id, places, whole=whole)))
    return view.stream(items, checkpoint, awaited, keep=keep)


def clipped(segment: Segment, upto: int | None) -> Segment | None:
    """A segment without what comes after an entry; None when nothing of it is left."""
    if upto is None or segment.first is None:
        return segment
    if segment.first > upto:
        return None
    if segment.kind is SegmentKind.RANGE:
        return msgspec.structs.replace(segment, last=upto if segment.last is None else min(segment.last, upto))
    return segment


def _items(session_id: uuid.UUID, segments: Sequence[Segment], *, whole: bool) -> Iterator[Entry | SyntheticMessage]:
    """What a plan names, in its order, each entry once: one that it names by itself stands there, not in a range around it."""
    singles = {segment.first for segment in segments if segment.kind is SegmentKind.ENTRY}
    placed: set[int] = set()
    covered: list[tuple[int, int | None]] = []
    for segment in segments:
        if segment.payload is not None:
            yield segment.payload
        if segment.first is None:
            continue
        is_single = segment.kind is SegmentKind.ENTRY
        for entry in plans.load_entries(session_id, segment.first, segment.first if is_single else segment.last, whole=whole):
            is_there = entry.index in placed if is_single else entry.index in singles or _lies_in(entry.index, covered)
            if not is_there:
                yield entry
        if is_single:
            placed.add(segment.first)
        else:
            covered.append((segment.first, segment.last))


def _told(
    take: Callable[[Entry], object], excluded: Collection[int], items: Iterator[Entry | SyntheticMessage]
) -> Iterator[Entry | SyntheticMessage]:
    """The items, while each entry that is sent is told of."""
    for item in items:
        if isinstance(item, Entry) and item.is_sendable and not item.off_branch and item.index not in excluded:
            take(item)
        yield item


def _lies_in(index: int, ranges: Sequence[tuple[int, int | None]]) -> bool:
    return any(first <= index and (last is None or index <= last) for first, last in ranges)


class _Awaited:
    """Whether more may come to an assistant's message: a result of an open call, or a piece of it far behind the first."""

    def __init__(self, session_id: uuid.UUID, keep: int) -> None:
        self._session_id = session_id
        self._keep = keep
        self._last_pieces: dict[str, int] | None = None
        self._last_results: dict[str, int] = {}
        self._at = -1

    def watching(self, items: Iterator[Entry | SyntheticMessage]) -> Iterator[Entry | SyntheticMessage]:
        """The items, while it is noted how far they are."""
        for item in items:
            if isinstance(item, Entry):
                self._at = item.index
            yield item

    def __call__(self, keys: Collection[str], call_ids: Collection[str]) -> bool:
        if self._last_pieces is None:
            self._last_pieces = dict(self._scattered())
        lasts = self._last_pieces
        return any(lasts.get(key, -1) > self._at for key in keys) or any(self._last_result(call_id) > self._at for call_id in call_ids)

    def _scattered(self) -> Iterator[tuple[str, int]]:
        """(key, last index) of messages whose pieces lie so far apart that they could be given away between. One query."""
        said = EntryRow.objects.filter(session_id=self._session_id, role=Role.ASSISTANT, off_branch=False).exclude(message_key="")
        spans = said.order_by().values("message_key").annotate(first=Min("index"), last=Max("index"))
        yield from spans.filter(last__gte=F("first") + self._keep).values_list("message_key", "last")

    def _last_result(self, call_id: str) -> int:
        if call_id not in self._last_results:
            results = EntryRow.objects.filter(session_id=self._session_id, call_id=call_id, kind=Kind.RESULT, off_branch=False)
            results = results.exclude(call_id="")  # the index of calls is used only where its own condition is named
            self._last_results[call_id] = results.aggregate(last=Max("index"))["last"] or -1
        return self._last_results[call_id]
