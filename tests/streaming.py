"""Clients of the API's streams: plain sockets, so that a test decides when they read and when they leave."""

import asyncio
import base64
import json
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.services.compaction_scenes import PATIENCE_S


@dataclass(frozen=True)
class Told:
    """One server-sent event. `seq` is its id; `data` is parsed, except `[DONE]`."""

    name: str
    seq: int | None
    data: Any


class Stream:
    """An open `GET …/stream`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.status = 0
        self.headers: dict[str, str] = {}

    async def begin(self) -> None:
        head = (await asyncio.wait_for(self._reader.readuntil(b"\r\n\r\n"), PATIENCE_S)).decode().split("\r\n")
        self.status = int(head[0].split()[1])
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}

    async def body(self) -> bytes:
        return await asyncio.wait_for(self._reader.read(), PATIENCE_S)

    async def next(self) -> Told | None:
        """The next event; None at the end, whatever stands before it unfinished."""
        try:
            block = (await asyncio.wait_for(self._reader.readuntil(b"\n\n"), PATIENCE_S)).decode()
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line)
        if "data" not in fields:
            return await self.next()
        data = fields["data"] if fields["data"] == "[DONE]" else json.loads(fields["data"])
        return Told(fields.get("event", "message"), int(fields["id"]) if "id" in fields else None, data)

    async def until(self, name: str) -> list[Told]:
        """All up to the first of this name, which is the last of them."""
        told = [await self.expect()]
        while told[-1].name != name:
            told.append(await self.expect())
        return told

    async def expect(self) -> Told:
        told = await self.next()
        assert told is not None, "the stream ended"
        return told

    async def stored(self, count: int) -> list[Told]:
        """The next so many events that have a place."""
        told: list[Told] = []
        while len(told) < count:
            one = await self.expect()
            told += [one] if one.seq is not None else []
        return told

    async def rest(self) -> list[Told]:
        told = []
        while (one := await self.next()) is not None:
            told.append(one)
        return told


@asynccontextmanager
async def stream(url: str, session_id: object, *, buffer: int = 0, query: str = "", **headers: str) -> AsyncIterator[Stream]:
    """A stream of a session. `buffer`: bytes that the client's side takes without being read."""
    place = urlsplit(url)
    sock = socket.socket()
    if buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, (place.hostname, place.port))
    reader, writer = await asyncio.open_connection(sock=sock, limit=1 << 20 if buffer else 1 << 22)
    sent = {"Host": place.netloc} | {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"GET /v1/sessions/{session_id}/stream{query} HTTP/1.0", *(f"{name}: {value}" for name, value in sent.items()), "", ""]
    writer.write("\r\n".join(lines).encode())
    opened = Stream(reader, writer)
    try:
        await opened.begin()
        yield opened
    finally:
        writer.transport.abort()


class Socket:
    """An open `WS …/ws`."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self.code = 0

    async def next(self) -> Any:
        """The next message; None when the socket is closed, and `code` says why."""
        head = await asyncio.wait_for(self._reader.readexactly(2), PATIENCE_S)
        length = head[1] & 0x7F
        if length >= 126:
            length = int.from_bytes(await self._reader.readexactly(2 if length == 126 else 8))
        body = await self._reader.readexactly(length)
        kind = head[0] & 0x0F
        if kind == 8:
            self.code = int.from_bytes(body[:2])
            return None
        return json.loads(body) if kind == 1 else await self.next()


@asynccontextmanager
async def web_socket(url: str, session_id: object, *, query: str = "", **headers: str) -> AsyncIterator[Socket]:
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port, limit=1 << 22)
    sent = {"Host": place.netloc} | {name.replace("_", "-"): value for name, value in headers.items()}
    sent |= {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    sent |= {"Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode()}
    lines = [f"GET /v1/sessions/{session_id}/ws{query} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items()), "", ""]
    writer.write("\r\n".join(lines).encode())
    try:
        answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_S)
        assert b" 101 " in answer.splitlines()[0], answer
        yield Socket(reader)
    finally:
        writer.transport.abort()
