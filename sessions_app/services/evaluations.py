"""The last evaluation of a session's triggers, as its row keeps it: what answers "why did it (not) fire?"."""

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from sessions_app.engine import triggers
from sessions_app.engine.policy import Policy
from sessions_app.engine.signal import Signal
from sessions_app.engine.triggers import Verdict
from sessions_app.models import Session, SessionKind

WATCHED = frozenset({SessionKind.IMPORTED, SessionKind.OBSERVED})


def stored(verdict: Verdict) -> dict[str, Any]:
    """The verdict as plain JSON, with the moment of the evaluation."""
    told: dict[str, Any] = msgspec.to_builtins(verdict)
    return told | {"at": datetime.now(UTC).isoformat(timespec="seconds")}


def watched(kind: str, told: Mapping[str, Any], policy: Policy) -> dict[str, Any]:
    """The column of a session whose context its agent keeps, which is evaluated whenever its signal changes; else nothing.

    `told`: the columns of the signal. Nothing ever fires here: the verdict says what would be due.
    """
    if kind not in WATCHED:
        return {}
    signal = Signal(
        tokens=told["signal_tokens"], origin=told["signal_origin"], scope=told["signal_scope"], measured=told["signal_measured"]
    )
    return {"evaluation": stored(triggers.before_turn(signal=signal, policy=policy, window=told["window"], ours=False))}


def store(session_id: uuid.UUID, verdict: Verdict) -> None:
    """Keeps the verdict as the session's last one."""
    Session.objects.filter(pk=session_id).update(evaluation=stored(verdict))
