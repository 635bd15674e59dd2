"""How long a model of a chain may take, so that whoever comes after it still has the time to answer."""

import time
from collections.abc import Callable

from sessions_app.engine.policy import Policy

RESERVE_S = 15.0
"""Kept back for the summariser without a model, the check and the commit."""

RESERVED_SHARE = 0.25
"""Of a time that is short; then it is less."""

LEAST_S = 0.5


class Patience:
    """Shared by the summarisers of one attempt; begins with it."""

    def __init__(self, policy: Policy, clock: Callable[[], float] = time.monotonic) -> None:
        self._policy = policy
        self._clock = clock
        self._begun = clock()

    def for_call(self, *, chunk_count: int, models_left: int, is_last: bool) -> float:
        """Seconds that one call may take; 0 where none are left. `models_left`: it and those behind it; `is_last`: nobody is."""
        if is_last:
            return self._policy.call_timeout_s
        total = self._policy.total_timeout(chunk_count)
        left = total - min(RESERVE_S, RESERVED_SHARE * total) - (self._clock() - self._begun)
        seconds = min(self._policy.call_timeout_s, left / max(1, models_left))
        return seconds if seconds >= LEAST_S else 0.0
