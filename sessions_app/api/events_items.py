"""Events that say something in a session: a person's message, and what an agent's program tells that was said and done."""

import json
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse

from sessions_app.api.errors import ApiError
from sessions_app.api.events_data import OpenData, read_data
from sessions_app.api.idempotency import create_once, created
from sessions_app.engine.terms import Role
from sessions_app.events.actors import Actor
from sessions_app.models import Session
from sessions_app.permissions import Action, access_session
from sessions_app.runners.errors import RunnerError
from sessions_app.services import external_items
from sessions_app.services.idempotency import Answer
from sessions_app.services.items import ITEM_TYPES, InvalidItem, draft_of
from sessions_app.services.turns.appending import Draft

MESSAGE = "message"
RETRY_S = 5
REPLAYED = "Idempotency-Replayed"
Call = Callable[[HttpRequest, Actor, Session, dict[str, Any]], HttpResponse]


class ConversationItem(OpenData):
    item_type: str
    item_data: dict[str, Any]


class AssistantMessage(OpenData):
    agent: str
    text: str


def item(event_type: str) -> Call:
    """Appends an item of this type. A person's message goes to whoever answers it."""

    def take(request: HttpRequest, actor: Actor, session: Session, data: dict[str, Any]) -> HttpResponse:
        draft = _draft(event_type, event_type, data)
        if draft.role is Role.USER and not draft.meta:
            return _message(request, actor, session, draft, data)
        return _item(request, actor, session, draft, queued=True)

    return take


def conversation_item(request: HttpRequest, actor: Actor, session: Session, data: dict[str, Any]) -> HttpResponse:
    """What was said elsewhere, whoever said it: it starts nothing."""
    name = "external_conversation_item"
    told = read_data(name, ConversationItem, data)
    draft = _draft(name, told.item_type, told.item_data)
    return _item(request, actor, session, draft, queued=False)


def assistant_message(request: HttpRequest, actor: Actor, session: Session, data: dict[str, Any]) -> HttpResponse:
    """What an agent answered elsewhere."""
    name = "external_assistant_message"
    told = read_data(name, AssistantMessage, data)
    draft = _draft(name, MESSAGE, {"role": "assistant", "content": told.text, "agent": told.agent})
    return _item(request, actor, session, draft, queued=False)


ITEMS: dict[str, Call] = {name: item(name) for name in ITEM_TYPES} | {
    "external_conversation_item": conversation_item,
    "external_assistant_message": assistant_message,
}


def _draft(event_type: str, item_type: str, data: dict[str, Any]) -> Draft:
    try:
        return draft_of(item_type, data)
    except InvalidItem as error:
        place = f"data.{error.field}" if error.field else "data"
        raise ApiError("invalid_input", f"{event_type}: {error}", field=place) from error


def _item(request: HttpRequest, actor: Actor, session: Session, draft: Draft, *, queued: bool) -> HttpResponse:
    access_session(actor, session.pk, Action.INGEST)  # before the transaction, which a refusal would undo with its event

    def append() -> Answer:
        return created({"queued": queued, "item_id": external_items.append_item(actor=actor, session=session, draft=draft)}, status=202)

    return create_once(request, append)


def _message(request: HttpRequest, actor: Actor, session: Session, draft: Draft, data: dict[str, Any]) -> HttpResponse:
    """Stored first, handed over behind the commit; the same key is handed over once."""
    access_session(actor, session.pk, Action.MESSAGE)
    goes_on = False

    def take() -> Answer:
        nonlocal goes_on
        taken = external_items.take_message(actor=actor, session=session, draft=draft)
        goes_on = taken.goes_to_runner
        told = {"item_id": taken.item_id, "turn_id": str(taken.turn_id) if taken.turn_id else None}
        return created({"queued": True} | {name: value for name, value in told.items() if value}, status=202)

    answer = create_once(request, take)
    if not goes_on:
        return answer
    try:
        external_items.hand_over(actor=actor, session=session, data=data)
    except RunnerError as error:
        kept = "It is in the history, and nobody answers it." if "item_id" in json.loads(answer.content) else "Nothing was stored."
        raise ApiError("runner_unavailable", f"{error} {kept}", retryable=False, retry_s=RETRY_S) from error
    return answer
