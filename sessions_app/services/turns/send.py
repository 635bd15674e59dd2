"""What a person does with the turns of a session: send a message, take it back, stop the turn, try again."""

import uuid
from datetime import UTC, datetime

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.db.models.functions import Now

from sessions_app import queue
from sessions_app.engine.terms import OPEN_STATUSES, Trigger
from sessions_app.engine.texts import storable
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import Compaction, Session, SessionKind, Turn, TurnStatus
from sessions_app.services.compactions.cancel import cancel
from sessions_app.services.turns.transitions import move

MAX_MESSAGE_CHARS = 400_000
MAX_QUEUED = 50
TITLE_CHARS = 80


class InvalidMessage(Exception):
    """A message can't be taken; nothing was sent. The text says why."""


class KeyReused(Exception):
    """The key of a message was that of another one before; nothing was sent. The text says which that was."""

    field = "key"
    code = "conflict"


class UnknownTurn(Exception):
    """The session has no such turn."""


class TurnRefused(Exception):
    """What was asked of a turn is too late, or never possible. The text says why; nothing was changed."""


def send(*, actor: Actor, session: Session, text: str, key: uuid.UUID | None = None) -> Turn:
    """Queues a message; its turn begins as soon as the session is free. Messages are delivered in the order of their numbers.

    `key`: the message's own id, made by the sender, so that the same message sent twice is taken once.
    Raises `InvalidMessage`, and `KeyReused` where another message had that key.
    """
    text = storable(text).replace("\r\n", "\n").strip()
    if not text:
        raise InvalidMessage("The message is empty. Nothing was sent.")
    if len(text) > MAX_MESSAGE_CHARS:
        raise InvalidMessage(f"A message may have {MAX_MESSAGE_CHARS:,} characters; this one has {len(text):,}. Nothing was sent.")
    try:
        return _taken(actor, session, text, key)
    except IntegrityError:
        # Sent to two sessions at once: no row of theirs is locked for both.
        if key is not None and (other := Turn.objects.filter(pk=key).exclude(session=session).first()):
            raise _reused(session, other) from None
        raise


def _taken(actor: Actor, session: Session, text: str, key: uuid.UUID | None) -> Turn:
    with transaction.atomic():
        current = _locked(session)
        known = Turn.objects.filter(pk=key).first() if key else None
        if known is not None:
            if known.session_id == session.pk and known.text == text:
                return known
            raise _reused(session, known)
        if Turn.objects.filter(session=current, status=TurnStatus.QUEUED).count() >= MAX_QUEUED:
            raise InvalidMessage(f"{MAX_QUEUED} messages wait already. Nothing was sent; wait for the next answer, or take some back.")
        turn = _queue(actor, current, text, key=key)
        if not current.title_source:
            Session.objects.filter(pk=session.pk).update(title=_title(text), title_source="first_message")
    return turn


def _reused(session: Session, known: Turn) -> KeyReused:
    if known.session_id != session.pk:
        return KeyReused("A message to another session had this key. Nothing was sent. Send it with a key of its own.")
    return KeyReused(
        f"Message {known.number} had this key, and was taken: “{_title(known.text)}”. This text is another one, so nothing was sent. "
        "Send it again if it is to follow as a message of its own."
    )


def retry(*, actor: Actor, session: Session, turn_id: uuid.UUID) -> Turn:
    """Asks again for an answer to the message of a turn that failed or was stopped without one, while nothing came after it.

    The message stays the entry that it is. Raises `UnknownTurn` and `TurnRefused`.
    """
    with transaction.atomic():
        current = _locked(session)
        turn = _turn(current, turn_id)
        newest = Turn.objects.filter(session=current).exclude(status=TurnStatus.WITHDRAWN).order_by("-number").first()
        if not turn.may_be_retried or newest != turn:
            raise TurnRefused("Only the last turn can be tried again, and only when it got no answer. Nothing was changed.")
        return _queue(actor, current, turn.text, retry_of=turn)


def withdraw(*, actor: Actor, session: Session, turn_id: uuid.UUID) -> Turn:
    """Takes back a message that still waits. Raises `UnknownTurn`, and `TurnRefused` once it was delivered."""
    with transaction.atomic():
        turn = _turn(_locked(session), turn_id)
        if not move(turn.pk, TurnStatus.WITHDRAWN, finished_at=Now()):
            raise TurnRefused("This message was delivered already, so it can't be taken back. Its turn can be stopped.")
        _tell(EventType.TURN_WITHDRAWN, actor, turn)
    turn.refresh_from_db()
    return turn


def interrupt(*, actor: Actor, session: Session, turn_id: uuid.UUID) -> Turn:
    """Stops a running turn; its worker ends it within a second. One that has ended is returned as it is. Raises `UnknownTurn`."""
    with transaction.atomic():
        turn = _turn(_locked(session), turn_id)
        if turn.status == TurnStatus.RUNNING and not turn.cancel_requested:
            Turn.objects.filter(pk=turn.pk).update(cancel_requested=True)
            _tell(EventType.TURN_CANCEL_REQUESTED, actor, turn)
            # What compacts the session on behalf of this turn ends with it.
            attempts = Compaction.objects.filter(session=session, status__in=OPEN_STATUSES).exclude(trigger=Trigger.MANUAL)
            for attempt in attempts.values_list("pk", flat=True):
                cancel(actor=actor, session=session, compaction_id=attempt)
    turn.refresh_from_db()
    return turn


def _locked(session: Session) -> Session:
    current = Session.objects.select_for_update(no_key=True).get(pk=session.pk)
    if current.kind != SessionKind.INLINE:
        raise InvalidMessage("This session is held by its agent, not here, so no message can be sent to it. Nothing was sent.")
    return current


def _turn(session: Session, turn_id: uuid.UUID) -> Turn:
    turn = Turn.objects.select_for_update(no_key=True).filter(pk=turn_id, session=session).first()
    if turn is None:
        raise UnknownTurn("This session has no such turn. Nothing was changed.")
    return turn


def _queue(actor: Actor, session: Session, text: str, *, key: uuid.UUID | None = None, retry_of: Turn | None = None) -> Turn:
    last = Turn.objects.filter(session=session).aggregate(last=Max("number"))["last"] or 0
    columns = {"pk": key} if key else {}
    turn = Turn.objects.create(
        session=session,
        number=last + 1,
        text=text,
        sent_by=actor.name,
        retry_of=retry_of,
        user_index=retry_of.user_index if retry_of else None,
        sent_at=Now(),
        queued_at=Now(),
        **columns,
    )
    Session.objects.filter(pk=session.pk).update(last_activity_at=datetime.now(UTC))
    _tell(EventType.TURN_QUEUED, actor, turn, chars=len(text), retry_of=retry_of.number if retry_of else None)
    queue.enqueue(queue.RUN_TURN, str(session.pk))
    turn.refresh_from_db()
    return turn


def _tell(event_type: EventType, actor: Actor, turn: Turn, **facts: object) -> None:
    stream = log.session_stream(turn.session_id)
    log.append(stream, event_type, actor=actor, target=("turn", str(turn.pk)), payload={"turn": turn.number, **facts})


def _title(text: str) -> str:
    line = "".join(letter for letter in " ".join(text.split()) if letter.isprintable())
    return line if len(line) <= TITLE_CHARS else f"{line[:TITLE_CHARS].rpartition(' ')[0] or line[:TITLE_CHARS]} …"
