"""Measures what many open pages of one session get when it changes: how late, and how many messages a second.

    python -m tests.bench.bench_fan [--quick]

R3: 100 sockets on a session whose log grows ten times a second, and 1,000 sockets at twice a second. The clock of each event
runs from its commit until a socket has the first message that holds it; an event that waits for a message with later ones
counts with its wait.
"""

import asyncio
import base64
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.bench.pages import signed_in_cookie
from tests.bench.product import Product, running
from tests.bench.rows import ROOT, Options, Row, quantile, run_alone

COMMAND = "python -m tests.bench.bench_fan"
WRITER = """
import sys, time
from sessions_app.events import log
from sessions_app.events.actors import system_actor
from sessions_app.events.types import EventType
from sessions_app.models import Session
session, count, gap = str(Session.objects.listed().first().pk), {count}, {gap}
print("session", session, flush=True)
input()
begun = time.monotonic()
for number in range(count):
    time.sleep(max(0.0, begun + number * gap - time.monotonic()))
    event = log.append(log.session_stream(session), EventType.SESSION_VIEWED, actor=system_actor("bench"))
    print("wrote", event.seq, time.time(), flush=True)
"""
AT_ONCE = 25
"""So many sockets are opened at a time: how fast a server takes them is another question."""

OPEN_S = 300
LAST_S = 30
SEQ = re.compile(rb'id="live-cursor"[^>]*data-seq="(\d+)"')


@dataclass
class Heard:
    """What all sockets got: (sequence before, sequence, time of arrival) of each message."""

    arrivals: list[tuple[int, int, float]] = field(default_factory=list)


async def _frames(reader: asyncio.StreamReader) -> bytes:
    """The next message of a websocket. Servers do not mask."""
    head = await reader.readexactly(2)
    length = head[1] & 0x7F
    if length >= 126:
        length = int.from_bytes(await reader.readexactly(2 if length == 126 else 8))
    return await reader.readexactly(length)


async def _follow(product: Product, session: str, cookie: str, heard: Heard, turns: asyncio.Semaphore, opened: asyncio.Semaphore) -> None:
    await turns.acquire()
    host, port = product.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 20)
    key = base64.b64encode(os.urandom(16)).decode()
    request = [f"GET /ws/sessions/{session}/?after=0 HTTP/1.1", f"Host: {host}:{port}", f"Origin: {product.url}", f"Cookie: {cookie}"]
    request += ["Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", "", ""]
    writer.write("\r\n".join(request).encode())
    answer = await reader.readuntil(b"\r\n\r\n")
    assert b" 101 " in answer, answer
    last = 0
    try:
        while True:
            message = await _frames(reader)
            now = time.time()
            if (said := SEQ.search(message)) is None:
                continue
            seq = int(said.group(1))
            if last:
                heard.arrivals.append((last, seq, now))
            else:
                turns.release()
                opened.release()
            last = max(last, seq)
    finally:
        writer.close()


async def fan_out(product: Product, cookie: str, clients: int, per_second: float, count: int) -> tuple[list[float], float]:
    """(milliseconds from each event's commit to each socket; messages a second)."""
    gap = 1 / per_second
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "manage.py", "shell", "-v0", "-c", WRITER.format(count=count, gap=gap),
        cwd=ROOT, env=product.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert writer.stdout is not None
    assert writer.stdin is not None
    session = (await writer.stdout.readline()).decode().split()[1]
    heard, turns, opened = Heard(), asyncio.Semaphore(AT_ONCE), asyncio.Semaphore(0)
    tasks = [asyncio.create_task(_follow(product, session, cookie, heard, turns, opened)) for _ in range(clients)]
    await _until_all_are_open(tasks, opened)
    await asyncio.sleep(1)
    writer.stdin.write(b"\n")
    wrote: dict[int, float] = {}
    begun = time.monotonic()
    while line := (await writer.stdout.readline()).decode():
        if line.startswith("wrote"):
            _, seq, at = line.split()
            wrote[int(seq)] = float(at)
    lasted = time.monotonic() - begun
    last = max(wrote)
    until = time.monotonic() + LAST_S
    while (told := sum(before < last <= seq for before, seq, _ in heard.arrivals)) < clients and time.monotonic() < until:
        await asyncio.sleep(0.2)
    ended = [task for task in tasks if task.done()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert told >= clients, f"{clients - told} of {clients} sockets missed the last news; {len(ended)} were closed"
    late = [(at - wrote[event]) * 1_000 for before, seq, at in heard.arrivals for event in range(before + 1, seq + 1) if event in wrote]
    assert len(late) == clients * count, "a socket was not told of an event, or twice"
    return late, len(heard.arrivals) / lasted


async def _until_all_are_open(tasks: list[asyncio.Task[None]], opened: asyncio.Semaphore) -> None:
    """Raises what ended a socket before, where one ended."""

    async def all_of_them() -> None:
        for _ in tasks:
            await opened.acquire()

    waiting = asyncio.create_task(all_of_them())
    done, _ = await asyncio.wait({waiting, *tasks}, timeout=OPEN_S, return_when=asyncio.FIRST_COMPLETED)
    for task in done - {waiting}:
        await task
    if waiting not in done:
        raise TimeoutError(f"not all sockets were open after {OPEN_S} s")


def rows(options: Options) -> Iterator[Row]:
    seconds = 3 if options.is_quick else 10
    sets = (("100 x 10/s", 100, 10.0, 150), ("1,000 x 2/s", 200 if options.is_quick else 1_000, 2.0, 1_000))
    with running(options.folder / "fan") as product:
        cookie = signed_in_cookie(product)
        for name, clients, per_second, floor_ms in sets:
            late, rate = asyncio.run(fan_out(product, cookie, clients, per_second, int(seconds * per_second)))
            facts: dict[str, object] = {"p50_ms": round(quantile(late, 0.5)), "messages_per_s": round(rate), "clients": clients}
            yield Row(
                id=f"R3 {name}",
                what=f"{clients} open pages, {per_second:g} events/s: from the commit of an event until a page has it",
                value=round(quantile(late, 0.99)),
                unit="ms p99",
                floor=f"≤ {floor_ms} ms",
                is_met=quantile(late, 0.99) <= floor_ms,
                command=COMMAND,
                facts=facts,
            )


if __name__ == "__main__":
    run_alone(rows, __doc__)
