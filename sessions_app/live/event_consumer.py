"""`WS /v1/sessions/<id>/ws?after_seq=<seq>`: the events of a session for programs, each a message of JSON."""

import asyncio
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from urllib.parse import parse_qs

import orjson
import structlog
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer

from sessions_app import permissions
from sessions_app.events.actors import Actor
from sessions_app.live.consumers import CLOSE_FAILED, CLOSE_FORBIDDEN, CLOSE_NOT_FOUND, CLOSE_TOO_SLOW
from sessions_app.live.stream_messages import heartbeat
from sessions_app.live.streams import EventStream, Sign, place_to_begin
from sessions_app.models import ActorKind
from sessions_app.permissions import Action, ActionRefused, NoAccess, access_session
from sessions_app.services import tokens
from sessions_app.services.access import record_view
from sessions_app.services.tokens import TooManyFailures, Unauthorized

logger = structlog.get_logger(__name__)

CLOSE_INVALID, CLOSE_UNAUTHORIZED, CLOSE_RATE_LIMITED = 4400, 4401, 4429
MOST = 2**63 - 1


class InvalidPlace(Exception):  # noqa: N818  it says what is the matter
    """The place to go on from is none."""


_CODES: dict[type[Exception], tuple[int, str]] = {
    Unauthorized: (CLOSE_UNAUTHORIZED, "unauthorized"),
    TooManyFailures: (CLOSE_RATE_LIMITED, "rate_limited"),
    NoAccess: (CLOSE_NOT_FOUND, "not_found"),
    ActionRefused: (CLOSE_FORBIDDEN, "forbidden"),
    InvalidPlace: (CLOSE_INVALID, "invalid_input"),
}
"""How a refusal is told: the code that closes the socket, and that of the error before it."""


class EventConsumer(AsyncWebsocketConsumer):
    """A socket that only tells. Who sends a token is asked for that alone; else it is a page, whose origin was checked."""

    async def connect(self) -> None:
        # Accepted first: a refused handshake would carry neither a code nor a sentence.
        await self.accept()
        self._pump = asyncio.create_task(self._pass_on())

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Nothing is taken."""

    async def disconnect(self, code: int) -> None:  # noqa: ARG002
        self._pump.cancel()
        with suppress(asyncio.CancelledError):
            await self._pump

    @property
    def _session_id(self) -> uuid.UUID:
        identifier: uuid.UUID = self.scope["url_route"]["kwargs"]["session_id"]
        return identifier

    async def _pass_on(self) -> None:
        try:
            after = self._after()
            await database_sync_to_async(self._open)()
            stream = EventStream(self._session_id, await place_to_begin(self._session_id, after), self._check)
            await self._say(heartbeat(self._session_id, stream.seq).text)
            await self._tell(stream)
            await self.close(CLOSE_TOO_SLOW)
        except Exception as error:  # noqa: BLE001  whatever it is, whoever comes again with the last sequence catches up
            await self._refuse(error)

    async def _tell(self, stream: EventStream) -> None:
        async with stream.messages() as messages:
            async for said in messages:
                if isinstance(said, Sign):
                    await self._say(heartbeat(self._session_id, stream.seq).text)
                    continue
                for message in said.messages:
                    await self._say(message.text)

    async def _say(self, text: str) -> None:
        await self.send(text_data=text)

    async def _refuse(self, error: Exception) -> None:
        found = next((known for kind, known in _CODES.items() if isinstance(error, kind)), None)
        with suppress(Exception):  # it may be closed already
            if found is None:
                logger.warning("socket_failed", error=type(error).__name__)
                await self.close(CLOSE_FAILED)
                return
            code, name = found
            await self._say(orjson.dumps({"error": {"code": name, "message": str(error), "retryable": name == "rate_limited"}}).decode())
            await self.close(code)

    def _after(self) -> int | None:
        given = parse_qs(self.scope["query_string"].decode("latin-1"), keep_blank_values=True).get("after_seq")
        if given is None:
            return None
        if not (given[0].isascii() and given[0].isdecimal() and len(given[0]) < 20 and int(given[0]) <= MOST):
            raise InvalidPlace("after_seq takes the sequence of an event of this session, a whole number.")
        return int(given[0])

    def _open(self) -> None:
        self._pass_gate(lambda actor: record_view(actor=actor, session=access_session(actor, self._session_id, Action.READ)))

    def _check(self) -> None:
        self._pass_gate(lambda actor: permissions.require_session(actor, self._session_id))

    def _pass_gate(self, gate: Callable[[Actor], object]) -> None:
        actor = self._actor()
        try:
            gate(actor)
        except NoAccess as error:
            if actor.kind == ActorKind.ANONYMOUS:
                raise Unauthorized("This needs a token (Authorization: Bearer …), or a browser that is signed in.") from error
            raise

    def _actor(self) -> Actor:
        """Who listens, as things stand now. Raises `Unauthorized` and `TooManyFailures`."""
        sent = next(self._sent(b"authorization"), None)
        if sent is not None:
            scheme, _, secret = sent.partition(" ")
            if scheme.lower() != "bearer":
                raise Unauthorized("Authorization takes the form “Bearer <token>”.")
            return tokens.authenticate(secret.strip(), address=str((self.scope.get("client") or [""])[0]))
        return permissions.actor_of_socket(self.scope)

    def _sent(self, header: bytes) -> Iterator[str]:
        return (value.decode("latin-1") for name, value in self.scope["headers"] if name == header)
