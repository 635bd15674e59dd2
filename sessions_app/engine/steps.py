"""What an attempt says while it runs, and what it ends with. `attempt.py` yields these; a service stores them."""

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

import msgspec

from sessions_app.engine.entries import Entry, Segment, Usage
from sessions_app.engine.grounding import Unsupported
from sessions_app.engine.retention import Retention
from sessions_app.engine.state import MechanicalState
from sessions_app.engine.terms import CoverageStatus, Outcome, Phase, Profile, Rung, SkipReason, Status, SummarySource


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
    instructions: str = ""  # what whoever asked wants stressed
    standing_instructions: str = ""  # what every summary here is to stress
    profile: Profile = Profile.CONVERSATION
    max_tokens: int = 3_000
    chunk_index: int = 1
    chunk_count: int = 1
    attempt: int = 1  # the second one comes after a refusal or a failure of the first
    after_s: float = 0.0  # so long whoever calls a network waits before
    is_shortened: bool = False  # its provider found more of the material too long


class SummaryAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A summary in the eight sections, as Markdown. `truncated`: the summariser ran into its limit."""

    text: str
    source: SummarySource
    truncated: bool = False
    model: str = ""  # as the provider names it
    usage: Usage | None = None  # what the provider measured
    cost_usd: float | None = None  # by its list price


class SummariserFailed(Exception):
    """A summariser gives no answer. The text is for people and quotes nothing of a transcript.

    `is_final`: asking again would be no use. `is_of_request`: a shorter request, or another one, may well be answered. `is_busy`:
    fewer at once may well be. `retry_after_s`: before the next attempt it has to be left alone for so long.
    """

    def __init__(
        self, words: str, *, is_final: bool = False, is_of_request: bool = False, is_busy: bool = False, retry_after_s: float = 0.0
    ) -> None:
        self.is_final = is_final
        self.is_of_request = is_of_request
        self.is_busy = is_busy
        self.retry_after_s = retry_after_s
        super().__init__(words)


class Summariser(Protocol):
    """Anything that can fill the eight sections.

    `summarise` returns within a second of `should_stop` answering, by raising `Stopped`. It raises `SummariserFailed`
    where it has no answer. One that is a model may be asked from several threads at once, and answers a request by that alone.
    """

    name: str
    window: int  # tokens that one request may hold
    is_model: bool  # whether it costs a call of a model

    def summarise(self, request: SummaryRequest, should_stop: ShouldStop) -> SummaryAnswer: ...


class SummariserTry(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One call of a summariser. `refused` says in words why its answer was not used; empty when it was."""

    summariser: str
    chunk_index: int = 1
    model: str = ""
    usage: Usage | None = None
    cost_usd: float | None = None  # US dollars by the list price; None where no model was asked or its price is unknown
    refused: str = ""


class RungReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a rung of the ladder came to: the size of the view before and after it, in estimated tokens."""

    rung: Rung
    tokens_before: int
    tokens_after: int
    entries: int  # that it cleared, folded or left out
    note: str = ""  # why it was not enough, or not possible


class PhaseStarted(msgspec.Struct, frozen=True, kw_only=True):
    phase: Phase


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """The boundary is chosen: `entries_folded` lie before it, `chunk_count` summary calls follow. A later one holds instead."""

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
    source: SummarySource
    warnings: tuple[str, ...] = ()
    coverage_status: CoverageStatus = CoverageStatus.UNKNOWN


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
    cleared: tuple[int, ...] = ()  # results that a placeholder replaces in this view
    rungs: tuple[RungReport, ...] = ()
    tried: tuple[SummariserTry, ...] = ()
    retention: Retention = Retention()
    unsupported: tuple[Unsupported, ...] = ()
    coverage_status: CoverageStatus = CoverageStatus.UNKNOWN


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that ends without a checkpoint. `explanation` says it in words, and that nothing was changed."""

    status: Status
    outcome: Outcome
    reason: SkipReason | str
    explanation: str
    coverage_status: CoverageStatus = CoverageStatus.UNKNOWN
    rungs: tuple[RungReport, ...] = ()
    tried: tuple[SummariserTry, ...] = ()


Result = Commit | Ended
