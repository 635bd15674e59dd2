"""One reader per process and followed thing: it reads after its cursor once, renders once, and hands out the same text."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import Context
from functools import partial
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

import structlog
from channels.db import database_sync_to_async
from channels.layers import get_channel_layer

from sessions_app.live.fragments import Frame, list_frame, session_frame
from sessions_app.live.groups import SESSIONS, session_group

logger = structlog.get_logger(__name__)

LOOK_AGAIN_S = 15
"""A notice may get lost: so long after the last look, the log is read without one."""

PAUSE_AFTER_FAILURE_S = 1
GAP_S = 0.1
"""A page of a session is told at most ten times a second."""

LIST_GAP_S = 0.25
"""A list at most four times: one message of it is many rows."""

AT_ONCE = 2
"""Of these, so many may follow each other without a gap: what somebody asked for, and that it has started."""

GAP_EACH_S = 0.00025
"""For each follower, what passes at least before the next message: where many follow, writing to all of them takes longer than the gap."""

SHARED_S = 1.0
"""Of followers that come one after the other from the same cursor, so long only the first is rendered for."""

QUEUE_MESSAGES = 256  # more than the rows that one look at the list may bring
M = TypeVar("M")
Render = Callable[[int], Frame[M]]

# Rendering has threads of its own, so that a burst of notices does not keep pages waiting.
_renderers = ThreadPoolExecutor(max_workers=2, thread_name_prefix="live")


class Follower(Generic[M]):
    """One socket's end of a feed: messages in order. A follower that does not keep up is dropped, not waited for."""

    def __init__(self, capacity: int | None = None) -> None:
        self._messages: asyncio.Queue[M | None] = asyncio.Queue(capacity or QUEUE_MESSAGES)
        self.is_too_slow = False

    def offer(self, message: M) -> None:
        try:
            self._messages.put_nowait(message)
        except asyncio.QueueFull:
            self.drop()

    def drop(self) -> None:
        """Ends it: what it has not taken is thrown away, for its browser will ask again from its own cursor."""
        self.is_too_slow = True
        while not self._messages.empty():
            self._messages.get_nowait()
        self._messages.put_nowait(None)

    async def next_message(self) -> M | None:
        """The next message; None when the follower was dropped."""
        return await self._messages.get()


class Feed(Generic[M]):
    """The reader of one group, alive while somebody follows it.

    `counts_notices`: the cursor is the sequence that notices name, so that one which says nothing new costs no look.
    """

    def __init__(self, group: str, render: Render[M], gap_s: float = 0.0, *, counts_notices: bool = False) -> None:
        self.users = 0
        self._group = group
        self._render = database_sync_to_async(render, thread_sensitive=False, executor=_renderers)
        self._gap_s = gap_s
        self._counts_notices = counts_notices
        self._paid_until = 0.0  # loop time; each message takes a gap from it on
        self._cursor = 0
        self._welcome: tuple[int, Frame[M], float] | None = None  # (cursor it was made for, frame, until when it may be given)
        self._followers: set[Follower[M]] = set()
        # Held over each look: messages reach a queue in the order in which the log was read.
        self._looking = asyncio.Lock()
        self._reader: asyncio.Task[None] | None = None
        self._layer: Any = get_channel_layer()  # the stubs know of no groups
        self._channel = ""

    async def join(self, follower: Follower[M], after: int) -> None:
        """Brings a follower from `after` up to now, and feeds it from then on."""
        async with self._looking:
            if self._reader is None:
                self._channel = await self._layer.new_channel("hub")
                await self._layer.group_add(self._group, self._channel)
                # In a context of its own: it outlives the request of whoever came first.
                self._reader = asyncio.create_task(self._read(), context=Context())
            frame = await self._frame_for_one_more(after)
            if not self._followers:
                self._cursor = frame.cursor
                self._begin(frame)
            for message in self._welcoming(frame):
                follower.offer(message)
            self._followers.add(follower)

    async def _frame_for_one_more(self, after: int) -> Frame[M]:
        """When a server starts anew all its pages come at once, and most of them know the same."""
        now = asyncio.get_running_loop().time()
        if self._welcome is not None and self._followers:
            made_for, frame, until = self._welcome
            # Where the feed went on meanwhile, what lies between would be told to nobody who got this.
            if made_for == after and frame.cursor == self._cursor and now < until:
                return frame
        frame = await self._render(after)
        self._welcome = (after, frame, now + SHARED_S)
        return frame

    def _begin(self, frame: Frame[M]) -> None:
        """The first follower gets this frame: the feed goes on from it."""

    def _welcoming(self, frame: Frame[M]) -> Sequence[M]:
        """What one more follower gets of a frame that was read for it."""
        return frame.messages

    def _telling(self, frame: Frame[M]) -> Sequence[M]:
        """What all followers get of a frame that was read for the feed."""
        return frame.messages

    def leave(self, follower: Follower[M]) -> None:
        self._followers.discard(follower)

    async def close(self) -> None:
        if self._reader is None:
            return
        self._reader.cancel()
        with suppress(asyncio.CancelledError):
            await self._reader
        await self._layer.group_discard(self._group, self._channel)

    async def _read(self) -> None:
        while True:
            try:
                await self._wait_for_notice()
                await self._wait_for_turn()
                await self._look()
            except Exception as error:  # noqa: BLE001  the layer or the database: the next look may succeed
                logger.warning("feed_failed", group=self._group, error=type(error).__name__)
                await asyncio.sleep(PAUSE_AFTER_FAILURE_S)

    async def _wait_for_notice(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_AGAIN_S):
                while self._says_nothing_new(await self._layer.receive(self._channel)):
                    pass

    def _says_nothing_new(self, notice: dict[str, Any]) -> bool:
        """While a look waits for its turn, notices come of what it will have seen. Those without a number tell of what has no event."""
        return self._counts_notices and 0 < notice["seq"] <= self._cursor

    async def _wait_for_turn(self) -> None:
        """So that no second holds more than it may; after a quiet time the first looks wait for nothing, and a late one delays none."""
        await asyncio.sleep(self._paid_until - (AT_ONCE - 1) * self._gap() - asyncio.get_running_loop().time())

    def _gap(self) -> float:
        return max(self._gap_s, GAP_EACH_S * len(self._followers)) if self._gap_s else 0.0

    async def _look(self) -> None:
        async with self._looking:
            began = asyncio.get_running_loop().time()
            frame = await self._render(self._cursor)
            self._cursor = frame.cursor
            messages = self._telling(frame)
            if messages:
                self._paid_until = max(self._paid_until, began) + self._gap()
            for follower in list(self._followers):
                for message in messages:
                    follower.offer(message)
                if follower.is_too_slow:
                    self._followers.discard(follower)


class Hub:
    """The feeds of one event loop."""

    def __init__(self) -> None:
        self._feeds: dict[str, Feed[Any]] = {}

    def follow_session(self, session_id: uuid.UUID, after: int) -> AbstractAsyncContextManager[Follower[str]]:
        """Follows the page of a session from sequence `after` of its stream on, at most ten times a second."""
        return self.follow(session_group(session_id), partial(session_frame, session_id), after, GAP_S, counts_notices=True)

    def follow_list(self, after: int) -> AbstractAsyncContextManager[Follower[str]]:
        """Follows the rows of all sessions from list cursor `after` on, at most four times a second."""
        return self.follow(SESSIONS, list_frame, after, LIST_GAP_S)

    def follow(
        self, group: str, render: Render[M], after: int, gap_s: float = 0.0, *, counts_notices: bool = False
    ) -> AbstractAsyncContextManager[Follower[M]]:
        """Follows what `render` makes of the log, upon each notice to `group`, in the long run every `gap_s` seconds at most."""
        return self.join(group, lambda: Feed(group, render, gap_s, counts_notices=counts_notices), after)

    @asynccontextmanager
    async def join(self, name: str, make: Callable[[], Feed[M]], after: int) -> AsyncIterator[Follower[M]]:
        """Follows the feed of a name, which `make` makes where nobody follows it yet."""
        feed = self._feeds.get(name) or self._feeds.setdefault(name, make())
        feed.users += 1  # counted before the first wait, so that nobody closes the feed meanwhile
        follower: Follower[M] = Follower()
        try:
            await feed.join(follower, after)
            yield follower
        finally:
            feed.leave(follower)
            feed.users -= 1
            if not feed.users:
                del self._feeds[name]
                await feed.close()


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def current_hub() -> Hub:
    """The hub of the running loop: a process that serves pages has one."""
    return _hubs.setdefault(asyncio.get_running_loop(), Hub())
