"""One conversation while it is read: what its messages need to know of each other."""

import hashlib
from typing import Any

import msgspec

from sessions_app.engine.entries import Part, Segment
from sessions_app.engine.terms import Kind, PartKind, Role, SegmentKind, Trigger
from sessions_app.readers.base import AgentCheckpoint, ChildSession, ParsedEntry
from sessions_app.readers.chat_detect import message_of
from sessions_app.readers.claude_code_facts import one_line
from sessions_app.readers.claude_code_parts import text_of
from sessions_app.readers.compact import CompactMap
from sessions_app.readers.times import TIME, TIME_IN_DOUBT, Clock

_CARD = "Conversation"
REMINDER = "<system-reminder>"
"""How a text begins that an agent put into a user's message."""


_NO_PROMPT = (REMINDER, "<local-command-", "<command-")
"""The same, and what it tells of its own commands."""


class Conversation:
    """The session of the file itself (key ""), or one of several in it."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.title = self.model = self.started = self.last_activity = self._last_time = ""
        self.entries = 0
        self.last_answer = -1  # ordinal of the last answer
        self.is_last_billed = False
        self.answer: Any = None  # what stands beside the messages as the answer to them
        self.is_open = False  # it ends with a question or a call
        self.tool_names: dict[str, str] = {}  # call id → tool, of calls still without a result
        self._open_calls: dict[str, tuple[int, int]] = {}
        self._seen = CompactMap()  # digest → how often this was said
        self._uuids = CompactMap()
        self._systems: list[int] = []  # ordinals of the system messages before everything else

    def identify(self, entry: ParsedEntry, value: dict[str, Any]) -> bool:
        """Gives an entry its ids; false when one of that id was there before.

        Without an id of its own it gets one from what it says and how often that was said before: so it is known
        again when the file was written anew with more behind it.
        """
        uuid = text_of(value.get("uuid"))[:200]
        if uuid:
            if uuid in self._uuids:
                return False
            self._uuids.set(uuid, 0)
            entry.source_id = uuid
        else:
            digest = hashlib.sha256(msgspec.json.encode(value)).digest()
            times = max(self._seen.get(digest), 0) + 1
            self._seen.set(digest, times)
            entry.source_id = digest[:12].hex() + (f"-{times}" if times > 1 else "")
        entry.child_key = self.key
        if entry.role is Role.ASSISTANT:
            entry.message_key = text_of(message_of(value).get("id"))[:200] or entry.source_id
        return True

    def set_time(self, entry: ParsedEntry, value: dict[str, Any], clock: Clock) -> bool:
        """Gives an entry the time that its message tells, or that of the one before; true where it tells none."""
        told = text_of(value.get("timestamp")) or text_of(value.get("created_at"))
        if not TIME.match(told):
            entry.timestamp, entry.synthetic_time = self._last_time, True
            return True
        entry.timestamp = told[:40]
        if clock.believes(entry.timestamp):
            self._last_time = entry.timestamp
            self.started = self.started or entry.timestamp
            self.last_activity = max(self.last_activity, entry.timestamp)
        else:
            entry.annex = {**entry.annex, TIME_IN_DOUBT: True}
        return False

    def pair(self, entry: ParsedEntry, place: tuple[int, int]) -> int:
        """Ties results to calls, naming calls that have no id. Returns how many results have no call."""
        orphans = 0
        parts: list[Part] = []
        for part in entry.parts:
            if part.kind is PartKind.CALL:
                if not part.call_id:
                    part = msgspec.structs.replace(part, call_id=f"call-{entry.source_id}-{len(parts)}")  # noqa: PLW2901
                    self.tool_names[part.call_id] = part.name
                self._open_calls[part.call_id] = place
            elif part.kind is PartKind.RESULT:
                orphans += self._open_calls.pop(part.call_id, None) is None
            parts.append(part)
        entry.parts = tuple(parts)
        return orphans

    def add(self, entry: ParsedEntry, model: str) -> int:
        """Takes an entry; returns its place, from 0, within its session."""
        ordinal = self.next_ordinal()
        if entry.role is Role.ASSISTANT:
            entry.model = model or self.model
            self.model = entry.model
            self.is_open = entry.kind is Kind.CALL
        elif entry.role is Role.SYSTEM:
            if len(self._systems) == ordinal:
                self._systems.append(ordinal)
        elif entry.role is not Role.NOTICE:
            self.is_open = self.is_open if entry.meta else True
            if not self.title and entry.kind is Kind.MESSAGE and not entry.meta:
                self.title = one_line(_asked(entry.parts))
        return ordinal

    def next_ordinal(self) -> int:
        self.entries += 1
        return self.entries - 1

    def checkpoint(self, entry: ParsedEntry, ordinal: int, summary: str, tokens_before: int | None) -> AgentCheckpoint:
        """A compaction that stands in the entry: the model sees the system prompt, and everything from here on."""
        kept = tuple(Segment(kind=SegmentKind.ENTRY, first=place) for place in self._systems)
        return AgentCheckpoint(
            child_key=self.key,
            divider_index=ordinal,
            boundary_index=ordinal,
            segments=(*kept, Segment(kind=SegmentKind.RANGE, first=ordinal)),
            trigger=Trigger.EXTERNAL,
            summary=summary,
            tokens_before=tokens_before,
            detail={"source_id": entry.source_id, "timestamp": entry.timestamp},
        )

    def close(self) -> list[tuple[int, int]]:
        """Forgets what only reading on needs. Returns the places of calls that nobody answered."""
        unanswered = list(self._open_calls.values())
        self.tool_names, self._open_calls, self._seen, self._uuids = {}, {}, CompactMap(), CompactMap()
        return unanswered

    def as_child(self) -> ChildSession:
        return ChildSession(key=self.key, title=self.title, call_id=self.key)


def _asked(parts: tuple[Part, ...]) -> str:
    """What a person wrote: the first text that no agent put before it."""
    texts = (part.text.strip() for part in parts if part.kind is PartKind.TEXT)
    return next((text for text in texts if text and not text.startswith(_NO_PROMPT)), "")


def card_of(key: str) -> ParsedEntry:
    """What stands in the file's own session for a conversation of it that begins here: a call, for people only."""
    part = Part(kind=PartKind.CALL, name=_CARD, call_id=key, text=f'{{"number":{key.rpartition("-")[2]}}}')
    return ParsedEntry(role=Role.NOTICE, kind=Kind.CALL, parts=(part,), source_id=key, synthetic_time=True)


def card_result_of(conversation: Conversation) -> ParsedEntry:
    """The other half of that card."""
    count = "No messages." if not conversation.entries else f"{conversation.entries} entries, in a session of their own."
    text = f"{conversation.title}\n{count}".strip()
    part = Part(kind=PartKind.RESULT, name=_CARD, call_id=conversation.key, text=text)
    return ParsedEntry(role=Role.NOTICE, kind=Kind.RESULT, parts=(part,), source_id=f"{conversation.key}-end", synthetic_time=True)
