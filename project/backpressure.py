"""Whoever sends waits until its client takes what it is sent. The server itself would keep it all, however much that is."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import structlog

logger = structlog.get_logger(__name__)

LOOK_S = 0.02
STALLED_S = 30
"""A client that takes nothing for so long, with more waiting for it than the server's buffer holds, is cut off."""

Application = Callable[[Any, Any, Any], Awaitable[None]]


class Backpressure:
    """Makes the server's `send` return when there is room for more, as an application that streams relies on."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        protocol = next(iter(getattr(send, "args", ())), None)  # the server binds the connection into what it hands out

        async def send_and_wait(message: Any) -> None:
            await send(message)
            if message["type"] in {"http.response.body", "websocket.send"}:
                await _until_there_is_room(protocol)

        await self._application(scope, receive, send_and_wait)


async def _until_there_is_room(protocol: Any) -> None:
    """Returns at once where the server's buffer for this connection is not full, or where it has none."""
    transport: Any = getattr(protocol, "transport", None)
    if not getattr(transport, "producerPaused", False):
        return
    until = _now() + STALLED_S
    left: tuple[int, int] | None = None
    while transport.producerPaused and not transport.disconnected:
        before, left = left, (transport.offset, len(transport.dataBuffer))
        if left != before:
            until = _now() + STALLED_S  # it takes some of it
        elif _now() >= until:
            logger.info("client_cut_off", reason=f"it took nothing for {STALLED_S} s")
            transport.abortConnection()
            return
        await asyncio.sleep(LOOK_S)


def _now() -> float:
    return asyncio.get_running_loop().time()
