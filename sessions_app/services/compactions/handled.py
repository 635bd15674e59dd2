"""The end of a compaction that a runner carries out: by its answer, or by the report that it sends later."""

import uuid
from collections.abc import Mapping
from datetime import timedelta

from django.db import transaction
from django.db.models.functions import Now

from sessions_app.engine.steps import Ended
from sessions_app.engine.terms import Lineage, Outcome, Status, SummarySource
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import Compaction
from sessions_app.runners.base import CompactAnswer
from sessions_app.services.compactions import breakers, lease
from sessions_app.services.compactions.endings import end, give_back
from sessions_app.services.compactions.lease import Claim, LeaseLost
from sessions_app.services.compactions.step_events import WORKER, append_step
from sessions_app.services.compactions.transitions import move

REPORT = "report"
"""Where an attempt keeps, in its `detail`, a report that came before the answer that announced it."""

EXTERNAL = {
    "summary_source": SummarySource.EXTERNAL,
    "explanation": "The session's runner compacted the agent's own context. What this console shows of it stays until the agent reports.",
}
"""What is said of a compaction that a runner carried out."""
FAILED_THERE = Ended(
    status=Status.FAILED,
    outcome=Outcome.FAILED,
    reason="runner_failed",
    explanation="The runner reports that its compaction failed. Nothing was changed here.",
)


def complete(compaction_id: uuid.UUID, *, token: uuid.UUID | None = None, actor: Actor = WORKER, columns: Mapping[str, object]) -> None:
    """Ends an attempt as carried out by its runner. It is no checkpoint of ours: what its context holds now, the runner tells.

    Call in a transaction that has locked the session's row. Raises `LeaseLost` where it is not running, or not under `token`.
    """
    if not move(compaction_id, Status.COMPLETED, token=token, outcome=Outcome.COMMITTED, finished_at=Now(), **columns):
        raise LeaseLost
    give_back(compaction_id)
    breakers.count(compaction_id, Outcome.COMMITTED)
    append_step(compaction_id, EventType.COMPACTION_PERSISTED, status=Status.COMPLETED, actor=actor)


def await_report(held: Claim, answer: CompactAnswer, report_s: int) -> Ended | None:
    """Leaves the attempt to its runner, which says how it ended; no worker stands by. One that was quicker has said so already.

    Call in a transaction that has locked the session's row.
    """
    row = Compaction.objects.only("detail").get(pk=held.compaction_id)
    lease.write(held, deadline_at=Now() + timedelta(seconds=report_s), lineage=Lineage.AGENT, operation_id=answer.operation_id)
    told = row.detail.get(REPORT)
    if told == "completed":
        complete(held.compaction_id, token=held.token, columns=EXTERNAL)
    return FAILED_THERE if told == "failed" else None


def report(session_id: uuid.UUID, status: str, operation_id: str, *, actor: Actor) -> bool:
    """Ends the attempt that waits for this report; False where none does. Call with the session's row locked.

    `status`: `in_progress`, `completed` or `failed`. A report that names an operation is for that one alone.
    """
    rows = Compaction.objects.filter(session_id=session_id, status=Status.RUNNING, forwarded_at__isnull=False)
    waiting = rows.filter(operation_id__isnull=False) | rows.filter(operation_id__isnull=True, runner_answer__isnull=True)
    attempt = waiting.only("operation_id", "detail").first()
    if attempt is None or (operation_id and attempt.operation_id and operation_id != attempt.operation_id):
        return False
    if attempt.operation_id is None:
        # Its answer is on the way. If that announces a report, this was it; if it says done, this says so as well.
        if status != "in_progress":
            Compaction.objects.filter(pk=attempt.pk).update(detail=attempt.detail | {REPORT: status})
        return False
    if status == "completed":
        complete(attempt.pk, actor=actor, columns=EXTERNAL)
    elif status == "failed":
        with transaction.atomic():
            end(attempt.pk, FAILED_THERE, actor=actor)
    return status != "in_progress"
