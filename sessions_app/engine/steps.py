"""What an attempt says while it runs, and what it ends with. `run.py` yields these; a service stores them."""

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

import msgspec

from sessions_app.engine.entries import Entry, Segment
from sessions_app.engine.state import MechanicalState
from sessions_app.engine.terms import Outcome, Phase, Profile, SkipReason, Status, SummarySource


class Stop(StrEnum):
    """Why an attempt must end early. Asked between steps and inside long ones."""

    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    LEASE_LOST = "lease_lost"


class Stopped(Exception):
    """Raised inside an attempt when `should_stop` answers; nothing was changed."""

    def __init__(self, stop: Stop) -> None:
        self.stop = stop
        super().__init__(stop.value)


ShouldStop = Callable[[], Stop | None]


class SummaryRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a summariser: a chunk of whole rounds, or the fold of the chunks' summaries."""

    entries: tuple[Entry, ...] = ()
    partial_summaries: tuple[str, ...] = ()  # set on the fold, in order
    previous_summary: str = ""  # what an earlier checkpoint said of the entries before these
    state: MechanicalState | None = None  # what code knows of the whole history so far; set on the last call of an attempt
    instructions: str = ""
    profile: Profile = Profile.CONVERSATION
    max_tokens: int = 3_000
    chunk_index: int = 1
    chunk_count: int = 1


class SummaryAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A summary in the eight sections, as Markdown. `truncated`: the summariser ran into its limit."""

    text: str
    source: SummarySource
    truncated: bool = False


class Summariser(Protocol):
    """Anything that can fill the eight sections. `summarise` returns within a second of `should_stop` answering."""

    name: str
    window: int  # tokens that one request may hold

    def summarise(self, request: SummaryRequest, should_stop: ShouldStop) -> SummaryAnswer: ...


class PhaseStarted(msgspec.Struct, frozen=True, kw_only=True):
    phase: Phase


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """The boundary is chosen: `entries_folded` lie before it, `chunk_count` summary calls follow."""

    boundary_index: int
    boundary_source_id: str
    entries_folded: int
    entries_kept: int
    tokens_before: int
    chunk_count: int


class ChunkSummarised(msgspec.Struct, frozen=True, kw_only=True):
    chunk_index: int
    chunk_count: int
    source: SummarySource


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """The summary is accepted, nothing is committed yet. `warnings` are plain sentences."""

    tokens_after: int
    warnings: tuple[str, ...] = ()


Step = PhaseStarted | Planned | ChunkSummarised | Verified


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that may be committed: the whole checkpoint."""

    outcome: Outcome
    boundary_index: int
    boundary_source_id: str
    segments: tuple[Segment, ...]
    block: str
    block_tokens: int
    summary: str
    summary_source: SummarySource
    summariser: str
    mechanical_state: dict[str, object]
    entries_folded: int
    entries_kept: int
    tokens_before: int
    tokens_after: int
    warnings: tuple[str, ...] = ()


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that ends without a checkpoint. `explanation` says it in words, and that nothing was changed."""

    status: Status
    outcome: Outcome
    reason: SkipReason | str
    explanation: str


Result = Commit | Ended
