"""The events of one session in their order, for those who follow it by its API."""

import uuid
from dataclasses import dataclass

from sessions_app.events.log import session_stream
from sessions_app.models import Event, Turn, TurnStatus


@dataclass(frozen=True)
class AnswerSoFar:
    """What has come of an answer under way. Nothing of it is an event: it is an entry once it is whole."""

    turn_id: uuid.UUID
    text: str


def events_after(session_id: uuid.UUID, seq: int, limit: int | None = None) -> list[Event]:
    """Events of a session's stream behind a sequence, the oldest first, without what only the log's verification needs. One query.

    Between any two of them none is missing: who writes to a stream holds its head until the event can be seen.
    """
    events = Event.objects.filter(stream=session_stream(session_id), seq__gt=seq).defer("previous_hash", "hash").order_by("seq")
    return list(events if limit is None else events[:limit])


def answer_so_far(session_id: uuid.UUID) -> AnswerSoFar | None:
    """The answer of the turn that runs, if some of it has come. One query."""
    running = Turn.objects.filter(session_id=session_id, status=TurnStatus.RUNNING).exclude(answer_text="")
    row = running.values_list("pk", "answer_text").first()
    return AnswerSoFar(*row) if row else None
