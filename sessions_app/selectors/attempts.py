"""One attempt as whoever waits for its end needs it."""

import uuid

from sessions_app.models import Compaction

_TOLD = ("session_id", "attempt", "status", "outcome", "reason", "explanation", "runner_answer")


def attempt_of(compaction_id: uuid.UUID) -> Compaction:
    """How an attempt stands, without what it holds; one query. Raises `Compaction.DoesNotExist`."""
    return Compaction.objects.only(*_TOLD).get(pk=compaction_id)
