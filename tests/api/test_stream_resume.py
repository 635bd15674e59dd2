"""Streams under trouble: clients that leave at any moment, clients that do not read, and many at a time."""

import asyncio
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from functools import partial

import pytest
from asgiref.sync import sync_to_async
from django.db import connection

from project import backpressure
from sessions_app.events import log
from sessions_app.events.actors import system_actor
from sessions_app.events.types import EventType
from sessions_app.live import streams
from sessions_app.live.stream_messages import event_frame
from sessions_app.selectors import followed
from tests.api.conftest import token_of
from tests.stored import store_session
from tests.streaming import stream, web_socket

pytestmark = pytest.mark.django_db(transaction=True)
in_database = sync_to_async
WRITERS, EACH = 3, 40


@pytest.fixture
def session():
    return store_session()


@pytest.fixture
def bearer(operator):
    return {"Authorization": f"Bearer {token_of(operator, 'read')}"}


def say(session, **facts):
    return log.append(log.session_stream(session.pk), EventType.SESSION_VIEWED, actor=system_actor("test"), **facts)


@contextmanager
def writing(session) -> Iterator[None]:
    """Several at a time write to the session; all have ended at the end."""

    def write() -> None:
        try:
            for _ in range(EACH):
                say(session)
        finally:
            connection.close()

    with ThreadPoolExecutor(WRITERS) as pool:
        written = [pool.submit(write) for _ in range(WRITERS)]
        yield
    for one in written:
        one.result()


async def by_sse(live_url, session, bearer, last: int, stays: int) -> list[int]:
    """Some events behind `last`, as somebody gets them who leaves in the middle of one."""
    async with stream(live_url, session.pk, Last_Event_ID=str(last), **bearer) as opened:
        return [told.seq for told in await opened.stored(stays) if told.seq is not None]


async def by_socket(live_url, session, bearer, last: int, stays: int) -> list[int]:
    got: list[int] = []
    async with web_socket(live_url, session.pk, query=f"?after_seq={last}", **bearer) as opened:
        while len(got) < stays:
            message = await opened.next()
            got += [message["sequence_number"]] if "event" in message else []
    return got


@pytest.mark.parametrize("way", [by_sse, by_socket])
async def test_whoever_leaves_and_comes_again_has_every_event_once_and_in_order(live_url, session, bearer, monkeypatch, way):
    """Whoever writes meanwhile, however often and wherever somebody leaves."""
    monkeypatch.setattr(streams, "PAGE_EVENTS", 7)
    chance = random.Random(7)

    async def listen() -> list[int]:
        got: list[int] = []
        while len(got) < WRITERS * EACH:
            got += await way(live_url, session, bearer, got[-1] if got else 0, min(chance.randint(1, 12), WRITERS * EACH - len(got)))
        return got

    listeners = [asyncio.create_task(listen()) for _ in range(4)]
    with writing(session):
        heard = await asyncio.gather(*listeners)
    assert await in_database(followed.session_cursor)(session.pk) == WRITERS * EACH
    assert all(got == list(range(1, WRITERS * EACH + 1)) for got in heard)


async def test_whoever_does_not_read_is_cut_off_holds_up_nobody_and_catches_up(live_url, session, bearer, monkeypatch):
    monkeypatch.setattr(backpressure, "STALLED_S", 0.5)
    count, much = 30, partial(say, session, reason="x" * 500_000)  # more than a connection holds that nobody reads
    async with stream(live_url, session.pk, buffer=4_096, query="?after_seq=0", **bearer) as sleeper:
        async with stream(live_url, session.pk, query="?after_seq=0", **bearer) as reader:
            for seq in range(1, count + 1):
                assert (await in_database(much)()).seq == seq
                assert [told.seq for told in await reader.stored(1)] == [seq]
        await asyncio.sleep(2 * backpressure.STALLED_S)
        slept = await sleeper.rest()
    assert not [told for told in slept if told.data == "[DONE]"]
    had = [told.seq for told in slept if told.seq is not None]
    assert len(had) < count
    async with stream(live_url, session.pk, Last_Event_ID=str(had[-1] if had else 0), **bearer) as again:
        caught_up = [told.seq for told in await again.stored(count - len(had))]
    assert had + caught_up == list(range(1, count + 1))


async def test_a_hundred_streams_share_one_reader_and_keep_no_threads(live_url, session, bearer, monkeypatch):
    reads: list[int] = []

    def counted(session_id, after):
        reads.append(after)
        return event_frame(session_id, after)

    monkeypatch.setattr(streams, "event_frame", counted)
    before = threading.active_count()
    async with AsyncExitStack() as opened:
        listening = []
        for _ in range(100):
            listener = await opened.enter_async_context(stream(live_url, session.pk, query="?after_seq=0", **bearer))
            await listener.expect()
            listening.append(listener)
        await in_database(say)(session)
        for listener in listening:
            assert (await listener.expect()).seq == 1  # from now on all follow
        assert threading.active_count() < before + 50
        reads.clear()
        await in_database(say)(session)
        for listener in listening:
            assert (await listener.expect()).seq == 2
        assert len(reads) <= 2  # a look without a notice may come in between
