"""A channel layer for one process whose messages may be sent from any thread."""

import asyncio
from typing import Any

from channels.layers import InMemoryChannelLayer


class LoopSafeInMemoryChannelLayer(InMemoryChannelLayer):  # type: ignore[misc]
    """The in-memory layer, with every queue filled on the loop of the coroutine that waits on it.

    The stock layer puts into a queue of another loop without waking it: messages from a worker's thread
    then arrive late, in bunches. It also sweeps all channels on each receive, which is quadratic in clients.
    One process only.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._owners: dict[str, asyncio.AbstractEventLoop] = {}

    async def receive(self, channel: str) -> dict[str, Any]:
        self._owners[channel] = asyncio.get_running_loop()
        message: dict[str, Any] = await super().receive(channel)
        return message

    async def send(self, channel: str, message: dict[str, Any]) -> None:
        owner = self._owners.get(channel)
        if owner is None or owner is asyncio.get_running_loop() or owner.is_closed():
            await super().send(channel, message)
            return
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(super().send(channel, message), owner))

    async def group_discard(self, group: str, channel: str) -> None:
        await super().group_discard(group, channel)
        self._owners.pop(channel, None)
