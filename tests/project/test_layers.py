"""The embedded channel layer: messages from any thread wake their receiver at once."""

import asyncio
import contextlib
import threading

from asgiref.sync import async_to_sync

from project.layers import LoopSafeInMemoryChannelLayer


def send_from_a_thread(layer, group, message):
    thread = threading.Thread(target=lambda: async_to_sync(layer.group_send)(group, message))
    thread.start()
    return thread


async def test_a_message_sent_from_another_thread_wakes_a_waiting_receiver():
    layer = LoopSafeInMemoryChannelLayer()
    channel = await layer.new_channel()
    await layer.group_add("sessions", channel)
    waiting = asyncio.create_task(layer.receive(channel))
    await asyncio.sleep(0.05)
    send_from_a_thread(layer, "sessions", {"type": "poke", "seq": 1})
    # Nothing else runs on this loop, and no time-out wakes it: an unwoken receiver would wait for ever.
    assert await waiting == {"type": "poke", "seq": 1}


async def test_messages_keep_their_order_and_reach_every_member():
    layer = LoopSafeInMemoryChannelLayer()
    channels = [await layer.new_channel() for _ in range(3)]
    for channel in channels:
        await layer.group_add("sessions", channel)
    for seq in range(20):
        await layer.group_send("sessions", {"type": "poke", "seq": seq})
    for channel in channels:
        assert [(await layer.receive(channel))["seq"] for _ in range(20)] == list(range(20))


async def test_a_member_that_left_receives_nothing():
    layer = LoopSafeInMemoryChannelLayer()
    channel = await layer.new_channel()
    await layer.group_add("sessions", channel)
    await layer.group_discard("sessions", channel)
    await layer.group_send("sessions", {"type": "poke"})
    assert channel not in layer.channels


def test_a_receiver_whose_loop_is_gone_does_not_hold_up_the_sender():
    layer = LoopSafeInMemoryChannelLayer()

    async def wait_and_leave():
        await layer.group_add("sessions", "specific.gone")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(layer.receive("specific.gone"), 0.05)

    asyncio.run(wait_and_leave())
    async_to_sync(layer.group_send)("sessions", {"type": "poke"})
    assert "specific.gone" not in layer.groups["sessions"]
