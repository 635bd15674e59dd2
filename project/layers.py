"""A channel layer for one process whose messages may be sent from any thread."""

import asyncio
import threading
import time
from copy import deepcopy
from typing import Any

from channels.exceptions import ChannelFull
from channels.layers import InMemoryChannelLayer


class LoopSafeInMemoryChannelLayer(InMemoryChannelLayer):
    """The in-memory layer, with every queue filled on the loop of the coroutine that waits on it.

    The stock layer puts into a queue of another loop without waking it, so messages from a worker's thread
    arrive late and in bunches; it also sweeps all channels on each receive, which is quadratic in clients.
    Sending to another loop never waits for it: that loop may be about to stop. A full queue drops the message,
    as in the stock layer: what is sent here are notices only. One process only.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._owners: dict[str, asyncio.AbstractEventLoop] = {}  # channel → the loop that receives on it
        self._lock = threading.Lock()  # guards `groups`: members come and go on one loop while another sends

    async def receive(self, channel: str) -> dict[str, Any]:
        self._owners[channel] = asyncio.get_running_loop()
        message: dict[str, Any] = await super().receive(channel)
        return message

    async def send(self, channel: str, message: dict[str, Any]) -> None:
        owner = self._owners.get(channel)
        if owner is None or owner is asyncio.get_running_loop():
            await super().send(channel, message)
            return
        try:
            owner.call_soon_threadsafe(self._put, channel, deepcopy(message))
        except RuntimeError:  # that loop is closed, and its receiver with it
            self._forget(channel)

    async def group_add(self, group: str, channel: str) -> None:
        with self._lock:
            # Known from now on, not from the first wait: what is sent between the two must wake it as well.
            self._owners[channel] = asyncio.get_running_loop()
            await super().group_add(group, channel)

    async def group_discard(self, group: str, channel: str) -> None:
        with self._lock:
            await super().group_discard(group, channel)
            if not any(channel in members for members in self.groups.values()):
                self._owners.pop(channel, None)

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        self.require_valid_group_name(group)
        with self._lock:
            members = list(self.groups.get(group, ()))
        for channel in members:
            try:
                await self.send(channel, message)
            except ChannelFull:
                continue

    def _clean_expired(self) -> None:
        """Nothing: members leave by `group_discard`, and a queue holds at most its capacity."""

    def _put(self, channel: str, message: dict[str, Any]) -> None:
        queue = self.channels.setdefault(channel, asyncio.Queue(maxsize=self.get_capacity(channel)))
        if not queue.full():
            queue.put_nowait((time.time() + self.expiry, message))

    def _forget(self, channel: str) -> None:
        with self._lock:
            self._owners.pop(channel, None)
            self.channels.pop(channel, None)
            for members in self.groups.values():
                members.pop(channel, None)
