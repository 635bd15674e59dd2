"""Running one turn: deliver its message, compact where that is due, send the view, and store the answer."""

import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

import msgspec
import structlog
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import F

from sessions_app.engine import view
from sessions_app.engine.entries import Checkpoint
from sessions_app.engine.messages import ViewMessage
from sessions_app.engine.overflow import Refusal
from sessions_app.engine.steps import Stop, Stopped
from sessions_app.engine.terms import Lineage
from sessions_app.events.types import EventType
from sessions_app.models import Session, Turn, TurnStatus
from sessions_app.providers import turn_models
from sessions_app.providers.base import ModelAnswer, ModelClient, ModelRefused, ModelRequest, StopReason, refused
from sessions_app.providers.calls import call
from sessions_app.selectors import plans
from sessions_app.services import search_index
from sessions_app.services.compactions import automatic
from sessions_app.services.compactions.lease import LeaseLost
from sessions_app.services.compactions.step_events import WORKER, append_step
from sessions_app.services.turns import claims
from sessions_app.services.turns.claims import TurnClaim
from sessions_app.services.turns.endings import CANCELLED, WORKER_LOST, TurnEnd, answered, end
from sessions_app.services.turns.keeping import Incoming, TurnKeeper
from sessions_app.writers.provider_requests import anthropic_messages, openai_messages

logger = structlog.get_logger(__name__)

ANSWER_S = 900
"""How long one request to a provider may take."""

MAX_ANSWER_TOKENS = 8_192
PAUSES_S = (0.5, 2, 5, 10)
"""Between tries to store how a turn ended; together less than its lease lasts."""


class MakeClient(Protocol):
    """What makes a client for one request, as `turn_models.make_client` does."""

    def __call__(self, provider: str, /, *, window: int, timeout_s: float) -> ModelClient: ...


def run_turn(
    session_id: uuid.UUID, *, must_end: Callable[[], bool] = lambda: False, make_client: MakeClient = turn_models.make_client
) -> bool:
    """Delivers the first queued message of a session and runs its turn to the end; False when there was none to be had.

    `must_end` says that this process is about to end, and the turn with it. Never raises for what goes wrong inside the
    turn: that is its end, stored on its row and told in the history. What is queued behind it gets a task of its own.
    """
    held = claims.claim(session_id)
    if held is None:
        return False
    incoming = Incoming(held)
    ended: TurnEnd | None
    try:
        with TurnKeeper(held, incoming, must_end) as keeper:
            ended = _ended(_Turn(held, incoming, keeper, must_end, make_client))
        if ended is not None and ended.answer is None:
            _again(incoming.store)  # what had come of it stands in its end
    except LeaseLost:
        ended = None
    except Exception as error:
        logger.exception("turn_failed", turn=str(held.turn_id))
        ended = _failed(type(error).__name__, f"It failed on something unforeseen ({type(error).__name__}; the log says where).")
    if ended is not None and not _stored(held, ended):
        logger.warning("turn_not_ours_any_more", turn=str(held.turn_id), status=ended.status)
    _index(session_id)
    return True


def _stored(held: TurnClaim, ended: TurnEnd) -> bool:
    """Ends the turn so, or, where the database takes something of it not, without that. False: it is somebody else's by now.

    Raises `OperationalError` and `InterfaceError` where the database stays away; the sweep ends the turn then.
    """
    *firsts, last = _ways_to_end(ended)
    for way in firsts:
        try:
            return _again(partial(end, held.turn_id, way, token=held.token))
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            logger.exception("turn_end_refused", turn=str(held.turn_id))
    return _again(partial(end, held.turn_id, last, token=held.token))


def _ways_to_end(ended: TurnEnd) -> Iterator[TurnEnd]:
    """As it came; without what its provider measured; and that it could not be stored."""
    yield ended
    if ended.answer is not None and ended.answer.usage is not None:
        yield msgspec.structs.replace(ended, answer=msgspec.structs.replace(ended.answer, usage=None))
    yield _failed("not_stored", "How it ended could not be stored (the log says why).")


_Done = TypeVar("_Done")


def _again(do: Callable[[], _Done]) -> _Done:
    """What is written at the end of a turn is an answer that was paid for: a database that is away for a moment must not cost it."""
    for pause_s in PAUSES_S:
        try:
            return do()
        except (OperationalError, InterfaceError):
            if connection.in_atomic_block:
                raise
            logger.warning("turn_end_not_stored_yet", exc_info=True)
            connection.close()
            time.sleep(pause_s)
    return do()


class _Turn(NamedTuple):
    """A turn that is being run."""

    held: TurnClaim
    incoming: Incoming
    keeper: TurnKeeper
    must_end: Callable[[], bool]
    make_client: MakeClient

    def check(self) -> None:
        """Raises `Stopped` when it should stop."""
        if (stop := self.keeper.should_stop()) is not None:
            raise Stopped(stop)


class _NoRoom(Exception):
    """The view can't be made small enough. The text says why, and what a person can do."""


def _ended(turn: _Turn) -> TurnEnd | None:
    """How the turn ends; None when it is somebody else's by now."""
    try:
        answer, measured_view = _answer(turn)
        return answered(answer, measured_view=measured_view)
    except Stopped as stopped:
        if stopped.stop is Stop.LEASE_LOST:
            return WORKER_LOST if turn.keeper.is_interrupted else None
        return CANCELLED
    except LeaseLost:
        return WORKER_LOST if turn.keeper.is_interrupted else None
    except _NoRoom as error:
        return TurnEnd(status=TurnStatus.FAILED, reason=Refusal.OVERFLOW, explanation=f"No answer. {error}")
    except plans.BrokenPlan as error:
        return TurnEnd(status=TurnStatus.FAILED, reason=error.reason, explanation=f"No answer. {error}")
    except ModelRefused as error:
        return _failed(error.refusal, f"{str(error)[:1].upper()}{str(error)[1:]}.")
    except ImportError:
        return _failed("not_installed", "The provider's client is not installed (requirements-models.lock).")


def _failed(reason: str, sentence: str) -> TurnEnd:
    explanation = f"No answer. {sentence} The message is kept; try again."
    return TurnEnd(status=TurnStatus.FAILED, reason=reason[:40], explanation=explanation)


def _answer(turn: _Turn) -> tuple[ModelAnswer, bool]:
    """One request, and a second one where the first was too long and room could be made. Second: whether it was of the view in force.

    Raises `ModelRefused`, `_NoRoom`, `Stopped`, `LeaseLost` and `ImportError`.
    """
    due = automatic.before_turn(session=_session(turn), actor=WORKER, turn_id=turn.held.turn_id, must_end=turn.must_end)
    try:
        return _ask(turn, due.view), due.view is None
    except ModelRefused as error:
        if error.refusal is not Refusal.OVERFLOW:
            raise
    turn.check()
    recovered = automatic.recover_overflow(session=_session(turn), actor=WORKER, turn_id=turn.held.turn_id, must_end=turn.must_end)
    turn.check()
    if not recovered.made_room:
        raise _NoRoom(recovered.refusal)
    turn.incoming.begin_anew()
    return _ask(turn, recovered.view), recovered.view is None


def _session(turn: _Turn) -> Session:
    return Session.objects.get(pk=turn.held.session_id)


def _ask(turn: _Turn, plan: Checkpoint | None) -> ModelAnswer:
    """Sends the view of a plan for this one request, or the one that is in force."""
    turn.check()
    session = _session(turn)
    messages = plans.view_of(session.pk, plan, whole=True) if plan else plans.load_view(session, Lineage.CONSOLE, whole=True)
    request = request_of(session, messages)
    _note_request(turn.held, session, messages, is_durable=plan is None)
    answer = call(
        lambda: turn.make_client(session.provider, window=session.window, timeout_s=ANSWER_S),
        request,
        should_stop=turn.keeper.should_stop,
        timeout_s=ANSWER_S,
        on_text=turn.incoming.add,
    )
    if not answer.text.strip() and not answer.calls:
        raise refused(Refusal.OVERFLOW if answer.stop is StopReason.OVERFLOW else Refusal.UNAVAILABLE)
    return answer


def request_of(session: Session, messages: tuple[ViewMessage, ...]) -> ModelRequest:
    """The view as its provider takes it."""
    write = anthropic_messages if session.provider == "anthropic" else openai_messages
    written = list(write(messages, plans.load_blob))
    system = "\n\n".join(message["content"] for message in written if message["role"] == "system")
    said = tuple(message for message in written if message["role"] != "system")
    return ModelRequest(model=session.model, system=system, messages=said, max_tokens=MAX_ANSWER_TOKENS)


def _note_request(held: TurnClaim, session: Session, messages: tuple[ViewMessage, ...], *, is_durable: bool) -> None:
    """Writes down what is about to be sent; and, the first time that a checkpoint's view is, that it is."""
    checkpoint_id = session.active_console_id if is_durable else None
    is_first = checkpoint_id is not None and not Turn.objects.filter(session=session, compaction_id=checkpoint_id).exists()
    with transaction.atomic():
        claims.write(held, view_hash=view.view_hash(messages), compaction_id=checkpoint_id, calls=F("calls") + 1)
        if is_first and checkpoint_id is not None:
            append_step(checkpoint_id, EventType.COMPACTION_REPLAYED, status="replayed")


def _index(session_id: uuid.UUID) -> None:
    """Makes what was said findable at once; if that fails, the sweep does it."""
    try:
        search_index.index_sessions([session_id])
    except Exception:
        logger.exception("turn_not_indexed", session=str(session_id))
