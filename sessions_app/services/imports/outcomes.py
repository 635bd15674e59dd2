"""What an import ends with, per source, and the errors that it tells people in a sentence."""

import uuid
from enum import StrEnum

import msgspec


class SourceState(StrEnum):
    NEW = "new"
    GROWN = "grown"
    REWRITTEN = "rewritten"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    CANCELLED = "cancelled"


class SourceOutcome(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What came of one source. `error` is one sentence: what happened, what did not change, what to do."""

    name: str
    state: SourceState
    session_id: str = ""
    title: str = ""
    entries: int = 0  # added by this import
    entries_total: int = 0
    bytes: int = 0
    problems: int = 0
    checkpoints: int = 0
    children: int = 0
    duplicates: int = 0
    error: str = ""
    notes: list[str] = []


class ImportFailed(Exception):
    """A source that can't be imported. The message is for people."""


class ImportStopped(Exception):
    """Somebody cancelled the import. What was stored stays, and the next import goes on from there."""


def short_id(identifier: uuid.UUID | str) -> str:
    """The last eight hex digits of an id."""
    return str(identifier).replace("-", "")[-8:]
