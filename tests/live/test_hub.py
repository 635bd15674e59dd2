"""The hub: it reads once for all followers, loses nothing between page and socket, and waits for nobody."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest
from channels.layers import get_channel_layer

from sessions_app.live.fragments import Frame
from sessions_app.live.hub import QUEUE_MESSAGES, Follower, Hub
from tests.services.compaction_scenes import PATIENCE_S

pytestmark = pytest.mark.django_db(transaction=True)


class Log:
    """A log of numbered messages, and how often it was read."""

    def __init__(self) -> None:
        self.last = 0
        self.reads = 0

    def after(self, cursor: int) -> Frame:
        self.reads += 1
        return Frame(tuple(f"message {seq}" for seq in range(cursor + 1, self.last + 1)), self.last)

    async def add(self, count: int = 1) -> None:
        self.last += count
        await get_channel_layer().group_send("log", {"type": "poke", "session": "", "seq": self.last})


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.005)


async def waits(log: Log) -> bool:
    """Whether one message more is not read at once."""
    reads = log.reads
    await log.add()
    await asyncio.sleep(0.05)
    return log.reads == reads


async def take(follower: Follower, count: int) -> list[str]:
    return [await asyncio.wait_for(follower.next_message(), PATIENCE_S) for _ in range(count)]


async def test_every_follower_gets_every_message_in_order_and_the_log_is_read_once_for_all():
    hub, log = Hub(), Log()
    async with hub.follow("log", log.after, 0) as one, hub.follow("log", log.after, 0) as other:
        reads = log.reads
        await log.add(3)
        assert await take(one, 3) == await take(other, 3) == ["message 1", "message 2", "message 3"]
        assert log.reads == reads + 1


async def test_a_follower_that_comes_late_is_caught_up_from_its_cursor():
    hub, log = Hub(), Log()
    log.last = 5
    async with hub.follow("log", log.after, 2) as follower:
        assert await take(follower, 3) == ["message 3", "message 4", "message 5"]
        await log.add()
        assert await take(follower, 1) == ["message 6"]


async def test_followers_that_come_at_once_from_one_cursor_are_rendered_for_once_and_miss_nothing(monkeypatch):
    monkeypatch.setattr("sessions_app.live.hub.SHARED_S", 3_600)
    hub, log = Hub(), Log()
    log.last = 2
    async with hub.follow("log", log.after, 0) as first, hub.follow("log", log.after, 0) as second:
        reads = log.reads
        async with hub.follow("log", log.after, 0) as third:
            assert log.reads == reads
            assert await take(third, 2) == ["message 1", "message 2"]
            await log.add()
            for follower in (first, second):
                assert await take(follower, 3) == ["message 1", "message 2", "message 3"]
            assert await take(third, 1) == ["message 3"]
            async with hub.follow("log", log.after, 0) as late:
                assert await take(late, 3) == ["message 1", "message 2", "message 3"]


async def test_a_message_whose_notice_got_lost_is_found_without_it(monkeypatch):
    monkeypatch.setattr("sessions_app.live.hub.LOOK_AGAIN_S", 0.05)
    hub, log = Hub(), Log()
    async with hub.follow("log", log.after, 0) as follower:
        log.last = 1
        assert await take(follower, 1) == ["message 1"]


async def test_a_follower_that_does_not_keep_up_is_dropped_and_holds_up_nobody():
    hub, log = Hub(), Log()
    async with hub.follow("log", log.after, 0) as sleeper, hub.follow("log", log.after, 0) as reader:
        await log.add(QUEUE_MESSAGES)
        await take(reader, QUEUE_MESSAGES)
        await log.add()
        assert await take(reader, 1) == [f"message {QUEUE_MESSAGES + 1}"]
        assert (sleeper.is_too_slow, reader.is_too_slow) == (True, False)


async def test_a_failed_read_does_not_end_the_feed(monkeypatch):
    monkeypatch.setattr("sessions_app.live.hub.PAUSE_AFTER_FAILURE_S", 0.05)
    monkeypatch.setattr("sessions_app.live.hub.LOOK_AGAIN_S", 0.05)
    hub, log = Hub(), Log()
    broken = [False]

    def after(cursor: int) -> Frame:
        if broken.pop() if broken else False:
            raise ConnectionError
        return log.after(cursor)

    async with hub.follow("log", after, 0) as follower:
        broken.append(True)
        await log.add()
        assert await take(follower, 1) == ["message 1"]


async def test_the_last_follower_takes_the_feed_with_it():
    hub, log = Hub(), Log()
    async with hub.follow("log", log.after, 0):
        async with hub.follow("log", log.after, 0):
            pass
        await log.add()
    reads = log.reads
    await log.add()
    await asyncio.sleep(0.05)
    assert log.reads == reads
    assert get_channel_layer().groups == {}


async def test_after_a_quiet_time_two_messages_wait_for_nothing_and_the_third_does():
    hub, log = Hub(), Log()
    async with hub.follow("log", log.after, 0, gap_s=30) as follower:
        for seq in (1, 2):
            await log.add()
            assert await take(follower, 1) == [f"message {seq}"]
        assert await waits(log)


async def test_a_notice_of_what_was_seen_already_costs_no_look():
    hub, log = Hub(), Log()
    async with hub.follow("log", log.after, 0, counts_notices=True) as follower:
        await log.add(3)
        assert await take(follower, 3)
        reads = log.reads
        await get_channel_layer().group_send("log", {"type": "poke", "session": "", "seq": 2})
        await log.add()
        assert await take(follower, 1) == ["message 4"]
        assert log.reads == reads + 1
        await get_channel_layer().group_send("log", {"type": "poke", "session": "", "seq": 0})  # of what has no number
        await until(lambda: log.reads == reads + 2)


async def test_the_more_follow_the_longer_is_the_gap(monkeypatch):
    monkeypatch.setattr("sessions_app.live.hub.GAP_EACH_S", 10)
    hub, log = Hub(), Log()
    async with hub.follow("log", log.after, 0, gap_s=0.001) as one, AsyncExitStack() as more:
        for _ in range(3):
            await more.enter_async_context(hub.follow("log", log.after, 0, gap_s=0.001))
        for seq in (1, 2):
            await log.add()
            assert await take(one, 1) == [f"message {seq}"]
        assert await waits(log)


async def test_what_has_to_wait_comes_when_the_gap_is_over():
    hub, log = Hub(), Log()
    async with hub.follow("log", log.after, 0, gap_s=0.05) as follower:
        for _ in range(9):
            await log.add()
        assert await take(follower, 9) == [f"message {seq}" for seq in range(1, 10)]


async def test_a_notice_of_nothing_new_does_not_keep_the_next_one_waiting():
    hub, log = Hub(), Log()
    async with hub.follow("log", log.after, 0, gap_s=30) as follower:
        for _ in range(4):
            await log.add(0)
        await log.add()
        assert await take(follower, 1) == ["message 1"]
