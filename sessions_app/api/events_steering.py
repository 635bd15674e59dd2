"""Events that steer: stop a turn or a session, answer an approval, tell of a change of tier. Each answer says what came of it."""

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Literal

from channels.db import database_sync_to_async
from django.http import HttpResponse
from pydantic import Field

from sessions_app.api.events_data import Data, OpenData, invalid, read_data
from sessions_app.api.wire import json_response
from sessions_app.engine.triggers import Route
from sessions_app.events.actors import Actor
from sessions_app.models import Session
from sessions_app.permissions import Action, access_session
from sessions_app.selectors.item_ids import UnknownItem, place_of_item
from sessions_app.services import steering
from sessions_app.services.compactions import automatic
from sessions_app.services.steering import Steered

TIERS = Literal["", "c0", "c1", "c2", "c3", "t0", "t1", "t2", "t3"]
Steer = Callable[[Actor, Session, dict[str, Any]], Steered]

# A compaction before a change of tier runs in the thread of who asks: not in those that answer pages.
_routers = ThreadPoolExecutor(max_workers=4, thread_name_prefix="route")


class Approval(OpenData):
    elicitation_id: Annotated[str, Field(min_length=1, max_length=200)]
    action: Literal["accept", "cancel", "decline"]
    content: dict[str, Any] | None = None


class TurnRouted(Data):
    """What a router decided. `history_tokens`: what the request leaves for history; `active_item_id`: what the turn answers."""

    routed_tier: TIERS
    previous_tier: TIERS = ""
    base_tier: TIERS = ""
    final_tier: TIERS = ""
    routing_applied: bool = True
    turn_id: Annotated[str, Field(max_length=36)] = ""
    history_tokens: Annotated[int, Field(ge=1, le=100_000_000)] | None = None
    active_item_id: str = ""


def _interrupt(actor: Actor, session: Session, data: dict[str, Any]) -> Steered:
    read_data("interrupt", OpenData, data)
    return steering.interrupt(actor=actor, session=session)


def _stop(actor: Actor, session: Session, data: dict[str, Any]) -> Steered:
    read_data("stop_session", OpenData, data)
    return steering.stop(actor=actor, session=session)


def _approve(actor: Actor, session: Session, data: dict[str, Any]) -> Steered:
    told = read_data("approval", Approval, data)
    return steering.approve(actor=actor, session=session, data=told.model_dump(exclude_none=True))


STEERING: dict[str, Steer] = {"approval": _approve, "interrupt": _interrupt, "stop_session": _stop}
ROUTED = "turn_routed"


def steer(actor: Actor, session: Session, event_type: str, data: dict[str, Any]) -> HttpResponse:
    """Carries it out, and answers whether somebody took it."""
    steered = STEERING[event_type](actor, session, data)
    return json_response({"queued": False, "delivered": steered.delivered, "explanation": steered.explanation}, 202)


async def route(actor: Actor, session: Session, data: dict[str, Any]) -> HttpResponse:
    """Decides whether the history fits the highest tier, and compacts where it does not; answers when that is over."""
    told = read_data(ROUTED, TurnRouted, data)
    return await database_sync_to_async(_routed, thread_sensitive=False, executor=_routers)(actor, session, told)


def _routed(actor: Actor, session: Session, told: TurnRouted) -> HttpResponse:
    access_session(actor, session.pk, Action.COMPACT)
    tiers = told.model_dump(include={"routed_tier", "previous_tier", "base_tier", "final_tier", "routing_applied"})
    decision = automatic.route(
        session=session,
        actor=actor,
        turn_id=_turn(told.turn_id),
        report=Route(**tiers),
        history_tokens=told.history_tokens,
        active_index=_active(session, told.active_item_id),
    )
    attempt = decision.compaction
    answer = {
        "queued": False,
        "result": decision.result,
        "reason": decision.verdict.reason,
        "explanation": decision.verdict.explanation,
        "compaction_id": attempt.pk if attempt else None,
    }
    return json_response(answer, 202, {"Compaction-Id": str(attempt.pk)} if attempt else {})


def _turn(named: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(named) if named else None
    except ValueError as error:
        raise invalid(ROUTED, "data.turn_id", "turn_id is a UUID") from error


def _active(session: Session, named: str) -> int | None:
    try:
        return place_of_item(session, named)[0] if named else None
    except UnknownItem as error:
        raise invalid(ROUTED, "data.active_item_id", str(error).rstrip(".")) from error
