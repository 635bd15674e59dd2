"""What an agent or its runner tells of a session that it drives: its compactions, its tokens, how it stands.

These are mirrors: they start nothing. Each needs the right to ingest, is checked, and ends in an event.
"""

from enum import StrEnum

from django.db import transaction

from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import EventResult, Session
from sessions_app.permissions import Action, require
from sessions_app.services.compactions import handled, unknown


class Reported(StrEnum):
    """How far an agent's own compaction is; these words exactly."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"


class InvalidReport(Exception):  # noqa: N818  it says what is the matter
    """What was told can't be so; nothing was stored. `field` names it."""

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(f"{message} Nothing was stored.")


def report_compaction(*, actor: Actor, session: Session, status: str, operation_id: str = "") -> None:
    """An agent's own compaction began or ended. Ends the attempt that waits for this, and settles outcomes that were unknown.

    One event of the session's stream, whose `response_event` is what followers of the stream get; none where the end of an
    attempt says it already. Raises `InvalidReport` for any other word.
    """
    require(actor, Action.INGEST, target=("session", str(session.pk)), stream=log.session_stream(session.pk))
    if status not in set(Reported):
        raise InvalidReport("status", f"external_compaction_status takes a status of {', '.join(sorted(Reported))}, not {status[:40]!r}.")
    with transaction.atomic():
        Session.objects.select_for_update(no_key=True).get(pk=session.pk)
        has_ended = handled.report(session.pk, status, operation_id, actor=actor)
        if status != Reported.IN_PROGRESS:
            unknown.decide(session.pk, actor=actor, decision="reported")
        log.append(
            log.session_stream(session.pk),
            EventType.COMPACTION_REPORTED,
            actor=actor,
            result=EventResult.FAILED if status == Reported.FAILED else EventResult.ALLOWED,
            target=("session", str(session.pk)),
            payload={"status": status, "response_event": None if has_ended else f"response.compaction.{status}"},
        )
