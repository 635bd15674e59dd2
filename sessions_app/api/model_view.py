"""`GET /v1/sessions/{id}/view`: what the model sees of a session, now or at any time before."""

import uuid
from collections.abc import Iterator
from enum import StrEnum
from itertools import chain
from typing import Annotated, Any

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Field, Query, Router, Schema

from sessions_app.api.auth import actor_of
from sessions_app.api.errors import ApiError
from sessions_app.api.wire import JSON, dumps
from sessions_app.engine.messages import ViewMessage
from sessions_app.engine.terms import Lineage, Origin, Role, Scope
from sessions_app.models import Session
from sessions_app.permissions import Action, access_session
from sessions_app.rendering.streams import one_by_one
from sessions_app.selectors import plans
from sessions_app.selectors.chosen_view import ChosenView, chosen_view
from sessions_app.selectors.item_ids import item_id
from sessions_app.selectors.view_stream import stream_view
from sessions_app.services.access import record_view
from sessions_app.shapes import Shape, message_shape, tokens
from sessions_app.writers.provider_requests import anthropic_messages, openai_messages

router = Router()

MOST = 10**9


class ViewFormat(StrEnum):
    CANONICAL = "canonical"  # every part with its entry, fate and tokens
    OPENAI = "openai"  # the messages of a request to OpenAI's chat completions
    ANTHROPIC = "anthropic"  # the messages of a request to Anthropic's messages


class ViewQuery(Schema):
    """Which view. `at`: as it was when this entry was the newest; `generation`: of this checkpoint, 0 for none of them."""

    context: Lineage | None = None
    at: Annotated[int, Field(ge=0, le=MOST)] | None = None
    generation: Annotated[int, Field(ge=0, le=MOST)] | None = None
    format: ViewFormat = ViewFormat.CANONICAL


@router.get("/{uuid:session_id}/view", response=dict[str, Any])
def read_view(request: HttpRequest, session_id: uuid.UUID, asked: Query[ViewQuery]) -> StreamingHttpResponse:
    """The model view, whole. It is sent while it is read, so that its length does not matter."""
    actor = actor_of(request)
    session = access_session(actor, session_id, Action.READ)
    if asked.at is not None and asked.generation is not None:
        raise ApiError("invalid_input", "Give at or generation, not both. Nothing was read.", field="generation")
    try:
        view = chosen_view(session, context=asked.context, generation=asked.generation, at=asked.at)
    except LookupError as error:
        raise ApiError("invalid_input", str(error), field="at" if asked.at is not None else "generation") from error
    record_view(actor=actor, session=session)
    messages = stream_view(session.pk, view.checkpoint, upto=view.upto)
    write = _canonical(session, view, messages) if asked.format is ViewFormat.CANONICAL else _request(asked.format, messages)
    first = next(write)  # what can't be read is told before an answer has begun
    return StreamingHttpResponse(one_by_one(request, chain((first,), write)), content_type=JSON)


def _canonical(session: Session, view: ChosenView, messages: Iterator[ViewMessage]) -> Iterator[bytes]:
    size = plans.view_tokens(session, view.checkpoint) if view.upto is None else None
    head = {
        "object": "view",
        "session_id": session.pk,
        "context": view.context.value,
        "generation": view.generation,
        "at": view.upto,
        "size": tokens(size, origin=Origin.ESTIMATED, scope=Scope.VIEW),
    }
    return _document(head, (_told(session.pk, message) for message in messages))


def _told(session_id: uuid.UUID, message: ViewMessage) -> Shape:
    shape = message_shape(message)
    parts = [part | {"item_id": None if part["entry"] is None else item_id(session_id, part["entry"])} for part in shape["parts"]]
    return shape | {"parts": parts}


def _request(wanted: ViewFormat, messages: Iterator[ViewMessage]) -> Iterator[bytes]:
    write = openai_messages if wanted is ViewFormat.OPENAI else anthropic_messages
    items = write(messages, plans.load_blob)
    first = next(items, None)
    head: Shape = {}
    if wanted is ViewFormat.ANTHROPIC and first is not None and first["role"] == Role.SYSTEM:
        head, first = {"system": first["content"]}, next(items, None)
    return _document(head, items if first is None else chain((first,), items))


def _document(head: Shape, messages: Iterator[Shape]) -> Iterator[bytes]:
    """`head` and the messages as one document, a message at a time. The first piece holds the first of them."""
    opening = dumps(head)[:-1] + (b"," if head else b"") + b'"messages":['
    first = next(messages, None)
    yield opening + (dumps(first) if first is not None else b"")
    for message in messages:
        yield b"," + dumps(message)
    yield b"]}"
