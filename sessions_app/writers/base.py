"""What every writer of a continuation takes and gives: the rows of a source and a plan in, lines of a new source out."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Protocol

import msgspec

from sessions_app.engine.entries import Checkpoint, Segment
from sessions_app.engine.terms import Kind, Role, SegmentKind


class CannotContinue(ValueError):  # noqa: N818  it says what is the matter
    """This plan can't be written in this agent's format. The message is a sentence for people."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One record of a source, in its order. `index` and what follows are of the entry that was made of it, if one was."""

    raw: bytes
    word: str = ""  # the source's own word for it, e.g. `user`, `event_msg/task_started`
    index: int | None = None
    role: Role | None = None
    kind: Kind | None = None
    off_branch: bool = False


class Continuation(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be written: a new session in which `block` stands for everything but `carried` and what follows.

    `leading`: ranges (first, last) of system entries before the block. `carried`: entries that stand behind the block,
    in that order. `boundary`: from this entry on, everything stays. Indexes are those of `Row.index`.
    """

    session_id: str
    written_at: str  # ISO 8601, UTC
    block: str
    leading: tuple[tuple[int, int], ...] = ()
    carried: tuple[int, ...] = ()
    boundary: int
    tokens_before: int = 0
    tokens_after: int = 0


class Writing(Protocol):
    """One pass. Iterate it to the end for the file's lines, then ask what could not be carried over."""

    def __iter__(self) -> Iterator[bytes]: ...
    def notes(self) -> list[str]: ...


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where the agent looks for its session, and what makes it go on.

    `folder`: below the agent's own folder, which `home_variable` moves from `home`.
    """

    home: str
    home_variable: str
    folder: str
    name: str
    resume: str  # the command, to be run in the session's working directory
    needs_directory: bool  # the folder is named by it


class Writer(Protocol):
    """One agent's format.

    `source_id_of` gives a row's own id (empty where it has none) as the reader does.

    `write` reads `rows` twice, in order, and holds no more of them than the plan names. Raises `CannotContinue` at once
    or from its first line where the rows don't hold what the plan names.
    """

    agent: str

    def new_session_id(self) -> str: ...
    def source_id_of(self, raw: bytes) -> str: ...
    def place_of(self, session_id: str, *, working_directory: str, at: datetime) -> Place: ...
    def write(self, rows: Callable[[], Iterable[Row]], wanted: Continuation) -> Writing: ...


def continuation_of(checkpoint: Checkpoint, *, session_id: str, written_at: str, tokens_before: int, tokens_after: int) -> Continuation:
    """The plan of a checkpoint of ours. Raises `CannotContinue` for a plan of any other shape."""
    segments = checkpoint.segments
    places = [place for place, segment in enumerate(segments) if segment.payload is not None]
    tail = segments[-1] if segments else None
    if len(places) != 1 or tail is None or tail.kind is not SegmentKind.RANGE or tail.last is not None or tail.first is None:
        raise CannotContinue("Only a plan with one block and everything from a boundary on can be continued; this one has another shape.")
    if checkpoint.cleared:
        raise CannotContinue("This view replaces results by placeholders, which can't be written into an agent's own rows.")
    _, ranges = checkpoint.places()
    if any(first <= index <= last for index in checkpoint.excluded for first, last in ranges):
        raise CannotContinue("Entries of this view are excluded, which can't be written into an agent's rows. Include them again first.")
    payload = segments[places[0]].payload
    assert payload is not None
    return Continuation(
        session_id=session_id,
        written_at=written_at,
        block=payload.text,
        leading=tuple(_span(segment) for segment in segments[: places[0]]),
        carried=tuple(index for segment in segments[places[0] + 1 : -1] for index in _indexes(segment)),
        boundary=tail.first,
        tokens_before=tokens_before,
        tokens_after=tokens_after,
    )


def _span(segment: Segment) -> tuple[int, int]:
    first = segment.first or 0
    return first, first if segment.last is None else segment.last


def _indexes(segment: Segment) -> range:
    first, last = _span(segment)
    return range(first, last + 1)
