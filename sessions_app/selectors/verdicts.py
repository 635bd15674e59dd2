"""Why automatic compaction last did or did not fire in a session, and whether it rests: read from the session's row alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from sessions_app.engine.breaker import COOLDOWN_S, OPENS_AT
from sessions_app.engine.triggers import Verdict
from sessions_app.models import Session, SessionKind


@dataclass(frozen=True)
class Evaluation:
    """The last evaluation. Tokens: `tokens` were compared with `limit`, which is of `window`."""

    fires: bool
    trigger: str
    reason: str
    explanation: str
    tokens: int
    origin: str
    limit: int
    window: int
    at: datetime

    @property
    def question(self) -> str:
        """What it answers."""
        return "Why did it fire?" if self.fires else "Why did it not fire?"


@dataclass(frozen=True)
class Resting:
    """The breaker of a session, and the guard against refilling. `until`: None unless automatic compaction rests now."""

    failures: int
    failed_at: datetime | None
    until: datetime | None
    refill_warning: str

    @property
    def words(self) -> str:
        """What a person is to know of the failures; empty where there are none worth a word."""
        if self.failures < OPENS_AT:
            return ""
        failed = f"The last {self.failures} automatic compactions failed"
        if self.until:
            return (
                f"{failed}, so they rest until {self.until:%H:%M:%S} UTC. Till then a request that is too long is served from "
                "a view of which nothing is stored. A person may compact at any time."
            )
        return f"{failed}. The next one is tried, and its end decides whether they rest again."

    @property
    def needs_attention(self) -> bool:
        return bool(self.words or self.refill_warning)


def evaluation_of(session: Session) -> Evaluation | None:
    """The last evaluation of a session; None where there was none yet. No query."""
    return evaluation_in(session.evaluation)


def evaluation_in(column: Mapping[str, Any]) -> Evaluation | None:
    """An evaluation as it was stored; None where there is none, or a newer version wrote what this one can't read."""
    stored = dict(column)
    try:
        at = datetime.fromisoformat(str(stored.pop("at")))
        verdict = msgspec.convert(stored, Verdict)
    except (KeyError, ValueError):  # msgspec's errors are values', too
        return None
    return Evaluation(
        fires=verdict.fires,
        trigger=verdict.trigger,
        reason=verdict.reason,
        explanation=verdict.explanation,
        tokens=verdict.tokens,
        origin=verdict.origin,
        limit=verdict.limit,
        window=verdict.window,
        at=at,
    )


def resting_of(session: Session) -> Resting:
    """Whether automatic compaction rests, and why. No query."""
    failed_at = session.breaker_failed_at
    until = failed_at + timedelta(seconds=COOLDOWN_S) if failed_at and session.breaker_failures >= OPENS_AT else None
    return Resting(
        failures=session.breaker_failures,
        failed_at=failed_at,
        until=until if until and until > datetime.now(UTC) else None,
        refill_warning=session.refill_warning,
    )


def awaited(session: Session) -> str:
    """When the first evaluation takes place, for a session that has had none."""
    if session.kind == SessionKind.INLINE:
        return "Not evaluated yet: that happens before each turn."
    return "Not evaluated yet: that happens when its agent writes more."
