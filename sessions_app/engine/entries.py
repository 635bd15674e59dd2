"""Frozen types of a canonical history: entries and their parts, and the plan from which a view is made."""

import hashlib
import sys
from collections.abc import Callable
from functools import cached_property

import msgspec

from sessions_app.engine.terms import Kind, Lineage, PartKind, Role, SegmentKind

# Looking a member up in its class costs a call in Python 3.11, and this is asked of every entry.
_TEXT, _NOTICE = PartKind.TEXT, Role.NOTICE

INLINE_CHARS = 16_000
"""A part's text is kept inline up to this many characters; the whole of a longer one lies in a blob."""

PREVIEW_CHARS = 4_000
"""What stays inline of a text that was moved into a blob."""


class Part(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """One block of an entry.

    `text` is the text of a text, thinking or result part, and the JSON arguments of a call.
    When `blob` is set on a text part, `text` holds only the first `PREVIEW_CHARS` characters, `chars` the
    length of the whole, and the blob (named by its sha256 in hex) the whole in UTF-8.
    On images and documents `blob` names the bytes. A result may carry images: they follow it as parts of
    their own with the same `call_id`.
    """

    kind: PartKind
    text: str = ""
    name: str = ""  # tool name of a call; of a result where it is known
    call_id: str = ""
    is_error: bool = False
    blob: str = ""
    chars: int = 0  # length of the whole text, in characters, when `blob` holds it
    media_type: str = ""
    size_bytes: int = 0
    width: int = 0
    height: int = 0
    glued: bool = False  # a reminder that its agent glues to the end of the result before it
    encrypted: bool = False  # the provider's own ciphertext: nobody here can read it

    @property
    def length(self) -> int:
        """Characters of the whole text, wherever it lies."""
        return self.chars or len(self.text)


class Usage(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """Token counts that a provider measured for one call. `input` excludes what came from a cache."""

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0

    @property
    def prompt(self) -> int:
        """Size of the whole request: everything that the model read."""
        return self.input + self.cache_read + self.cache_write


class Entry(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """One row of a canonical history. `index` counts from 0 within its session and is never reused."""

    index: int
    role: Role
    kind: Kind
    parts: tuple[Part, ...] = ()
    tokens: int = 0  # estimated, stored when the entry was written
    source_id: str = ""
    message_key: str = ""  # groups the entries that are one API message
    off_branch: bool = False
    meta: bool = False  # sent to the model although a person did not write it
    usage: Usage | None = None
    model: str = ""
    timestamp: str = ""  # ISO 8601 with zone, as the source gave it

    @property
    def text(self) -> str:
        """All text parts, joined by a blank line."""
        return "\n\n".join(part.text for part in self.parts if part.text and part.kind is _TEXT)

    @property
    def is_sendable(self) -> bool:
        """Whether a model may ever see this entry: notices are for people only."""
        return self.role is not _NOTICE

    def digest(self) -> bytes:
        """sha256 over what the entry says (not over where it stands); 32 bytes."""
        return hashlib.sha256(_ENCODER.encode((self.role, self.kind, self.source_id, self.parts))).digest()


_ENCODER = msgspec.json.Encoder()
_PARTS_DECODER = msgspec.json.Decoder(tuple[Part, ...])


def encode_parts(parts: tuple[Part, ...]) -> str:
    """Parts as the JSON text in which they are stored."""
    return _ENCODER.encode(parts).decode()


def decode_parts(text: str) -> tuple[Part, ...]:
    """The inverse of `encode_parts`. Raises `msgspec.ValidationError` on a foreign shape."""
    return _PARTS_DECODER.decode(text)


def with_whole_text(entry: Entry, load_blob: Callable[[str], bytes]) -> Entry:
    """The entry with every shortened text replaced by the whole from its blob."""
    if not any(part.chars and part.blob for part in entry.parts):
        return entry
    whole = tuple(
        msgspec.structs.replace(part, text=load_blob(part.blob).decode(), blob="", chars=0) if part.chars and part.blob else part
        for part in entry.parts
    )
    return msgspec.structs.replace(entry, parts=whole)


def chain_prefix_hash(previous: bytes, digest: bytes) -> bytes:
    """The rolling hash of a history up to and including an entry; 32 bytes. Starts from `b""`."""
    return hashlib.sha256(previous + digest).digest()


class SyntheticMessage(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A message of a view that no entry holds: our block, or one that an agent put together itself."""

    role: Role
    text: str
    label: str = "block"


class Segment(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One piece of a view plan.

    `range`: entries `first` to `last` inclusive, `last=None` meaning "and all that come later".
    `entry`: the entry `first` alone, out of its order. `synthetic`: `payload`.
    """

    kind: SegmentKind
    first: int | None = None
    last: int | None = None
    payload: SyntheticMessage | None = None


class Checkpoint(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, dict=True):
    """A committed compaction, as the view needs it."""

    generation: int
    lineage: Lineage
    segments: tuple[Segment, ...]
    boundary_index: int  # first entry of the trailing verbatim range
    prefix_hash: bytes = b""  # rolling hash over entries 0 … boundary_index - 1
    cleared: frozenset[int] = frozenset()  # indexes of results that a placeholder replaces
    trimmed: bool = False  # no summary: what lies before the boundary is `trimmed`, not `summarised`
    pinned: frozenset[int] = frozenset()  # as it is applied: see `overrides`; nothing of it is stored with a checkpoint
    excluded: frozenset[int] = frozenset()

    def places(self) -> tuple[frozenset[int], tuple[tuple[int, int], ...]]:
        """What the plan names: entries by themselves, and ranges, first and last inclusive. Exclusions do not count here."""
        singles = frozenset(segment.first for segment in self.segments if segment.kind is SegmentKind.ENTRY and segment.first is not None)
        ranges = tuple(
            (segment.first, sys.maxsize if segment.last is None else segment.last)
            for segment in self.segments
            if segment.kind is SegmentKind.RANGE and segment.first is not None
        )
        return singles, ranges

    def holds(self, index: int) -> bool:
        """Whether the entry itself (not a summary of it) stands in this checkpoint's view."""
        singles, ranges = self._places
        return index not in self.excluded and (index in singles or any(first <= index <= last for first, last in ranges))

    @cached_property
    def _places(self) -> tuple[frozenset[int], tuple[tuple[int, int], ...]]:
        """A plan may name hundreds of entries, and is asked for each entry of a history."""
        return self.places()
