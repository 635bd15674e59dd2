"""The one way in which a turn ends: status, entries, the session given back, and its event, in one transaction."""

import uuid
from collections.abc import Sequence

import msgspec
from django.db import transaction
from django.db.models.functions import Coalesce, Now

from sessions_app.engine.entries import Part, Usage
from sessions_app.engine.terms import OPEN_STATUSES, Kind, PartKind, Role
from sessions_app.engine.texts import storable
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import Compaction, EventResult, Session, SessionStatus, Turn, TurnStatus
from sessions_app.models.turn import INTERRUPTED
from sessions_app.providers.base import ModelAnswer, StopReason
from sessions_app.services.compactions.step_events import WORKER
from sessions_app.services.turns.appending import Draft, append, text_part
from sessions_app.services.turns.claims import go_on
from sessions_app.services.turns.transitions import move

_EVENTS = {
    TurnStatus.COMPLETED: EventType.TURN_COMPLETED,
    TurnStatus.FAILED: EventType.TURN_FAILED,
    TurnStatus.CANCELLED: EventType.TURN_CANCELLED,
}


class TurnEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn ends. `reason` is a short word, `explanation` the same in a sentence for people.

    `measured_view`: whether what its provider measured is the view in force. Of an emergency view, the turn and its event
    keep it: as the session's own it would say that there is room.
    """

    status: TurnStatus
    reason: str = ""
    explanation: str = ""
    answer: ModelAnswer | None = None
    measured_view: bool = True


CANCELLED = TurnEnd(status=TurnStatus.CANCELLED, reason="cancelled", explanation="The turn was stopped.")
WORKER_LOST = TurnEnd(
    status=TurnStatus.FAILED,
    reason="worker_lost",
    explanation="The process that ran this turn stopped. The message is kept, and no answer was stored. Try again.",
)
WANTS_TOOLS = "The model asked for tools. A session that is held here has none, so the calls stand unanswered; the next message goes on."
_NOTES = {
    StopReason.CALLS: ("wants_tools", WANTS_TOOLS),
    StopReason.LENGTH: ("truncated", "The answer ran into its limit and is cut off there."),
    StopReason.OVERFLOW: ("truncated", "The model's window was full, so the answer is cut off there."),
    StopReason.FILTERED: ("filtered", "The provider held a part of the answer back."),
}


def answered(answer: ModelAnswer, *, measured_view: bool = True) -> TurnEnd:
    """The end of a turn that was answered."""
    reason, explanation = _NOTES.get(StopReason.CALLS if answer.calls else answer.stop, ("", ""))
    return TurnEnd(status=TurnStatus.COMPLETED, reason=reason, explanation=explanation, answer=answer, measured_view=measured_view)


def end(turn_id: uuid.UUID, ended: TurnEnd, *, token: uuid.UUID | None = None, actor: Actor = WORKER) -> bool:
    """Ends a running turn; False when it has ended already, or `token` lost its lease: nothing is written then."""
    with transaction.atomic():
        session = Session.objects.select_for_update(of=("self",), no_key=True).filter(turns=turn_id).first()
        turn = Turn.objects.filter(pk=turn_id).first()
        if session is None or turn is None:
            return False
        usage = ended.answer.usage if ended.answer else None
        columns: dict[str, object] = {
            "reason": _reason(turn, ended),
            "explanation": ended.explanation,
            "usage": msgspec.to_builtins(usage),
            "finished_at": Now(),
        }
        if ended.answer:
            columns["answered_at"] = Coalesce("answered_at", Now())
        if not move(turn_id, ended.status, token=token, answer_text="", answer_index=session.entry_count, **columns):
            return False
        append(session, _entries(turn, ended), actor=WORKER)
        _give_back(session, ended)
        log.append(
            log.session_stream(session.pk),
            _EVENTS[ended.status],
            actor=actor,
            result=EventResult.FAILED if ended.status is TurnStatus.FAILED else EventResult.ALLOWED,
            target=("turn", str(turn_id)),
            reason=ended.reason,
            payload=_payload(turn, usage),
        )
        go_on(session.pk)
    return True


def _reason(turn: Turn, ended: TurnEnd) -> str:
    return INTERRUPTED if ended.status is TurnStatus.CANCELLED and turn.answer_text else ended.reason


def _give_back(session: Session, ended: TurnEnd) -> None:
    status = SessionStatus.FAILED if ended.status is TurnStatus.FAILED else SessionStatus.IDLE
    if ended.answer is not None and ended.answer.calls:
        status = SessionStatus.WAITING
    Session.objects.filter(pk=session.pk, status=SessionStatus.WORKING).update(status=status)
    # A compaction that this turn was waiting for gives the session back later, and not to a turn that is over.
    held = Compaction.objects.filter(session_id=session.pk, status__in=OPEN_STATUSES, session_status_before=SessionStatus.WORKING)
    held.update(session_status_before=status)


def _payload(turn: Turn, usage: Usage | None) -> dict[str, object]:
    return {"turn": turn.number, "calls": turn.calls, "usage": msgspec.to_builtins(usage), "model": turn.model}


def _entries(turn: Turn, ended: TurnEnd) -> Sequence[Draft]:
    """What the end adds to the history: the answer, or as much as came of it, and a notice where there is something to say."""
    entries = _answer_entries(turn, ended.answer, ended.answer.usage if ended.measured_view else None) if ended.answer else []
    partial = turn.answer_text if not ended.answer else ""
    if partial.strip() and ended.status is TurnStatus.CANCELLED:
        # What a person has read stays part of the conversation.
        entries.append(_said(turn, (text_part(partial),), annex={"interrupted": True}))
        partial = ""
    if ended.explanation:
        kept = (text_part(f"What had come of the answer, which is not part of the conversation:\n\n{partial}"),) if partial else ()
        kind = Kind.ERROR if ended.status is TurnStatus.FAILED else Kind.MESSAGE
        entries.append(
            Draft(role=Role.NOTICE, kind=kind, parts=(text_part(ended.explanation), *kept), source_id=f"turn:{turn.pk}:{ended.reason}")
        )
    return entries


def _answer_entries(turn: Turn, answer: ModelAnswer, usage: Usage | None) -> list[Draft]:
    """The rows of the answer; all of them are one message, and the first carries what the provider measured."""
    model = answer.model or turn.model
    entries = [_said(turn, (text_part(answer.text),), usage=usage, model=model)] if answer.text.strip() else []
    if answer.calls:
        parts = tuple(
            Part(kind=PartKind.CALL, name=storable(call.name), call_id=storable(call.call_id), text=storable(call.arguments))
            for call in answer.calls
        )
        entries.append(_said(turn, parts, kind=Kind.CALL, usage=None if entries else usage, model=model))
    return entries


def _said(
    turn: Turn,
    parts: tuple[Part, ...],
    *,
    kind: Kind = Kind.MESSAGE,
    usage: Usage | None = None,
    model: str = "",
    annex: dict[str, object] | None = None,
) -> Draft:
    return Draft(
        role=Role.ASSISTANT,
        kind=kind,
        parts=parts,
        source_id=f"turn:{turn.pk}:{kind}",
        message_key=f"turn:{turn.pk}",
        usage=usage,
        model=model or turn.model,
        annex=annex or {},
    )
