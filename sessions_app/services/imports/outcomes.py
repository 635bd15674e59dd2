"""What an import ends with, per source, and the errors that it tells people in a sentence."""

from enum import StrEnum

import msgspec
from django.db import DatabaseError, InterfaceError


class SourceState(StrEnum):
    NEW = "new"
    GROWN = "grown"
    REWRITTEN = "rewritten"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"  # found in a folder, and no session
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
    may_retry: bool = False  # another import was at the same session: what failed may succeed when that one is done
    trouble: str = ""  # of the database, which the source can do nothing for: what failed may succeed later
    notes: list[str] = []


class ImportFailedError(Exception):
    """A source that can't be imported. The message is for people."""


class ImportStoppedError(Exception):
    """Somebody cancelled the import. What was stored stays, and the next import goes on from there."""


class OvertakenError(Exception):
    """Somebody else wrote to the session meanwhile. Nothing of the batch was stored; the source is to be read anew."""


class NoSessionError(ImportFailedError):
    """A file that is no session of a known format. In a folder that is no failure."""


def database_sentence(error: DatabaseError | InterfaceError) -> str:
    """What a failing database means for the person who imports."""
    first = " Free some space first." if "full" in str(error).lower() else ""
    return f"{database_trouble(error)} Complete batches are kept, hidden; repeat the import to go on from there.{first}"


def database_trouble(error: DatabaseError | InterfaceError) -> str:
    """What is the matter with a failing database."""
    if "full" in str(error).lower():
        return "There is no space left for the database."
    if "locked" in str(error).lower():
        return "The database was busy for too long."
    return f"The database refused a write ({error})."


def grown_note(left: int, *, what: str = "It") -> str:
    """What there is to say of a file that is longer by so many bytes than when it was opened."""
    return f"{what} grew while it was read: {left:,} {'byte is' if left == 1 else 'bytes are'} left for the next import."
