"""Whoever sends waits for a client that is slow, and cuts off one that takes nothing."""

import asyncio
from functools import partial

import pytest

from project import backpressure
from project.backpressure import Backpressure
from tests.services.compaction_scenes import PATIENCE_S


class Transport:
    """A connection whose client takes what the test says."""

    def __init__(self) -> None:
        self.producerPaused = False
        self.disconnected = False
        self.offset = 0
        self.dataBuffer = b""

    def abortConnection(self) -> None:
        self.disconnected = True


class Connection:
    def __init__(self) -> None:
        self.transport = Transport()
        self.sent: list[str] = []


@pytest.fixture
def connection():
    return Connection()


async def server(connection, message):
    connection.sent.append(message["type"])


def sends(connection, *types: str) -> "asyncio.Task[None]":
    """An application that sends one message after the other."""

    async def application(scope, receive, send):
        for kind in types:
            await send({"type": kind})

    return asyncio.create_task(Backpressure(application)({}, None, partial(server, connection)))


async def test_where_there_is_room_nothing_waits(connection):
    await asyncio.wait_for(sends(connection, "http.response.start", "http.response.body", "websocket.send"), PATIENCE_S)
    assert connection.sent == ["http.response.start", "http.response.body", "websocket.send"]


@pytest.mark.parametrize("kind", ["http.response.body", "websocket.send"])
async def test_the_next_message_waits_until_the_client_took_the_last_ones(connection, kind, monkeypatch):
    monkeypatch.setattr(backpressure, "LOOK_S", 0.001)
    connection.transport.producerPaused = True
    sending = sends(connection, kind, kind)
    await asyncio.sleep(0.05)
    assert connection.sent == [kind]
    connection.transport.producerPaused = False
    await asyncio.wait_for(sending, PATIENCE_S)
    assert connection.sent == [kind, kind]


@pytest.mark.parametrize("looks", [0, 50])
async def test_a_client_that_takes_a_little_is_waited_for_and_one_that_takes_nothing_is_cut_off(connection, monkeypatch, looks):
    """By a clock of the test's own: each look takes a second, and the client takes something in so many of them."""
    clock = iter(range(10_000))

    def now():
        second = next(clock)
        connection.transport.offset = min(second, looks)
        return second

    monkeypatch.setattr(backpressure, "_now", now)
    monkeypatch.setattr(backpressure, "LOOK_S", 0)
    connection.transport.producerPaused = True
    await asyncio.wait_for(sends(connection, "websocket.send"), PATIENCE_S)
    assert connection.transport.disconnected
    assert looks + backpressure.STALLED_S <= next(clock) <= looks + backpressure.STALLED_S + 5


async def test_a_server_of_another_kind_is_not_waited_for():
    sent = []

    async def send(message):
        sent.append(message)

    async def application(scope, receive, send):
        await send({"type": "http.response.body"})

    await asyncio.wait_for(Backpressure(application)({}, None, send), PATIENCE_S)
    assert len(sent) == 1
