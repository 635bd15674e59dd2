"""`GET /v1/sessions/{id}/stream`: what happens in a session, as server-sent events."""

import re
import uuid
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Executor
from typing import Annotated

import structlog
from asgiref.sync import SyncToAsync, sync_to_async
from django.db import connections
from django.http import HttpRequest, StreamingHttpResponse
from ninja import Field, Query, Router, Schema

from sessions_app.api.auth import actor_of
from sessions_app.api.errors import ApiError
from sessions_app.live.stream_messages import heartbeat, sse
from sessions_app.live.streams import EventStream, Sign, place_to_begin
from sessions_app.models import ActorKind
from sessions_app.permissions import Action, access_session, actor_of_socket, require_session
from sessions_app.services import tokens
from sessions_app.services.access import record_view

logger = structlog.get_logger(__name__)

router = Router()

RETRY_MS = 1_000
MOST = 2**63 - 1
_PLACE = re.compile(r"[0-9]{1,19}", re.ASCII)
DONE = b"data: [DONE]\n\n"


class EventStreamResponse(StreamingHttpResponse):
    """Server-sent events, of which no proxy may gather some before it passes them on."""

    def __init__(self, written: AsyncGenerator[bytes]) -> None:
        super().__init__(written, content_type="text/event-stream; charset=utf-8", headers={"X-Accel-Buffering": "no"})
        self._written = written

    def __aiter__(self) -> AsyncGenerator[bytes]:
        # Django's own would wrap it, and leave it to the garbage collector when its client goes away.
        return self._written


class StreamQuery(Schema):
    """`after_seq`: go on behind this sequence, 0 being the beginning; without it, from now on. `follow`: wait for what is still to come."""

    after_seq: Annotated[int | None, Field(ge=0, le=MOST)] = None
    follow: bool = True


@router.get("/{uuid:session_id}/stream", response={200: None})
async def stream_session(request: HttpRequest, session_id: uuid.UUID, query: Query[StreamQuery]) -> StreamingHttpResponse:
    """What happens in a session, as server-sent events: all behind a place, each once and in order, and then those that come.

    The `id` of each is its sequence; `Last-Event-ID` goes on behind it, or `after_seq` where there is no such header. A sign of
    life comes every 15 seconds. Only a stream that ends as it should says `[DONE]`: after any other end, come again.
    """
    begins = _named_place(request, query.after_seq)
    await sync_to_async(_open)(request, session_id)
    stream = EventStream(session_id, await place_to_begin(session_id, begins), _gate(request, session_id), follows=query.follow)
    return EventStreamResponse(_written(session_id, stream, is_new=begins is None))


def _named_place(request: HttpRequest, after_seq: int | None) -> int | None:
    """A browser that comes again names its place in the header, under the address that it had at first."""
    sent = request.headers.get("Last-Event-ID", "").strip()
    if not sent:
        return after_seq
    if not _PLACE.fullmatch(sent) or int(sent) > MOST:
        raise ApiError("invalid_input", "Last-Event-ID takes the id of an event of this stream, a whole number.", field="Last-Event-ID")
    return int(sent)


def _open(request: HttpRequest, session_id: uuid.UUID) -> None:
    actor = actor_of(request)
    record_view(actor=actor, session=access_session(actor, session_id, Action.READ))


def _gate(request: HttpRequest, session_id: uuid.UUID) -> Callable[[], None]:
    """Asks again who they are and whether they still may."""
    address = request.META.get("REMOTE_ADDR", "")
    if actor_of(request).kind == ActorKind.TOKEN:
        secret = request.headers["Authorization"].partition(" ")[2].strip()
        return lambda: require_session(tokens.authenticate(secret, address=address), session_id)
    scope = {"user": request.user, "session": request.session, "client": [address, 0]}
    return lambda: require_session(actor_of_socket(scope), session_id)


async def _written(session_id: uuid.UUID, stream: EventStream, *, is_new: bool) -> AsyncGenerator[bytes]:
    await _give_thread_back()
    # Whoever named no place learns it at once: else what comes while they are away would be lost to them.
    yield b"retry: %d\n%b" % (RETRY_MS, sse(heartbeat(session_id, stream.seq), at=stream.seq if is_new else None))
    try:
        async with stream.messages() as messages:
            async for said in messages:
                if isinstance(said, Sign):
                    yield DONE if said is Sign.DONE else sse(heartbeat(session_id, stream.seq))
                else:
                    yield said.sse
    except Exception as error:  # noqa: BLE001  a right that was taken away, or a database: whoever comes again is told
        logger.info("stream_ended", session=str(session_id), error=type(error).__name__)


async def _give_thread_back() -> None:
    """A request has a thread of its own until its answer ends, with a connection to the database: a stream would keep them for hours."""
    await sync_to_async(connections.close_all)()
    context = SyncToAsync.thread_sensitive_context.get(None)
    executor: Executor | None = SyncToAsync.context_to_thread_executor.pop(context, None) if context else None
    if executor is not None:
        executor.shutdown(wait=False)
