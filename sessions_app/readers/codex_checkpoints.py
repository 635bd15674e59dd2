"""Codex's own compactions as view plans: what it sends afterwards, in its order."""

import hashlib
from array import array
from typing import Any

from sessions_app.engine.entries import Segment, SyntheticMessage
from sessions_app.engine.terms import Role, SegmentKind, Trigger
from sessions_app.readers.base import AgentCheckpoint, ParsedEntry
from sessions_app.readers.claude_code_parts import json_text, text_of
from sessions_app.readers.codex_parts import texts_of
from sessions_app.readers.codex_rows import SUMMARY_ITEMS, is_injected
from sessions_app.readers.compact import NONE, CompactMap

UNREADABLE = "[A summary that only its provider can read stands here: {size} characters of ciphertext.]"
_ROLES = {"assistant": Role.ASSISTANT, "developer": Role.SYSTEM, "system": Role.SYSTEM}
_WINDOW_FIELDS = ("window_id", "window_number", "previous_window_id", "compaction_response_id")


class CheckpointCollector:
    """Fed with the entries in order; makes a plan of each compaction when it is read.

    Codex tells of one compaction in up to three rows: the `compacted` row, an event, and an item. They are one boundary.
    """

    def __init__(self) -> None:
        self.checkpoints: list[AgentCheckpoint] = []
        self._places = CompactMap()  # what an item says → the newest of its entries, by its number here
        self._ordinals, self._earlier = array("i"), array("i")  # number → ordinal, and the number of the one before of the same words
        self._prompts: list[int] = []
        self._leading: list[int] = []  # base instructions
        self._divider: int | None = None  # of a boundary behind which nothing was said yet
        self._open: AgentCheckpoint | None = None  # its plan
        self._is_row = False  # the plan is that of a `compacted` row
        self._may_be_manual = False  # nothing was said yet in this turn
        self._undecided: AgentCheckpoint | None = None

    def note_base(self, ordinal: int) -> None:
        """Takes the entry of the base instructions: they stand before every plan."""
        self._leading.append(ordinal)

    def note_item(self, item: dict[str, Any], entry: ParsedEntry, ordinal: int) -> None:
        """Takes an item's entry, should a later plan name it."""
        self._divider = self._open = None
        self._may_be_manual = False
        if self._undecided is not None:
            self._undecided.trigger, self._undecided = Trigger.THRESHOLD, None
        if is_injected(item) or item.get("type") == "reasoning":
            return  # the agent writes these anew
        digest = _digest(item)
        self._earlier.append(self._places.get(digest))
        self._places.set(digest, len(self._ordinals))
        self._ordinals.append(ordinal)
        if entry.role is Role.USER and not entry.meta:
            self._prompts.append(ordinal)

    def note_turn(self, *, is_end: bool) -> None:
        """A turn began or ended: a compaction that was all of it was asked for by a person."""
        if is_end and self._undecided is not None:
            self._undecided.trigger, self._undecided = Trigger.MANUAL, None
        self._may_be_manual = not is_end

    def forget_from(self, ordinal: int) -> None:
        """Turns from this entry on were taken back: plans no longer name them."""
        self._prompts = [prompt for prompt in self._prompts if prompt < ordinal]
        for number in range(len(self._ordinals) - 1, -1, -1):
            if self._ordinals[number] < ordinal:
                break
            self._ordinals[number] = NONE

    def joins(self, *, is_row: bool = False) -> int | None:
        """The boundary to which a row belongs that tells of a compaction now, or `None` when it begins another.

        `is_row`: it is a `compacted` row, of which each compaction has one.
        """
        return None if is_row and self._is_row else self._divider

    def note_mark(self, divider: int) -> None:
        """Takes a boundary of which only an event is known so far."""
        self._divider, self._open, self._is_row = divider, None, False

    def note_compacted(self, payload: dict[str, Any], *, divider: int, is_row: bool, timestamp: str, tokens_before: int | None) -> None:
        """Takes a `compacted` row (or an item that holds the provider's own summary) and makes its plan."""
        if self._divider == divider:
            if self._is_row:  # an item that repeats what the row says
                return
            if self._open is not None:
                self.checkpoints.remove(self._open)
        else:
            self._is_row = False
        items = payload.get("replacement_history")
        message = text_of(payload.get("message"))
        segments = [Segment(kind=SegmentKind.ENTRY, first=ordinal) for ordinal in self._leading]
        if isinstance(items, list):
            segments += self._segments([item for item in items if isinstance(item, dict)])
        else:  # older versions: all prompts, and the summary behind them
            segments += [Segment(kind=SegmentKind.ENTRY, first=ordinal) for ordinal in self._prompts]
            segments += [_synthetic(Role.USER, message, "summary")] if message else []
        segments.append(Segment(kind=SegmentKind.RANGE, first=divider + 1))
        detail: dict[str, object] = {"timestamp": timestamp, "summary_readable": bool(message)}
        detail |= {name: payload[name] for name in _WINDOW_FIELDS if isinstance(payload.get(name), int | str)}
        checkpoint = AgentCheckpoint(
            divider_index=divider,
            boundary_index=divider + 1,
            segments=tuple(segments),
            trigger=Trigger.EXTERNAL if self._may_be_manual else Trigger.THRESHOLD,
            summary=message,
            tokens_before=tokens_before,
            detail=detail,
        )
        self._undecided = checkpoint if self._may_be_manual else None
        self._divider, self._open, self._is_row = divider, checkpoint, self._is_row or is_row
        self.checkpoints.append(checkpoint)

    def note_after(self, tokens: int) -> None:
        """Takes the agent's count of what a compaction left: the first one behind it."""
        if self._open is not None and self._open.tokens_after is None:
            self._open.tokens_after = tokens

    def note_duration(self, milliseconds: int) -> None:
        if self._open is not None:
            self._open.duration_ms = milliseconds

    def _segments(self, items: list[dict[str, Any]]) -> list[Segment]:
        used: set[int] = set()
        found: list[Segment] = []
        for item in items:
            places = [] if is_injected(item) else self._places_of(item)
            place = next((place for place in places if place not in used), None)
            if place is not None:
                used.add(place)
                found.append(Segment(kind=SegmentKind.ENTRY, first=place))
            else:
                found += _spoken(item)
        return found

    def _places_of(self, item: dict[str, Any]) -> list[int]:
        """The entries that say the same, in their order."""
        places: list[int] = []
        number = self._places.get(_digest(item))
        while number != NONE:
            if self._ordinals[number] != NONE:
                places.append(self._ordinals[number])
            number = self._earlier[number]
        return places[::-1]


def _spoken(item: dict[str, Any]) -> list[Segment]:
    """An item that no entry holds, as messages with its texts."""
    kind, role = text_of(item.get("type")), _ROLES.get(text_of(item.get("role")), Role.USER)
    if kind in SUMMARY_ITEMS:
        size = len(text_of(item.get("encrypted_content")))
        return [_synthetic(Role.USER, UNREADABLE.format(size=size), "encrypted summary")]
    if kind in ("message", "agent_message"):
        return [_synthetic(role, text, "replacement") for text in texts_of(item.get("content")) if text]
    if kind == "reasoning":
        return []  # ciphertext of an answer that is no longer there
    return [_synthetic(Role.USER, json_text(item), kind[:60] or "replacement")]


def _synthetic(role: Role, text: str, label: str) -> Segment:
    return Segment(kind=SegmentKind.SYNTHETIC, payload=SyntheticMessage(role=role, text=text, label=label))


def _digest(item: dict[str, Any]) -> bytes:
    """What an item says, however it is identified: a prompt that was cut keeps its id and is another text."""
    content = item.get("content")
    images = (
        [part.get("image_url") for part in content if isinstance(part, dict) and "image_url" in part] if isinstance(content, list) else []
    )
    call = text_of(item.get("call_id"))
    said = json_text([item.get("type"), item.get("role"), call or [texts_of(content), images]])
    return hashlib.blake2b(said.encode(), digest_size=16).digest()
