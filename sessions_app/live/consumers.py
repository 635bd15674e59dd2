"""The browser's sockets: they ask the gate, follow a feed of the hub, and pass on what it hands them."""

import asyncio
import random
import uuid
from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager, suppress
from urllib.parse import parse_qs

import structlog
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer

from sessions_app import permissions
from sessions_app.events.actors import Actor
from sessions_app.live.hub import Follower, current_hub
from sessions_app.models import ActorKind
from sessions_app.permissions import Action, ActionRefused, NoAccess

logger = structlog.get_logger(__name__)

CLOSE_FORBIDDEN = 4403
CLOSE_NOT_FOUND = 4404
CLOSE_TOO_SLOW, CLOSE_FAILED = 4413, 4411
"""Upon both the page connects anew, from its cursor. The standard's own codes for this (1013, 1011) a server may not send."""

RECHECK_S = 60
"""At the latest after so long the gate is asked again; each socket at a time of its own, for all may have come at once."""

BEAT, BEAT_S = "beat", 10
"""Said to every browser so often, whatever happens: one that hears nothing for twice that time connects anew."""


def _until_recheck() -> float:
    return RECHECK_S * random.uniform(0.5, 1.0)  # noqa: S311  spreads a load


class FollowingConsumer(ABC, AsyncWebsocketConsumer):
    """A socket that only tells. What the browser sends is ignored."""

    async def connect(self) -> None:
        # Accepted first: a refused handshake would not carry the code, and the page would try for ever.
        await self.accept()
        self._pump: asyncio.Task[None] | None = None
        code = await database_sync_to_async(self._refusal)()
        if code is not None:
            await self.close(code)
            return
        self._pump = asyncio.create_task(self._pass_on())

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Nothing is taken from a browser."""

    async def disconnect(self, code: int) -> None:  # noqa: ARG002
        if self._pump is not None:
            self._pump.cancel()
            with suppress(asyncio.CancelledError):
                await self._pump

    @abstractmethod
    def ask_gate(self, actor: Actor) -> None:
        """Raises `NoAccess` or `ActionRefused` when the actor may not follow. Runs in a thread."""

    @abstractmethod
    def follow(self, after: int) -> AbstractAsyncContextManager[Follower[str]]:
        """The feed of this socket, from a cursor on."""

    def _refusal(self) -> int | None:
        """The code with which to close, or None. Asked at the start and every minute: rights may be taken away."""
        actor = permissions.actor_of_socket(self.scope)
        try:
            self.ask_gate(actor)
        except NoAccess:
            return CLOSE_FORBIDDEN if actor.kind == ActorKind.ANONYMOUS else CLOSE_NOT_FOUND
        except ActionRefused:
            return CLOSE_FORBIDDEN
        return None

    async def _pass_on(self) -> None:
        try:
            async with self.follow(self._after()) as follower:
                await self.close(await self._until_refused(follower))
        except Exception as error:  # noqa: BLE001  whatever it is, the browser comes back and catches up
            logger.warning("socket_failed", error=type(error).__name__)
            with suppress(Exception):  # it may be closed already
                await self.close(CLOSE_FAILED)

    async def _until_refused(self, follower: Follower[str]) -> int:
        loop = asyncio.get_running_loop()
        recheck_at, beat_at = loop.time() + _until_recheck(), loop.time() + BEAT_S
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(min(recheck_at, beat_at)):
                    message = await follower.next_message()
                    if message is None:
                        return CLOSE_TOO_SLOW
                    await self.send(text_data=message)
            if loop.time() >= beat_at:
                await self.send(text_data=BEAT)
                beat_at = loop.time() + BEAT_S
            if loop.time() >= recheck_at:
                code = await database_sync_to_async(self._refusal)()
                if code is not None:
                    return code
                recheck_at = loop.time() + _until_recheck()

    def _after(self) -> int:
        """The cursor in the address; 0, and with it a full catch-up, when there is none."""
        given = parse_qs(self.scope["query_string"].decode("latin-1")).get("after", ["0"])[0]
        return int(given) if given.isdecimal() and len(given) < 19 else 0


class SessionConsumer(FollowingConsumer):
    """`/ws/sessions/<id>/?after=<seq>`: one session."""

    @property
    def _session_id(self) -> uuid.UUID:
        identifier: uuid.UUID = self.scope["url_route"]["kwargs"]["session_id"]
        return identifier

    def ask_gate(self, actor: Actor) -> None:
        permissions.require_session(actor, self._session_id)

    def follow(self, after: int) -> AbstractAsyncContextManager[Follower[str]]:
        return current_hub().follow_session(self._session_id, after)


class ListConsumer(FollowingConsumer):
    """`/ws/sessions/?after=<list cursor>`: the rows of all sessions."""

    def ask_gate(self, actor: Actor) -> None:
        permissions.require(actor, Action.READ, target=("socket", "sessions"))

    def follow(self, after: int) -> AbstractAsyncContextManager[Follower[str]]:
        return current_hub().follow_list(after)


class UnknownConsumer(AsyncWebsocketConsumer):
    """Any other address: closed with a code, where the router would only raise."""

    async def connect(self) -> None:
        await self.accept()
        await self.close(CLOSE_NOT_FOUND)
