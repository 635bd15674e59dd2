"""What followers of a session's events are sent: every stored event as one message, under its place in the session's stream.

One message for one event, whatever name it goes by: so a cursor says exactly which of them somebody has.
"""

import uuid
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from sessions_app.engine.terms import Status
from sessions_app.events.types import EventType
from sessions_app.live.fragments import Frame
from sessions_app.models import Event
from sessions_app.selectors import streamed
from sessions_app.selectors.item_ids import item_id
from sessions_app.selectors.streamed import AnswerSoFar
from sessions_app.services.compactions.step_events import STARTED
from sessions_app.shapes import event_shape

HEARTBEAT = "session.heartbeat"
DELTA = "response.output_text.delta"
COMPACTION = "session.compaction"
IN_PROGRESS, COMPLETED, FAILED = (f"response.compaction.{word}" for word in ("in_progress", "completed", "failed"))
_NAMES = {
    EventType.SESSION_STATUS_CHANGED: "session.status",
    EventType.SESSION_USAGE_REPORTED: "session.usage",
}
"""Types that are told by a name of their own; those of compactions have theirs below, and all others go by their type."""


@dataclass(frozen=True)
class Message:
    """One message. `seq` is None for what is not stored and comes no second time."""

    name: str
    seq: int | None
    data: bytes  # a line of JSON

    @cached_property
    def text(self) -> str:
        return self.data.decode()


@dataclass(frozen=True)
class Batch:
    """Messages in order, the same for all followers of a process, and each way of writing them made once."""

    messages: tuple[Message, ...]

    @property
    def last(self) -> int | None:
        """The last place in the stream; None where nothing in it is stored."""
        return next((message.seq for message in reversed(self.messages) if message.seq is not None), None)

    def after(self, seq: int) -> "Batch":
        """Without what somebody has who has all up to `seq`."""
        first = next((message.seq for message in self.messages if message.seq is not None), None)
        if first is None or first > seq:
            return self
        return Batch(tuple(message for message in self.messages if message.seq is None or message.seq > seq))

    @cached_property
    def sse(self) -> bytes:
        """As server-sent events."""
        return b"".join(sse(message) for message in self.messages)


def sse(message: Message, *, at: int | None = None) -> bytes:
    """One server-sent event. `at`: a place to go on from, for a message that has none of its own."""
    place = message.seq if at is None else at
    number = b"" if place is None else b"id: %d\n" % place
    return b"event: %b\n%bdata: %b\n\n" % (message.name.encode(), number, message.data)


@dataclass(frozen=True)
class EventFrame(Frame[Batch]):
    """Events after a cursor, and what had come of an answer when they were read."""

    answer: AnswerSoFar | None = None


def event_frame(session_id: uuid.UUID, after: int) -> EventFrame:
    """All events after `after`, in one batch. Two queries."""
    batch = events_batch(session_id, after)
    # The answer is read last: of a turn whose end is among the events nothing may follow.
    answer = streamed.answer_so_far(session_id)
    return EventFrame((batch,) if batch.messages else (), batch.last or after, answer)


def events_batch(session_id: uuid.UUID, after: int, limit: int | None = None) -> Batch:
    """Events after `after`, at most `limit`. One query."""
    return Batch(tuple(told(session_id, event) for event in streamed.events_after(session_id, after, limit)))


def heartbeat(session_id: uuid.UUID, seq: int) -> Message:
    """A sign of life, which says up to where everything has been told."""
    return Message(HEARTBEAT, None, _json({"type": HEARTBEAT, "sequence_number": seq, "session_id": session_id}))


def delta(session_id: uuid.UUID, answer: AnswerSoFar, offset: int) -> Message:
    """What came of an answer behind its first `offset` characters.

    It is not stored: the answer is an item once it is whole. Whoever keeps it cuts what they have to `offset` characters,
    and puts this behind: an attempt that begins anew has the offset 0.
    """
    told_of = {"turn_id": answer.turn_id, "offset": offset, "delta": answer.text[offset:], "transient": True}
    return Message(DELTA, None, _json({"type": DELTA, "session_id": session_id} | told_of))


def told(session_id: uuid.UUID, event: Event) -> Message:
    """A stored event as its message."""
    name, facts = _named(session_id, event)
    shape = event_shape(event)
    del shape["actor"]["address"]  # for the audit log alone
    data = {"type": name, "sequence_number": event.seq, "session_id": session_id} | facts | {"event": shape}
    return Message(name, event.seq, _json(data))


def _named(session_id: uuid.UUID, event: Event) -> tuple[str, dict[str, object]]:
    """The name of an event's message, and what stands in it beside the event."""
    if event.type.startswith("compaction."):
        return _compaction(event)
    if event.type == EventType.ENTRIES_APPENDED:
        ends = {f"{end}_item_id": event.payload.get(end) for end in ("first", "last")}
        return event.type, {name: item_id(session_id, index) for name, index in ends.items() if isinstance(index, int)}
    if event.type == EventType.SESSION_STATUS_CHANGED:
        return _NAMES[EventType.SESSION_STATUS_CHANGED], {"status": (event.after or {}).get("status")}
    if event.type == EventType.SESSION_USAGE_REPORTED:
        return _NAMES[EventType.SESSION_USAGE_REPORTED], dict(event.payload)
    return event.type, {}


def _compaction(event: Event) -> tuple[str, dict[str, object]]:
    """The start and the one end of an attempt, and what a runner reported of its own; all else is a detail of an attempt."""
    payload, status = event.payload, event.payload.get("status")
    if event.type == EventType.COMPACTION_REPORTED:
        return payload.get("response_event") or COMPACTION, {}
    attempt: dict[str, object] = {"compaction_id": event.compaction_id}
    if event.type == EventType.COMPACTION_TRIGGERED:
        if status == STARTED:
            return IN_PROGRESS, attempt
        # Nothing to compact is no failure, and yet the end of what began.
        name = COMPLETED if status == Status.SKIPPED else FAILED
        return name, attempt | {"outcome": payload.get("outcome") or status, "reason": event.reason}
    if event.type == EventType.COMPACTION_PERSISTED:
        after = payload.get("tokens_after")
        return COMPLETED, attempt | {"outcome": payload.get("outcome")} | ({} if after is None else {"total_tokens": after})
    return COMPACTION, attempt


def _json(data: dict[str, Any]) -> bytes:
    return orjson.dumps(data, option=orjson.OPT_NON_STR_KEYS)
