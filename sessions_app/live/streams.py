"""One follower's way through the events of a session: all behind its cursor, each once, and then what comes."""

import asyncio
import random
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, aclosing
from enum import Enum, auto
from functools import partial
from typing import Any, ParamSpec, TypeVar

from channels.db import database_sync_to_async

from sessions_app.live.fragments import Frame
from sessions_app.live.groups import session_group
from sessions_app.live.hub import GAP_S, Feed, Follower, current_hub
from sessions_app.live.stream_messages import Batch, EventFrame, delta, event_frame, events_batch
from sessions_app.selectors import followed
from sessions_app.selectors.streamed import AnswerSoFar

PAGE_EVENTS = 200
"""So many are read at a time by whoever is behind; the next ones when these are taken."""

BEAT_S = 15
RECHECK_S = 60
"""At the latest after so long the gate is asked again."""

P = ParamSpec("P")
R = TypeVar("R")

# Of their own: whoever is far behind keeps nobody's news waiting.
_readers = ThreadPoolExecutor(max_workers=2, thread_name_prefix="streams")


class Sign(Enum):
    """What a stream says that is no message."""

    BEAT = auto()
    DONE = auto()  # the normal end


class EventFeed(Feed[Batch]):
    """The reader of one session's events. It remembers what it told of an answer under way, so that each bit of it is told once."""

    def __init__(self, session_id: uuid.UUID) -> None:
        super().__init__(session_group(session_id), partial(event_frame, session_id), GAP_S, counts_notices=True)
        self._session_id = session_id
        self._answer: AnswerSoFar | None = None

    def _begin(self, frame: Frame[Batch]) -> None:
        self._answer = _answer_of(frame)

    def _welcoming(self, frame: Frame[Batch]) -> Sequence[Batch]:
        known, now = self._answer, _answer_of(frame)
        is_under_way = known is not None and now is not None and known.turn_id == now.turn_id
        return (*frame.messages, *self._bit(known if is_under_way else None, 0))  # as far as the others know it; the rest comes with theirs

    def _telling(self, frame: Frame[Batch]) -> Sequence[Batch]:
        before, now = self._answer, _answer_of(frame)
        self._answer = now
        goes_on = before is not None and now is not None and before.turn_id == now.turn_id and now.text.startswith(before.text)
        return (*frame.messages, *self._bit(now, len(before.text) if before and goes_on else 0))

    def _bit(self, answer: AnswerSoFar | None, offset: int) -> Sequence[Batch]:
        return (Batch((delta(self._session_id, answer, offset),)),) if answer and len(answer.text) > offset else ()


def _answer_of(frame: Frame[Batch]) -> AnswerSoFar | None:
    assert isinstance(frame, EventFrame)
    return frame.answer


class EventStream:
    """The events of a session behind `after`, page by page as they are taken, then live.

    `check` is called in a thread, at least every minute; what it raises ends the stream. `seq` is the last place that was told:
    whoever is dropped for not keeping up comes again with it.
    """

    def __init__(self, session_id: uuid.UUID, after: int, check: Callable[[], object], *, follows: bool = True) -> None:
        self.seq = after
        self._session_id = session_id
        self._check = _in_thread(check)
        self._follows = follows
        self._now = asyncio.get_running_loop().time
        self._beat_at = self._now() + BEAT_S
        self._recheck_at = self._now() + _until_recheck()

    def messages(self) -> AbstractAsyncContextManager[AsyncIterator[Batch | Sign]]:
        """Batches, and signs between them. It ends without `Sign.DONE` where there may be more."""
        return aclosing(self._messages())

    async def _messages(self) -> AsyncGenerator[Batch | Sign]:
        async with aclosing(self._behind()) as behind:
            async for batch in behind:
                yield batch
        if not self._follows:
            yield Sign.DONE
            return
        feed = f"events.{self._session_id}"
        joined = current_hub().join(feed, lambda: EventFeed(self._session_id), self.seq)
        async with joined as follower, aclosing(self._live(follower)) as live:
            async for said in live:
                yield said

    async def _behind(self) -> AsyncGenerator[Batch]:
        """What is stored already. Whoever takes it slowly holds up nobody: a page is read when it is wanted."""
        is_full = True
        while is_full:
            batch = await _in_thread(events_batch)(self._session_id, self.seq, PAGE_EVENTS)
            is_full = len(batch.messages) == PAGE_EVENTS
            if batch.messages:
                yield self._passed(batch)
            await self._recheck_if_due()

    async def _live(self, follower: Follower[Batch]) -> AsyncGenerator[Batch | Sign]:
        while True:
            try:
                async with asyncio.timeout_at(min(self._beat_at, self._recheck_at)):
                    batch = await follower.next_message()
            except TimeoutError:
                pass
            else:
                if batch is None:
                    return  # it did not keep up
                # What it was welcomed with may have been read after what the others get next.
                news = batch.after(self.seq)
                if news.messages:
                    yield self._passed(news)
            if self._now() >= self._beat_at:
                self._beat_at = self._now() + BEAT_S
                yield Sign.BEAT
            await self._recheck_if_due()

    def _passed(self, batch: Batch) -> Batch:
        if batch.last is not None:
            self.seq = batch.last
        return batch

    async def _recheck_if_due(self) -> None:
        if self._now() >= self._recheck_at:
            await self._check()
            self._recheck_at = self._now() + _until_recheck()


def _until_recheck() -> float:
    return RECHECK_S * random.uniform(0.5, 1.0)  # noqa: S311  many may have come at once


def _in_thread(call: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    return database_sync_to_async(call, thread_sensitive=False, executor=_readers)


async def place_to_begin(session_id: uuid.UUID, after: int | None) -> int:
    """Where a stream begins: now, or behind `after`. A place that is not reached yet must not hide what is still to come."""
    now = await _in_thread(followed.session_cursor)(session_id)
    return now if after is None else min(after, now)
