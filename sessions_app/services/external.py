"""What an agent or its runner tells of a session that it drives: its compactions, its tokens, how it stands.

These are mirrors: they start nothing. Each needs the right to ingest, is checked, and ends in an event.
"""

from datetime import UTC, datetime
from enum import StrEnum

from django.db import transaction

from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import OPEN_TURNS, Compaction, EventResult, Session, SessionStatus, Turn
from sessions_app.permissions import Action, require
from sessions_app.services import signals
from sessions_app.services.compactions import handled, unknown
from sessions_app.services.turns import claims


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


WINDOWS = (1, 100_000_000)
STATUSES = {
    "idle": SessionStatus.IDLE,
    "running": SessionStatus.WORKING,
    "waiting": SessionStatus.WAITING,
    "failed": SessionStatus.FAILED,
}
"""How a session stands, by the words of those that report it."""


def report_usage(
    *, actor: Actor, session: Session, context_tokens: int | None = None, window: int | None = None, told: dict[str, object]
) -> None:
    """What an agent measured: how many tokens its context holds now, and how many it may. Both become what the meter shows.

    `told`: all that was said, for the event; costs and sums of a whole session are kept there alone.
    """
    require(actor, Action.INGEST, target=("session", str(session.pk)), stream=log.session_stream(session.pk))
    with transaction.atomic():
        current = Session.objects.select_for_update(no_key=True).get(pk=session.pk)
        columns: dict[str, object] = {}
        if context_tokens is not None:
            at = datetime.now(UTC).isoformat(timespec="seconds")
            columns["usage_reported"] = {"tokens": context_tokens, "entries": current.entry_count, "at": at}
        if window is not None:
            columns["window_reported"] = window
        if columns:
            Session.objects.filter(pk=current.pk).update(last_activity_at=datetime.now(UTC), **columns)
            signals.refresh(current.pk)
        log.append(
            log.session_stream(current.pk),
            EventType.SESSION_USAGE_REPORTED,
            actor=actor,
            target=("session", str(current.pk)),
            payload=told,
        )


def report_status(*, actor: Actor, session: Session, status: str, told: dict[str, object] | None = None) -> bool:
    """How the session stands at its agent. False where that changes nothing; what failed stays so until it runs again.

    While this console compacts the session, it is what the session goes back to. Raises `InvalidReport` for another word, and
    while a turn of our own is open, which says by itself how it stands.
    """
    require(actor, Action.INGEST, target=("session", str(session.pk)), stream=log.session_stream(session.pk))
    if status not in STATUSES:
        raise InvalidReport("data.status", f"external_session_status takes a status of {', '.join(STATUSES)}, not {status[:40]!r}.")
    after = STATUSES[status]
    with transaction.atomic():
        current = Session.objects.select_for_update(no_key=True, of=("self",)).select_related("running").get(pk=session.pk)
        if Turn.objects.filter(session_id=current.pk, status__in=OPEN_TURNS).exists():
            raise InvalidReport("data.status", "external_session_status: a turn of this session is open here, and says how it stands.")
        attempt = current.running if current.status == SessionStatus.COMPACTING else None
        before = attempt.session_status_before if attempt else current.status
        if before == after or (before == SessionStatus.FAILED and after == SessionStatus.IDLE):
            return False
        if attempt is not None:
            Compaction.objects.filter(pk=attempt.pk).update(session_status_before=after)
        else:
            Session.objects.filter(pk=current.pk).update(status=after, last_activity_at=datetime.now(UTC))
        log.append(
            log.session_stream(current.pk),
            EventType.SESSION_STATUS_CHANGED,
            actor=actor,
            target=("session", str(current.pk)),
            before={"status": before},
            after={"status": after.value},
            reason="its agent says so",
            payload=told,
        )
        claims.go_on(current.pk)
    return True
