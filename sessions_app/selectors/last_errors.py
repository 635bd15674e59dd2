"""What went wrong last in a session, where nothing has gone right since."""

from dataclasses import dataclass
from datetime import datetime

from sessions_app.engine.terms import Status
from sessions_app.models import Compaction, Session, SessionKind, Turn, TurnStatus


@dataclass(frozen=True)
class LastError:
    """`of`: turn or compaction; `reason` in a short word, `message` for people."""

    of: str
    reason: str
    message: str
    at: datetime | None


def last_error(session: Session) -> LastError | None:
    """The failure of the newest turn or the newest attempt, whichever came later. At most two queries, none for what has neither."""
    found = [error for error in (_of_turn(session), _of_attempt(session)) if error is not None]
    return max(found, key=lambda error: error.at.timestamp() if error.at else 0.0, default=None)


def _of_turn(session: Session) -> LastError | None:
    if session.kind != SessionKind.INLINE:
        return None
    turns = Turn.objects.filter(session_id=session.pk).exclude(status=TurnStatus.WITHDRAWN).order_by("-number")
    told = turns.values_list("status", "reason", "explanation", "finished_at").first()
    return LastError("turn", *told[1:]) if told and told[0] == TurnStatus.FAILED else None


def _of_attempt(session: Session) -> LastError | None:
    if not session.last_attempt:
        return None
    attempts = Compaction.objects.filter(session_id=session.pk).order_by("-attempt")
    told = attempts.values_list("status", "reason", "outcome", "explanation", "finished_at").first()
    if told is None or told[0] not in (Status.FAILED, Status.TIMED_OUT):
        return None
    return LastError("compaction", told[1] or told[2], told[3], told[4])
