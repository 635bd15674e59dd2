"""What every runner is: something that owns an agent's loop and can be asked to do a few things with a session of its own."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol

import msgspec

COMPACT, MESSAGE, INTERRUPT, STOP, APPROVAL = "compact", "message", "interrupt", "stop_session", "approval"
"""Types of events that a runner may be sent."""


class RunnerKind(StrEnum):
    """What a runner speaks."""

    HTTP = "http"


class Health(StrEnum):
    """What was last seen of a runner."""

    UNKNOWN = "unknown"
    UP = "up"
    DOWN = "down"


class Capability(StrEnum):
    """What a runner can be asked for."""

    COMPACT = "compact"
    MESSAGE = "message"
    INTERRUPT = "interrupt"
    STOP = "stop_session"
    APPROVAL = "approval"


class Handling(StrEnum):
    """Who carries a compaction out."""

    RUNNER = "runner"  # it did, or has taken it over for good
    PENDING = "pending"  # it is at it, and will report by its operation id
    CONSOLE = "console"  # it has no way of its own


class CompactAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What came of asking for a compaction. Tokens as the runner gives them; None where it says nothing."""

    handling: Handling
    status: int  # of HTTP
    nothing_to_do: bool = False
    tokens_before: int | None = None
    tokens_after: int | None = None
    operation_id: str = ""


class HealthReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a look at a runner came to. `problem` says in words why it is not up; empty where it is."""

    health: Health
    problem: str = ""
    capabilities: tuple[Capability, ...] = tuple(Capability)


class Runner(Protocol):
    """One runner. Every method may be cancelled, which closes its connection; none asks twice."""

    async def compact(self, session_id: str) -> CompactAnswer:
        """Asks for a compaction. Raises `RunnerUnavailable`, `UnknownOutcome` and `RunnerRefused`."""

    async def deliver(self, session_id: str, event_type: str, data: Mapping[str, Any]) -> int:
        """Hands an event over; returns the status of a runner that took it. Raises what `compact` does."""

    async def health(self) -> HealthReport:
        """Whether the runner is there. Raises nothing."""
