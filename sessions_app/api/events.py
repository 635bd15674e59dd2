"""`POST /v1/sessions/{id}/events`: whatever happens to a session from outside is one event of a type, and every success is 202."""

import uuid
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema
from pydantic import ConfigDict, Field

from sessions_app.api.auth import actor_of
from sessions_app.api.errors import ApiError
from sessions_app.api.events_compact import COMPACT, compact
from sessions_app.api.events_items import ITEMS
from sessions_app.api.events_reports import REPORTS
from sessions_app.api.events_steering import ROUTED, STEERING, route, steer
from sessions_app.api.idempotency import create_once
from sessions_app.events.actors import Actor
from sessions_app.models import Session
from sessions_app.permissions import Action, access_session

router = Router()
TYPES = sorted({COMPACT, ROUTED, *ITEMS, *REPORTS, *STEERING})


class EventIn(Schema):
    """An event: its type, and what that type takes."""

    model_config = ConfigDict(extra="forbid")

    type: str = Field(max_length=100)
    data: dict[str, Any] = Field(default_factory=dict)


@router.post("/{uuid:session_id}/events", response={202: dict[str, Any]})
async def post_event(request: HttpRequest, session_id: uuid.UUID, event: EventIn) -> HttpResponse:
    """Takes one event. `compact` answers when the compaction is over, unless its data say `"wait": false`."""
    actor = actor_of(request)
    session = await sync_to_async(_open)(actor, session_id, event.type)
    if event.type == COMPACT:
        return await compact(request, actor, session, event.data)
    if event.type == ROUTED:
        return await route(actor, session, event.data)
    return await sync_to_async(_take)(request, actor, session, event)


def _open(actor: Actor, session_id: uuid.UUID, event_type: str) -> Session:
    session = access_session(actor, session_id, Action.READ)
    if event_type not in TYPES:
        allowed = ", ".join(TYPES)
        message = f"There is no event of type {event_type[:100]!r}; the types are {allowed}. Nothing was done."
        raise ApiError("invalid_input", message, field="type")
    return session


def _take(request: HttpRequest, actor: Actor, session: Session, event: EventIn) -> HttpResponse:
    if event.type in STEERING:
        return steer(actor, session, event.type, event.data)
    if event.type in ITEMS:
        return ITEMS[event.type](request, actor, session, event.data)
    access_session(actor, session.pk, Action.INGEST)  # before the transaction, which a refusal would undo with its event
    return create_once(request, lambda: REPORTS[event.type](actor, session, event.data))
