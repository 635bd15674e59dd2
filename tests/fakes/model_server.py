"""A model server on a local port that answers by a script: Anthropic's Messages, OpenAI's Responses and its chat
completions, streaming and not.

    with ModelServer() as server:
        server.script(refuse(529), say("A summary."))
        …a client with `server.url` (Anthropic's base) or `server.openai_url`…
        assert server.asked[1].texts[-1] == "Please"

Answers of the script are given in order, whoever asks; behind them, `reply` decides (a short text, if nobody says otherwise).
What counts tokens or lists models is answered beside the script. Everything that was asked is kept, in order.
"""

import contextlib
import gzip
import json
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from types import ModuleType
from typing import Any, Self

import zstandard

from tests.fakes import chat_wire, messages_wire, responses_wire
from tests.fakes.script import Answer, Asked, Fault, Stop, call, refuse, say
from tests.fakes.served import Listening, Served

__all__ = ["Answer", "Asked", "Fault", "ModelServer", "Stop", "call", "refuse", "say"]

_WIRES: dict[str, ModuleType] = {"/v1/messages": messages_wire, "/v1/responses": responses_wire, "/v1/chat/completions": chat_wire}
_MODELS = ("scripted",)


class ModelServer(Served):
    """A provider. Closing it ends what hangs."""

    def __init__(self, reply: Callable[[Asked], Answer] = lambda asked: say("Understood.")) -> None:
        super().__init__(_Handler)
        self.reply = reply
        self.asked: list[Asked] = []
        self._script: deque[Answer] = deque()

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def prompts(self) -> list[Asked]:
        """What was asked of the model itself: no counts, no lists."""
        with self.lock:
            return [asked for asked in self.asked if asked.protocol in {wire.PROTOCOL for wire in _WIRES.values()}]

    def script(self, *answers: Answer) -> Self:
        """Adds answers behind those that are still to be given."""
        with self.lock:
            self._script.extend(answers)
        return self

    def note(self, asked: Asked) -> None:
        with self.lock:
            self.asked.append(asked)

    def next_answer(self, asked: Asked) -> Answer:
        with self.lock:
            if self._script:
                return self._script.popleft()
        return self.reply(asked)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Listening[ModelServer]

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def do_HEAD(self) -> None:
        self._head(200, length=0)

    def do_GET(self) -> None:
        self.server.owner.note(Asked("models", self.path, dict(self.headers), {}))
        if self.path.partition("?")[0] == "/v1/models":
            data = [{"id": name, "object": "model", "type": "model", "display_name": name, "created": 1} for name in _MODELS]
            self._json(200, {"object": "list", "data": data, "models": [], "has_more": False})
        else:
            self._json(404, {"error": {"message": f"There is no {self.path} here.", "type": "not_found_error"}})

    def do_POST(self) -> None:
        path, raw = self.path.partition("?")[0], self._body()
        try:
            body = json.loads(raw)
        except ValueError:
            self._json(400, {"error": {"message": "The body is no JSON.", "type": "invalid_request_error"}})
            return
        if path == "/v1/messages/count_tokens":
            self.server.owner.note(Asked("count_tokens", path, dict(self.headers), body, raw=raw))
            self._json(200, {"input_tokens": len(raw) // 4})
        elif (wire := _WIRES.get(path)) is not None:
            self._answer(wire, body, raw)
        else:
            self._json(404, {"error": {"message": f"There is no {path} here.", "type": "not_found_error"}})

    def _answer(self, wire: ModuleType, body: dict[str, Any], raw: bytes) -> None:
        model = self.server.owner
        asked = Asked(
            wire.PROTOCOL, self.path, dict(self.headers), body, tuple(wire.blocks(body)), wire.system(body), wire.tools(body), raw
        )
        model.note(asked)
        answer = model.next_answer(asked)
        input_tokens = len(raw) // 4 if answer.input_tokens is None else answer.input_tokens
        told = (answer, str(body.get("model", "scripted")), input_tokens, uuid.uuid4().hex[:20])  # clients take answers of one id for one
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            if answer.fault is Fault.SILENT:
                self._hang()
            elif answer.status >= 400:
                self._json(answer.status, wire.error(answer), retry_after_s=answer.retry_after_s)
            elif answer.fault is Fault.GARBAGE:
                self._send(200, b"<html>not what you asked for", "text/html")
            elif asked.streams:
                self._stream(wire, answer, wire.events(*told))
            else:
                self._whole(wire, answer, wire.document(*told))

    def _whole(self, wire: ModuleType, answer: Answer, document: dict[str, Any]) -> None:
        data = json.dumps(document).encode()
        if answer.fault is Fault.ERROR_EVENT:
            self._json(500, wire.error(answer))
        elif answer.fault is Fault.HANG:
            self._head(200, length=len(data))
            self._hang()
        elif answer.fault is Fault.CUT:
            self._head(200, length=len(data))
            self.wfile.write(data[: len(data) // 2])
            self.close_connection = True
        else:
            self._send(200, data, "application/json")

    def _stream(self, wire: ModuleType, answer: Answer, events: Iterator[tuple[str, dict[str, Any]]]) -> None:
        self._head(200, kind="text/event-stream")
        if answer.fault is Fault.HANG:
            self._hang()
            return
        for number, (name, fields) in enumerate(_with_fault(wire, answer, events)):
            if wire is chat_wire:
                self._chunk(chat_wire.frame(name, fields))
            else:
                data = {"type": name, **fields} | ({"sequence_number": number} if wire is responses_wire else {})
                self._chunk(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())
        if answer.fault is Fault.CUT:
            self.close_connection = True
            return
        self._chunk(b"")

    def _hang(self) -> None:
        self.wfile.flush()
        self.server.owner.closing.wait()
        self.close_connection = True

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding") == "chunked":
            raw = b"".join(iter(self._read_chunk, b""))
        else:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        match self.headers.get("content-encoding"):
            case "gzip":
                return gzip.decompress(raw)
            case "zstd":
                return zstandard.ZstdDecompressor().decompressobj().decompress(raw)
        return raw

    def _read_chunk(self) -> bytes:
        size = int(self.rfile.readline().partition(b";")[0], 16)
        data = self.rfile.read(size)
        self.rfile.readline()
        return data

    def _json(self, status: int, document: dict[str, Any], *, retry_after_s: int | None = None) -> None:
        self._send(status, json.dumps(document).encode(), "application/json", retry_after_s=retry_after_s)

    def _send(self, status: int, data: bytes, kind: str, *, retry_after_s: int | None = None) -> None:
        self._head(status, kind=kind, length=len(data), retry_after_s=retry_after_s)
        self.wfile.write(data)

    def _head(self, status: int, *, kind: str = "application/json", length: int | None = None, retry_after_s: int | None = None) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("request-id", "req_1")
        if length is None:
            self.send_header("transfer-encoding", "chunked")
        else:
            self.send_header("content-length", str(length))
        if retry_after_s is not None:
            self.send_header("retry-after", str(retry_after_s))
        self.end_headers()
        self.wfile.flush()

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()


def _with_fault(wire: ModuleType, answer: Answer, events: Iterator[tuple[str, dict[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events as they come, or the first half of them and what goes wrong then."""
    if answer.fault not in (Fault.CUT, Fault.ERROR_EVENT):
        yield from events
        return
    told = list(events)
    yield from told[: max(1, len(told) // 2)]
    if answer.fault is Fault.ERROR_EVENT:
        yield wire.error_event(answer)
