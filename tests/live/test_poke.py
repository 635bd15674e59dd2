"""Notices: they leave by one thread, in order, and whoever writes neither waits for them nor fails with them."""

import asyncio
import os
import threading

import pytest
from channels.layers import BaseChannelLayer, channel_layers

from sessions_app.live import poke
from tests.services.compaction_scenes import PATIENCE_S


class Recorder(BaseChannelLayer):
    """A layer that keeps what it is sent; `gate` holds its first message back."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[str, int]] = []
        self.threads: set[int] = set()
        self.loops: set[asyncio.AbstractEventLoop] = set()
        self.gate = threading.Event()
        self.entered = threading.Event()
        self.broken = False

    async def group_send(self, group: str, message: dict[str, object]) -> None:
        self.entered.set()
        await asyncio.to_thread(self.gate.wait)
        if self.broken:
            raise ConnectionError
        self.threads.add(threading.get_ident())
        self.loops.add(asyncio.get_running_loop())
        self.sent.append((group, int(str(message["seq"]))))


@pytest.fixture
def layer(monkeypatch):
    monkeypatch.setattr(poke, "SEND_S", PATIENCE_S)
    recorder = Recorder()
    before = channel_layers.set("default", recorder)
    yield recorder
    recorder.gate.set()
    channel_layers.set("default", before)


@pytest.fixture
def sender(layer):
    sender = poke.Sender()
    yield sender
    layer.gate.set()
    assert sender.flush(PATIENCE_S)


def to_session(layer, session_id):
    return [seq for group, seq in layer.sent if group == f"session.{session_id}"]


def test_a_notice_reaches_the_group_of_its_session_and_that_of_the_list(sender, layer):
    layer.gate.set()
    sender.add("a", 7)
    assert sender.flush(PATIENCE_S)
    assert layer.sent == [("session.a", 7), ("sessions", 7)]


def test_notices_leave_in_order_from_one_thread_and_one_loop_whoever_sends_them(sender, layer):
    layer.gate.set()
    for seq in range(1, 31):
        writer = threading.Thread(target=sender.add, args=("a", seq))
        writer.start()
        writer.join()
    assert sender.flush(PATIENCE_S)
    seqs = to_session(layer, "a")
    assert seqs == sorted(seqs)
    assert seqs[-1] == 30
    assert (len(layer.threads), len(layer.loops)) == (1, 1)
    assert threading.get_ident() not in layer.threads


def test_a_transport_that_hangs_holds_up_nobody_and_the_newest_notice_stands_for_those_that_waited(sender, layer):
    sender.add("a", 1)
    assert layer.entered.wait(PATIENCE_S)
    for seq in (2, 4, 3):
        sender.add("a", seq)
    sender.add("b", 1)
    assert layer.sent == []
    layer.gate.set()
    assert sender.flush(PATIENCE_S)
    assert layer.sent == [("session.a", 1), ("sessions", 1), ("session.a", 4), ("sessions", 4), ("session.b", 1), ("sessions", 1)]


def test_a_broken_transport_costs_its_notice_and_not_the_next_one(sender, layer):
    layer.gate.set()
    layer.broken = True
    sender.add("a", 1)
    assert sender.flush(PATIENCE_S)
    layer.broken = False
    sender.add("a", 2)
    assert sender.flush(PATIENCE_S)
    assert to_session(layer, "a") == [2]


def test_the_end_of_a_process_does_not_wait_for_a_transport_that_hangs(sender, layer):
    sender.add("a", 1)
    assert layer.entered.wait(PATIENCE_S)
    assert not sender.flush(0.05)


async def test_a_notice_may_be_sent_where_a_loop_runs(layer):
    layer.gate.set()
    poke.poke_session("a", 3)
    assert await asyncio.to_thread(poke._sender.flush, PATIENCE_S)
    assert to_session(layer, "a") == [3]


def test_a_forked_worker_sends_by_a_thread_of_its_own(layer):
    layer.gate.set()
    poke.poke_session("a", 1)
    assert poke._sender.flush(PATIENCE_S)
    child = os.fork()
    if not child:
        poke.poke_session("a", 2)
        arrived = poke._sender.flush(PATIENCE_S) and to_session(layer, "a") == [1, 2]
        os._exit(0 if arrived else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
