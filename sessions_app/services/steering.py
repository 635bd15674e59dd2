"""Stopping what a session is at: its own turn here, or its runner's there. The answer says whether that was delivered."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import EventResult, Runner, Session, Turn, TurnStatus
from sessions_app.permissions import Action, require
from sessions_app.runners.base import APPROVAL, INTERRUPT, STOP
from sessions_app.runners.errors import RunnerError, RunnerRefused
from sessions_app.services.runners import clients
from sessions_app.services.turns import send


@dataclass(frozen=True)
class Steered:
    """Whether somebody took it, and in words what came of it."""

    delivered: bool
    explanation: str


NOBODY = "This session has no runner, so there is nobody to tell. Nothing was changed."


def interrupt(*, actor: Actor, session: Session) -> Steered:
    """Stops the turn that is running: here, where this console holds it, else at the session's runner."""
    require(actor, Action.INTERRUPT, target=("session", str(session.pk)), stream=log.session_stream(session.pk))
    if session.runner_id is not None:
        return _told(actor, session, INTERRUPT, {})
    turn = Turn.objects.filter(session_id=session.pk, status=TurnStatus.RUNNING).first()
    if turn is None:
        return Steered(delivered=False, explanation="No turn of this session is running here. Nothing was changed.")
    send.interrupt(actor=actor, session=session, turn_id=turn.pk)
    return Steered(delivered=True, explanation=f"Turn {turn.number} is being stopped.")


def stop(*, actor: Actor, session: Session) -> Steered:
    """Asks the session's runner to end it; where this console holds it, that is its turn."""
    if session.runner_id is None:
        return interrupt(actor=actor, session=session)
    require(actor, Action.INTERRUPT, target=("session", str(session.pk)), stream=log.session_stream(session.pk))
    return _told(actor, session, STOP, {})


def approve(*, actor: Actor, session: Session, data: Mapping[str, Any]) -> Steered:
    """Hands the answer to an approval over to the session's runner. Nothing here ever waits for one."""
    require(actor, Action.INTERRUPT, target=("session", str(session.pk)), stream=log.session_stream(session.pk))
    if session.runner_id is None:
        return Steered(delivered=False, explanation=NOBODY)
    return _told(actor, session, APPROVAL, data)


def _told(actor: Actor, session: Session, event_type: str, data: Mapping[str, Any]) -> Steered:
    try:
        deliver(actor=actor, session=session, event_type=event_type, data=data)
    except RunnerError as error:
        return Steered(delivered=False, explanation=str(error))
    return Steered(delivered=True, explanation="The runner took it.")


def deliver(*, actor: Actor, session: Session, event_type: str, data: Mapping[str, Any]) -> int:
    """Hands an event to the session's runner, once, and writes down what came of it. Returns the status.

    Call outside of any transaction: it may take 20 s. Raises `RunnerError`.
    """
    runner = Runner.objects.get(sessions=session)
    try:
        status = asyncio.run(_sent(runner, session, event_type, data))
    except RunnerError as error:
        clients.note(runner.pk, error)
        _write_down(actor, session, runner, event_type, error.status if isinstance(error, RunnerRefused) else None, error)
        raise
    clients.note(runner.pk)
    _write_down(actor, session, runner, event_type, status)
    return status


async def _sent(runner: Runner, session: Session, event_type: str, data: Mapping[str, Any]) -> int:
    return await clients.client_of(runner).deliver(clients.called(session), event_type, data)


def _write_down(
    actor: Actor, session: Session, runner: Runner, event_type: str, status: int | None, error: RunnerError | None = None
) -> None:
    log.append(
        log.session_stream(session.pk),
        EventType.RUNNER_FORWARDED,
        actor=actor,
        result=EventResult.FAILED if error else EventResult.ALLOWED,
        target=("session", str(session.pk)),
        reason=str(error) if error else "",
        payload={"type": event_type, "runner": runner.name, "status": status, "delivered": error is None},
    )
