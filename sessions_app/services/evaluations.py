"""The last evaluation of a session's triggers, as its row keeps it: what answers "why did it (not) fire?"."""

import uuid
from datetime import UTC, datetime
from typing import Any

import msgspec

from sessions_app.engine.triggers import Verdict
from sessions_app.models import Session


def stored(verdict: Verdict) -> dict[str, Any]:
    """The verdict as plain JSON, with the moment of the evaluation."""
    told: dict[str, Any] = msgspec.to_builtins(verdict)
    return told | {"at": datetime.now(UTC).isoformat(timespec="seconds")}


def store(session_id: uuid.UUID, verdict: Verdict) -> None:
    """Keeps the verdict as the session's last one."""
    Session.objects.filter(pk=session_id).update(evaluation=stored(verdict))
