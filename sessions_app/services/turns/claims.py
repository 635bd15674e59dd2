"""The right to run a turn: one at a time in a session, 30 seconds by the database's clock, renewed by its holder."""

import uuid
from dataclasses import dataclass
from datetime import timedelta

import structlog
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Coalesce, Now

from sessions_app import queue
from sessions_app.engine.entries import Part
from sessions_app.engine.terms import Kind, PartKind, Role, Status
from sessions_app.events import log
from sessions_app.events.types import EventType
from sessions_app.models import Compaction, Entry, EventResult, Session, SessionStatus, Turn, TurnStatus
from sessions_app.selectors.entry_rows import readable_parts
from sessions_app.services.compactions.lease import LEASE_S, LeaseLost
from sessions_app.services.compactions.request import start_waiting
from sessions_app.services.compactions.step_events import WORKER
from sessions_app.services.turns.appending import Draft, append, text_part
from sessions_app.services.turns.transitions import move

logger = structlog.get_logger(__name__)

NO_TOOLS = "This call was not carried out: a session that is held here has no tools."


@dataclass(frozen=True)
class TurnClaim:
    """A claimed turn. Every write of its worker names `token`."""

    turn_id: uuid.UUID
    session_id: uuid.UUID
    token: uuid.UUID


UNDELIVERABLE = (
    "No answer. The message can't be added to the session: what is stored of it does not fit together. Nothing was changed. "
    "An admin can have it set right by “manage.py doctor --repair”; then try again."
)


def claim(session_id: uuid.UUID) -> TurnClaim | None:
    """Delivers the first queued message of a session: it becomes an entry, and its turn is the caller's.

    None when there is none, a turn runs, or a compaction does: the end of each looks again. A task that comes twice finds
    that, too. None as well where the message can't be added at all: its turn has failed then, and says so.
    """
    for is_second in (False, True):
        try:
            with transaction.atomic():
                session = Session.objects.select_for_update(no_key=True).filter(pk=session_id).first()
                if session is None or _is_held(session):
                    return None
                turns = Turn.objects.filter(session_id=session_id)
                turn = turns.filter(status=TurnStatus.QUEUED).order_by("number").first()
                if turn is None or turns.filter(status=TurnStatus.RUNNING).exists():
                    return None
                return _deliver(session, turn)
        except IntegrityError:
            # Where rows can't be locked, the constraint decides who delivers. Whoever comes second finds that turn running, or over.
            if is_second:
                logger.exception("turn_not_delivered", session=str(session_id))
    _refuse(session_id)
    return None


def _refuse(session_id: uuid.UUID) -> None:
    """Ends the first queued turn, whose message there is no place for. What waits behind it is tried when it is tried again."""
    with transaction.atomic():
        session = Session.objects.select_for_update(no_key=True).get(pk=session_id)
        turns = Turn.objects.filter(session_id=session_id)
        turn = turns.filter(status=TurnStatus.QUEUED).order_by("number").first()
        if turn is None or turns.filter(status=TurnStatus.RUNNING).exists():
            return
        move(turn.pk, TurnStatus.FAILED, reason="not_delivered", explanation=UNDELIVERABLE, finished_at=Now())
        log.append(
            log.session_stream(session.pk),
            EventType.TURN_FAILED,
            actor=WORKER,
            result=EventResult.FAILED,
            target=("turn", str(turn.pk)),
            reason="not_delivered",
            payload={"turn": turn.number},
        )


def _is_held(session: Session) -> bool:
    """Whether a compaction comes first. One that waited for the end of a turn begins now, before the next one."""
    running = session.running
    if running is None or not running.is_open:
        return False
    if running.status == Status.WAITING_FOR_IDLE:
        return start_waiting(running.pk, session.pk, actor=WORKER)
    return True


def _deliver(session: Session, turn: Turn) -> TurnClaim:
    token = uuid.uuid4()
    drafts = [*_unanswered(session), *([] if turn.user_index is not None else [_message(turn)])]
    if drafts:
        indexes = append(session, drafts, actor=WORKER)
        turn.user_index = indexes[-1] if turn.user_index is None else turn.user_index
    move(
        turn.pk,
        TurnStatus.RUNNING,
        user_index=turn.user_index,
        provider=session.provider,
        model=session.model,
        lease_token=token,
        lease_expires_at=Now() + timedelta(seconds=LEASE_S),
        started_at=Now(),
    )
    Session.objects.filter(pk=session.pk).update(status=SessionStatus.WORKING)
    log.append(
        log.session_stream(session.pk),
        EventType.TURN_STARTED,
        actor=WORKER,
        target=("turn", str(turn.pk)),
        payload={"turn": turn.number, "user_index": turn.user_index, "provider": session.provider, "model": session.model},
    )
    return TurnClaim(turn.pk, session.pk, token)


def _message(turn: Turn) -> Draft:
    return Draft(role=Role.USER, kind=Kind.MESSAGE, parts=(text_part(turn.text),), source_id=f"turn:{turn.pk}:user")


def _unanswered(session: Session) -> list[Draft]:
    """Results for calls of the last answer: nobody carries them out, and without a result nothing could be folded past them."""
    if session.status != SessionStatus.WAITING:
        return []
    last = Entry.objects.filter(session_id=session.pk, role=Role.ASSISTANT, kind=Kind.CALL).order_by("-index").first()
    if last is None:
        return []
    # From the parts: the columns keep the beginning of a long id, and a result must bear the whole of it.
    calls = list(dict.fromkeys(part.call_id for part in readable_parts(last.parts) if part.kind is PartKind.CALL and part.call_id))
    return [
        Draft(
            role=Role.TOOL,
            kind=Kind.RESULT,
            parts=(Part(kind=PartKind.RESULT, text=NO_TOOLS, call_id=call_id, is_error=True),),
            source_id=f"{last.source_id}:result:{place}",
        )
        for place, call_id in enumerate(calls)
    ]


def renew(held: TurnClaim) -> bool:
    """Prolongs a lease that has not run out. False: it is lost, for good."""
    return bool(_held(held).filter(lease_expires_at__gt=Now()).update(lease_expires_at=Now() + timedelta(seconds=LEASE_S)))


def give_up(held: TurnClaim) -> None:
    """Lets a lease lapse now, so that the next sweep ends its turn without waiting for the clock."""
    _held(held).update(lease_expires_at=Now())


def write(held: TurnClaim, **columns: object) -> None:
    """Writes columns of the running turn. Raises `LeaseLost` when it is not this worker's any more."""
    if not _held(held).update(**columns):
        raise LeaseLost


def write_answer(held: TurnClaim, text: str) -> None:
    """Stores what has come of the answer so far."""
    write(held, answer_text=text, answered_at=Coalesce("answered_at", Now()))


def lapsed() -> QuerySet[Turn]:
    """Running turns that no live lease stands behind: their worker is gone."""
    return Turn.objects.filter(status=TurnStatus.RUNNING, lease_expires_at__lte=Now())


def go_on(session_id: uuid.UUID) -> None:
    """Lets what waits in a session follow: a compaction that waited for its turn to end, then the next message.

    Call in the transaction that ended a turn or a compaction; the tasks follow its commit.
    """
    waiting = Compaction.objects.filter(session_id=session_id, status=Status.WAITING_FOR_IDLE).first()
    if waiting is not None and start_waiting(waiting.pk, session_id, actor=WORKER):
        return
    if Turn.objects.filter(session_id=session_id, status=TurnStatus.QUEUED).exists():
        queue.enqueue(queue.RUN_TURN, str(session_id))


def _held(held: TurnClaim) -> QuerySet[Turn]:
    return Turn.objects.filter(pk=held.turn_id, lease_token=held.token, status=TurnStatus.RUNNING)
