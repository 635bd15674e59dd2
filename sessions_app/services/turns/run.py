"""Running one turn: deliver its message, compact where that is due, send the view, and store the answer."""

import uuid
from collections.abc import Callable

import structlog

from sessions_app.engine import view
from sessions_app.engine.messages import ViewMessage
from sessions_app.engine.overflow import Refusal
from sessions_app.engine.steps import Stop, Stopped
from sessions_app.engine.terms import Lineage
from sessions_app.events.types import EventType
from sessions_app.models import Session, Turn, TurnStatus
from sessions_app.providers import turn_models
from sessions_app.providers.base import ModelAnswer, ModelRefused, ModelRequest, refused
from sessions_app.providers.calls import call
from sessions_app.selectors import plans
from sessions_app.services import search_index
from sessions_app.services.compactions.lease import LeaseLost
from sessions_app.services.compactions.step_events import append_step
from sessions_app.services.turns import claims
from sessions_app.services.turns.claims import TurnClaim
from sessions_app.services.turns.due import compact_if_due, make_room
from sessions_app.services.turns.endings import CANCELLED, WORKER_LOST, TurnEnd, answered, end
from sessions_app.services.turns.keeping import Incoming, TurnKeeper
from sessions_app.writers.provider_requests import anthropic_messages, openai_messages

logger = structlog.get_logger(__name__)

ANSWER_S = 900
"""How long one request to a provider may take."""

MAX_ANSWER_TOKENS = 8_192


def run_turn(session_id: uuid.UUID, *, must_end: Callable[[], bool] = lambda: False) -> bool:
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
            ended = _ended(held, incoming, keeper)
        incoming.store()
    except LeaseLost:
        ended = None
    except Exception as error:
        logger.exception("turn_failed", turn=str(held.turn_id))
        ended = _failed(type(error).__name__, f"It failed on something unforeseen ({type(error).__name__}; the log says where).")
    if ended is not None and not end(held.turn_id, ended, token=held.token):
        logger.warning("turn_not_ours_any_more", turn=str(held.turn_id), status=ended.status)
    _index(session_id)
    return True


def _ended(held: TurnClaim, incoming: Incoming, keeper: TurnKeeper) -> TurnEnd | None:
    """How the turn ends; None when it is somebody else's by now."""
    try:
        return answered(_answer(held, incoming, keeper))
    except Stopped as stopped:
        if stopped.stop is Stop.LEASE_LOST:
            return WORKER_LOST if keeper.is_interrupted else None
        return CANCELLED
    except LeaseLost:
        return WORKER_LOST if keeper.is_interrupted else None
    except ModelRefused as error:
        return _failed(error.refusal, f"{str(error)[:1].upper()}{str(error)[1:]}.")
    except ImportError:
        return _failed("not_installed", "The provider's client is not installed (requirements-models.lock).")


def _failed(reason: str, sentence: str) -> TurnEnd:
    explanation = f"No answer. {sentence} The message is kept; try again."
    return TurnEnd(status=TurnStatus.FAILED, reason=reason[:40], explanation=explanation)


def _answer(held: TurnClaim, incoming: Incoming, keeper: TurnKeeper) -> ModelAnswer:
    """Raises `ModelRefused`, `Stopped`, `LeaseLost` and `ImportError`. One request; a second one where the first was too long."""
    compact_if_due(held, keeper.should_stop)
    try:
        return _ask(held, incoming, keeper)
    except ModelRefused as error:
        if error.refusal is not Refusal.OVERFLOW or not make_room(held):
            raise
    incoming.begin_anew()
    return _ask(held, incoming, keeper)


def _ask(held: TurnClaim, incoming: Incoming, keeper: TurnKeeper) -> ModelAnswer:
    if (stop := keeper.should_stop()) is not None:
        raise Stopped(stop)
    session = Session.objects.get(pk=held.session_id)
    messages = plans.load_view(session, Lineage.CONSOLE, whole=True)
    request = request_of(session, messages)
    _note_request(held, session, messages)
    answer = call(
        lambda: turn_models.make_client(session.provider, window=session.window, timeout_s=ANSWER_S),
        request,
        should_stop=keeper.should_stop,
        timeout_s=ANSWER_S,
        on_text=incoming.add,
    )
    if not answer.text and not answer.calls:
        raise refused(Refusal.OVERFLOW if answer.stop == "overflow" else Refusal.UNAVAILABLE)
    return answer


def request_of(session: Session, messages: tuple[ViewMessage, ...]) -> ModelRequest:
    """The view as its provider takes it."""
    write = anthropic_messages if session.provider == "anthropic" else openai_messages
    written = list(write(messages, plans.load_blob))
    system = "\n\n".join(message["content"] for message in written if message["role"] == "system")
    said = tuple(message for message in written if message["role"] != "system")
    return ModelRequest(model=session.model, system=system, messages=said, max_tokens=MAX_ANSWER_TOKENS)


def _note_request(held: TurnClaim, session: Session, messages: tuple[ViewMessage, ...]) -> None:
    """Writes down what is about to be sent; and, the first time that a checkpoint's view is, that it is."""
    checkpoint_id = session.active_console_id
    is_first = checkpoint_id is not None and not Turn.objects.filter(session=session, compaction_id=checkpoint_id).exists()
    calls = Turn.objects.values_list("calls", flat=True).get(pk=held.turn_id)
    claims.write(held, view_hash=view.view_hash(messages), compaction_id=checkpoint_id, calls=calls + 1)
    if is_first and checkpoint_id is not None:
        append_step(checkpoint_id, EventType.COMPACTION_REPLAYED, status="replayed")


def _index(session_id: uuid.UUID) -> None:
    """Makes what was said findable at once; if that fails, the sweep does it."""
    try:
        search_index.index_sessions([session_id])
    except Exception:
        logger.exception("turn_not_indexed", session=str(session_id))
