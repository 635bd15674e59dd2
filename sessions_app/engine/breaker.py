"""When automatic compaction is given a rest: the arithmetic of the breaker, and of the guard against refilling."""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from sessions_app.engine.terms import Outcome

OPENS_AT = 3
"""Failures in a row."""

COOLDOWN_S = 300.0
"""After the last failure; then one attempt is let through."""

REFILLS = 3
REFILL_TURNS = 10
"""So many compactions within so many turns make no headway: what fills the view is not what is folded."""

FAILURES = frozenset({Outcome.FAILED, Outcome.TIMED_OUT, Outcome.REJECTED_EMPTY, Outcome.REJECTED_TRUNCATED, Outcome.REJECTED_INFLATED})
"""What counts against the breaker: also what was refused after it was paid for."""

SUCCESSES = frozenset({Outcome.COMMITTED, Outcome.TRIMMED})


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"  # the next attempt decides


class Breaker(msgspec.Struct, frozen=True, kw_only=True):
    """Failures in a row, and when the last of them was, in seconds of any one clock. A new one is closed."""

    failures: int = 0
    failed_at: float = 0.0

    def state(self, now: float) -> BreakerState:
        if self.failures < OPENS_AT:
            return BreakerState.CLOSED
        # A clock that was set back must not keep it open for longer than a rest.
        return BreakerState.OPEN if 0 <= now - self.failed_at < COOLDOWN_S else BreakerState.HALF_OPEN

    def lets_through(self, now: float) -> bool:
        """Whether an automatic attempt may start. A person may always ask."""
        return self.state(now) is not BreakerState.OPEN

    def after(self, outcome: Outcome, now: float) -> "Breaker":
        """The breaker after an attempt. Skipped, stale and cancelled ones say nothing of whether the next will work."""
        if outcome in SUCCESSES:
            return Breaker()
        return Breaker(failures=self.failures + 1, failed_at=now) if outcome in FAILURES else self

    def rest_s(self, now: float) -> float:
        """Seconds until an attempt is let through; 0 when one is."""
        return self.failed_at + COOLDOWN_S - now if self.state(now) is BreakerState.OPEN else 0.0


def is_refilling(turns_of_compactions: Sequence[int], turn: int) -> bool:
    """Whether the last compactions followed each other so closely that compacting makes no headway.

    `turns_of_compactions`: number of the turn before which each was committed, in order; `turn`: the present one.
    """
    return sum(turn - REFILL_TURNS < then <= turn for then in turns_of_compactions[-REFILLS:]) >= REFILLS
