"""The streams of the log: their heads, how much there is, and what the last verification said of them."""

from dataclasses import dataclass
from datetime import datetime

from django.core.cache import cache
from django.db.models import Count, Sum

from sessions_app.events.types import EventType
from sessions_app.events.verify import Anchor
from sessions_app.models import Event, EventStream

PAGE_STREAMS = 100
CACHED_S = 10
_SUMMARY_KEY = "audit_streams.summary"


@dataclass(frozen=True)
class LogSummary:
    """How much the heads of all streams say that there is. At most ten seconds old."""

    streams: int
    events: int


@dataclass(frozen=True)
class Verification:
    """What the last complete verification found. `broken` is (stream, seq, reason) of the first hundred."""

    at: datetime
    event_id: int
    by: str
    streams: int
    events: int
    took_s: float | None
    up_to: int
    broken_count: int
    broken: tuple[tuple[str, int, str], ...]

    @property
    def is_intact(self) -> bool:
        return not self.broken_count


@dataclass(frozen=True)
class StreamRow:
    """One stream. `verdict` is `whole`, `broken` or empty when it is younger than the last verification."""

    name: str
    events: int
    hash: str
    verdict: str
    reason: str


@dataclass(frozen=True)
class StreamsPage:
    """At most a hundred streams in the order of their names; `next` is the name behind which further ones lie, or empty."""

    rows: tuple[StreamRow, ...]
    next: str


def summary() -> LogSummary:
    """One query, or none."""
    found: LogSummary | None = cache.get(_SUMMARY_KEY)
    if found is None:
        heads = EventStream.objects.aggregate(streams=Count("pk"), events=Sum("last_seq"))
        found = LogSummary(heads["streams"], heads["events"] or 0)
        cache.set(_SUMMARY_KEY, found, CACHED_S)
    return found


def count_streams() -> int:
    """One query."""
    return EventStream.objects.count()


def exists(name: str) -> bool:
    """Whether anything was ever written to this stream. One query."""
    return EventStream.objects.filter(pk=name).exists()


def shared_names() -> list[str]:
    """The streams that belong to no session or project: one a day, and a few more. One query."""
    names = EventStream.objects.exclude(name__startswith="session:").exclude(name__startswith="project:").order_by("-name")
    return list(names.values_list("name", flat=True))


def heads() -> list[Anchor]:
    """The heads of all streams that have events, by name: what is to be kept elsewhere. One query."""
    rows = EventStream.objects.filter(last_seq__gt=0).order_by("name").values_list("name", "last_seq", "last_hash")
    return [Anchor(name, seq, bytes(digest)) for name, seq, digest in rows]


def last_verification() -> Verification | None:
    """One query, on the index by type."""
    event = Event.objects.filter(type=EventType.AUDIT_VERIFIED, target_id="log").order_by("-at", "-pk").first()
    if event is None:
        return None
    said = event.payload
    return Verification(
        at=datetime.fromisoformat(event.at),
        event_id=event.pk,
        by=event.actor_name,
        streams=said["streams"],
        events=said["events"],
        took_s=said.get("took_s"),
        up_to=said["up_to"],
        broken_count=said["broken_count"],
        broken=tuple((one["stream"], one["seq"], one["reason"]) for one in said["broken"]),
    )


def streams_page(*, after: str = "") -> StreamsPage:
    """Three queries: the heads, the last verification, and which of them began after it."""
    heads = list(EventStream.objects.filter(name__gt=after).order_by("name")[: PAGE_STREAMS + 1])
    shown = heads[:PAGE_STREAMS]
    last = last_verification()
    broken = {stream: reason for stream, _, reason in last.broken} if last else {}
    firsts = Event.objects.filter(stream__in=[head.name for head in shown], seq=1)
    younger = set(firsts.filter(pk__gt=last.up_to).values_list("stream", flat=True)) if last else {head.name for head in shown}
    is_partial = last is not None and last.broken_count > len(last.broken)  # others may be broken as well
    rows = tuple(
        StreamRow(
            name=head.name,
            events=head.last_seq,
            hash=bytes(head.last_hash).hex(),
            verdict="broken" if head.name in broken else "" if head.name in younger or is_partial else "whole",
            reason=broken.get(head.name, ""),
        )
        for head in shown
    )
    return StreamsPage(rows, shown[-1].name if len(heads) > PAGE_STREAMS else "")
