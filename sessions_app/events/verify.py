"""Verification of a stream: sequence without gaps, every hash as it was written."""

from dataclasses import dataclass

from sessions_app.events.log import event_hash
from sessions_app.models import Event, EventStream


@dataclass(frozen=True)
class Verdict:
    """What verification of one stream found. `broken_at` is the first sequence that does not fit, or None."""

    stream: str
    events: int
    broken_at: int | None = None
    reason: str = ""


def verify_stream(name: str) -> Verdict:
    """Walks a stream from its start in constant memory and compares every link of its chain."""
    previous, expected = b"", 1
    for event in Event.objects.filter(stream=name).order_by("seq").iterator(chunk_size=2_000):
        if event.seq != expected:
            return Verdict(name, expected - 1, expected, f"event {expected} is missing")
        if bytes(event.previous_hash) != previous:
            return Verdict(name, expected - 1, expected, "it does not follow from the event before it")
        if event_hash(event) != bytes(event.hash):
            return Verdict(name, expected - 1, expected, "its content was changed after it was written")
        previous, expected = bytes(event.hash), expected + 1
    head = EventStream.objects.filter(name=name).first()
    if head is not None and (head.last_seq != expected - 1 or bytes(head.last_hash) != previous):
        return Verdict(name, expected - 1, expected, "events at its end are missing")
    return Verdict(name, expected - 1)


def stream_names() -> list[str]:
    """The names of all streams, in order."""
    return list(EventStream.objects.order_by("name").values_list("name", flat=True))
