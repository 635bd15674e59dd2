"""The turns of an inline session that its page shows beside the history: the running one, what waits, and how the last ended."""

import uuid
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F

from sessions_app.models import SessionStatus, Turn, TurnStatus
from sessions_app.selectors import plans

MOST_SHOWN = 60
"""Turns that one query reads: all that may wait, and those before them."""

SHOWN_CHARS = 20_000
"""Of an answer under way, so much of its end is shown; the history has the whole once it is over."""

LINE_CHARS = 400


@dataclass(frozen=True)
class RunningTurn:
    """`state`: `compacting` before the request, `waiting` for the first of the answer, `answering`."""

    id: uuid.UUID
    number: int
    state: str
    text: str
    is_cut: bool
    model: str
    since: datetime | None
    is_stopping: bool


@dataclass(frozen=True)
class QueuedMessage:
    """A message that waits. `ahead`: how many are delivered before it."""

    id: uuid.UUID
    number: int
    text: str
    sent_by: str
    ahead: int
    is_retry: bool


@dataclass(frozen=True)
class TurnPanel:
    """Nothing here depends on who looks. `note` tells how the last turn ended, where there is something to say."""

    session_id: uuid.UUID
    running: RunningTurn | None
    queued: tuple[QueuedMessage, ...]
    note: str
    tone: str
    retry_id: uuid.UUID | None


def turn_panel(session_id: uuid.UUID) -> TurnPanel:
    """The panel as things stand. One query."""
    rows = Turn.objects.filter(session_id=session_id).exclude(status=TurnStatus.WITHDRAWN).annotate(held=F("session__status"))
    turns = list(rows.order_by("-number")[:MOST_SHOWN])
    running = next((turn for turn in turns if turn.status == TurnStatus.RUNNING), None)
    waiting = [turn for turn in reversed(turns) if turn.status == TurnStatus.QUEUED]
    ended = next((turn for turn in turns if not turn.is_open), None)
    tells = ended is not None and running is None and bool(ended.explanation)
    is_newest = tells and turns[0] == ended
    may_retry = is_newest and ended is not None and ended.may_be_retried
    return TurnPanel(
        session_id=session_id,
        running=_running(running, running.held) if running else None,
        queued=tuple(
            QueuedMessage(turn.pk, turn.number, _line(turn.text), turn.sent_by, place, turn.retry_of_id is not None)
            for place, turn in enumerate(waiting)
        ),
        note=ended.explanation if is_newest and ended and ended.status != TurnStatus.CANCELLED else "",
        tone="bad" if ended is not None and ended.status == TurnStatus.FAILED else "info",
        retry_id=ended.pk if may_retry and ended else None,
    )


def answer_of(turn: Turn) -> str:
    """The text of a turn's answer, whole, once it is in the history; else nothing. One query."""
    if turn.answer_index is None:
        return ""
    rows = plans.load_entries(turn.session_id, turn.answer_index, turn.answer_index + 1, whole=True)
    return "\n\n".join(entry.text for entry in rows if entry.message_key == f"turn:{turn.pk}" and entry.text)


def _running(turn: Turn, session_status: str) -> RunningTurn:
    is_compacting = session_status == SessionStatus.COMPACTING
    return RunningTurn(
        id=turn.pk,
        number=turn.number,
        state="answering" if turn.answer_text else "compacting" if is_compacting else "waiting",
        text=turn.answer_text[-SHOWN_CHARS:],
        is_cut=len(turn.answer_text) > SHOWN_CHARS,
        model=turn.model,
        since=turn.started_at,
        is_stopping=turn.cancel_requested,
    )


def _line(text: str) -> str:
    return text if len(text) <= LINE_CHARS else f"{text[:LINE_CHARS]} …"
