"""A runner on a local port that answers by a script, over a real connection.

    with RunnerServer(reply(204)) as server:
        …something with `server.url`…
        assert server.compacts == [b'{"type":"compact"}']

Answers of the script are given in order to posted events, whoever posts; the last one stays. `GET /health` is answered by `health`.
"""

import json
import socket
import struct
import threading
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, Self

from tests.fakes.served import Listening, Served
from tests.services.compaction_scenes import PATIENCE_S


@dataclass
class Reply:
    """One answer. `hold`: it comes only when that is set. `breaks`: the connection ends without it, or in the middle of its body."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    hold: threading.Event | None = None
    breaks: bool = False
    drips: bool = False  # a byte of its head from time to time, without end

    asked: threading.Event = field(default_factory=threading.Event)


def reply(status: int = 200, told: Any = None, **options: Any) -> Reply:
    """An answer with a body of JSON."""
    return Reply(status=status, body=b"" if told is None else json.dumps(told).encode(), **options)


@dataclass(frozen=True)
class Posted:
    """What a runner was sent."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def told(self) -> Any:
        return json.loads(self.body)


class RunnerServer(Served):
    """A runner. Closing it ends what hangs."""

    def __init__(self, *script: Reply) -> None:
        super().__init__(_Handler)
        self.posted: list[Posted] = []
        self.health: Reply = reply(200, {"status": "ok"})
        self._script = deque(script or (Reply(204),))

    @property
    def compacts(self) -> list[bytes]:
        """The bodies of the compactions that it was asked for."""
        with self.lock:
            return [posted.body for posted in self.posted if posted.told.get("type") == "compact"]

    def script(self, *answers: Reply) -> Self:
        """What it answers from now on."""
        with self.lock:
            self._script = deque(answers)
        return self

    def take(self, posted: Posted) -> Reply:
        with self.lock:
            self.posted.append(posted)
            return self._script.popleft() if len(self._script) > 1 else self._script[0]


def closed_port() -> int:
    """A port of this machine on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Listening[RunnerServer]

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def do_GET(self) -> None:
        self._give(self.server.owner.health)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._give(self.server.owner.take(Posted(self.path, dict(self.headers), body)))

    def _give(self, answer: Reply) -> None:
        answer.asked.set()
        closing = self.server.owner.closing
        if answer.hold is not None:
            waited = 0.0
            while not answer.hold.wait(0.02) and not closing.is_set() and waited < PATIENCE_S:
                waited += 0.02
        if answer.drips:
            self._drip(closing)
        if (answer.breaks and not answer.body) or closing.is_set():
            # At once and without a last word, as when a process is killed.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body) * (2 if answer.breaks else 1)))
        self.end_headers()
        self.wfile.write(answer.body)
        self.close_connection = self.close_connection or answer.breaks

    def _drip(self, closing: threading.Event) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while not closing.wait(0.02):
            self.wfile.write(b"X-Still: here\r\n")
