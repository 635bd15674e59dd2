"""Compactions of which nobody knows whether a runner carried them out, and how that is settled.

A request that may have been received, and to which no answer came, is never sent again by itself, and ours does not run in its place:
both might then have run. Somebody decides.
"""

import uuid

from django.db.models import QuerySet
from django.db.models.functions import Now

from sessions_app.engine.steps import Ended
from sessions_app.engine.terms import Outcome, Status
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import Compaction

UNKNOWN_OUTCOME = "unknown_outcome"
"""The reason of such an attempt, which ends as failed."""

_WHAT_NOW = "Look in the agent; then ask the runner again, or compact what this console shows."
UNKNOWN = Ended(
    status=Status.FAILED,
    outcome=Outcome.FAILED,
    reason=UNKNOWN_OUTCOME,
    explanation=f"The runner was asked, and no answer came: whether it compacted is not known. Nothing was changed here. {_WHAT_NOW}",
)
NEVER_REPORTED = Ended(
    status=Status.FAILED,
    outcome=Outcome.FAILED,
    reason=UNKNOWN_OUTCOME,
    explanation=f"The runner took it over and never said how it ended, so whether it compacted is not known. {_WHAT_NOW}",
)
STOPPED_WAITING = Ended(
    status=Status.FAILED,
    outcome=Outcome.FAILED,
    reason=UNKNOWN_OUTCOME,
    explanation=f"It was cancelled here while the runner was at it; whether the runner goes on is not known. {_WHAT_NOW}",
)


def if_forwarded(compaction_id: uuid.UUID) -> Ended | None:
    """How an attempt ends whose worker is gone, if it had asked a runner and the answer is still out; else None."""
    rows = Compaction.objects.filter(pk=compaction_id, forwarded_at__isnull=False)
    row = rows.values_list("runner_answer", "operation_id").first()
    if row is None:
        return None
    answer, operation = row
    if operation:
        return NEVER_REPORTED
    return UNKNOWN if answer is None else None


def undecided(session_id: uuid.UUID) -> QuerySet[Compaction]:
    """Attempts of a session that nobody has settled yet."""
    return Compaction.objects.filter(session_id=session_id, reason=UNKNOWN_OUTCOME, decided_at__isnull=True)


def decide(session_id: uuid.UUID, *, actor: Actor, decision: str) -> int:
    """Settles them, with an event for each. `decision` is a word: `again`, `console`, `reported`, `dismissed`, `unbound`.

    Call in a transaction that has locked the session's row. Returns how many there were.
    """
    found = list(undecided(session_id).values_list("pk", "attempt"))
    for compaction_id, attempt in found:
        Compaction.objects.filter(pk=compaction_id).update(decided_at=Now())
        log.append(
            log.session_stream(session_id),
            EventType.COMPACTION_DECIDED,
            actor=actor,
            target=("compaction", str(compaction_id)),
            compaction_id=compaction_id,
            payload={"attempt": attempt, "decision": decision},
        )
    return len(found)
