"""Rows of small rollouts of our own making, in the shape that Codex writes."""

import io
import json
from collections.abc import Iterable
from typing import Any

from sessions_app.engine.counting import estimate_parts
from sessions_app.engine.entries import Checkpoint, Entry, with_whole_text
from sessions_app.engine.messages import ViewMessage
from sessions_app.engine.terms import Lineage
from sessions_app.engine.view import build
from sessions_app.readers.base import Record
from sessions_app.readers.codex import CodexReader, CodexReading

THREAD = "0199aaaa-0000-7000-8000-000000000001"
PARENT = "0199aaaa-0000-7000-8000-0000000000aa"
NAME = f"rollout-2026-11-30T10-00-00-{THREAD}.jsonl"
Row = dict[str, Any]


def row(kind: str, payload: Any, *, second: int = 0, **more: Any) -> Row:
    return {"timestamp": f"2026-11-30T10:{second // 60:02d}:{second % 60:02d}.000Z", "type": kind, "payload": payload, **more}


def meta(thread: str = THREAD, **more: Any) -> Row:
    told = {"id": thread, "cwd": "/home/dev/shop", "cli_version": "0.171.0", "git": {"branch": "main"}, "source": "cli"}
    return row("session_meta", {**told, **more})


def context(turn: str = "turn-1", model: str = "gpt-5.5") -> Row:
    return row("turn_context", {"turn_id": turn, "cwd": "/home/dev/shop", "model": model})


def event(kind: str, **payload: Any) -> Row:
    return row("event_msg", {"type": kind, **payload})


def item(kind: str, **payload: Any) -> Row:
    return row("response_item", {"type": kind, **payload})


def message(role: str, *texts: str, key: str = "") -> Row:
    part = "output_text" if role == "assistant" else "input_text"
    body = {"role": role, "content": [{"type": part, "text": text} for text in texts]}
    return item("message", **body, **({"id": key} if key else {}))


def user(text: str = "Do it", key: str = "") -> Row:
    return message("user", text, key=key)


def said(text: str = "Done.", key: str = "") -> Row:
    return message("assistant", text, key=key)


def call(call_id: str, name: str = "exec_command", **arguments: Any) -> Row:
    return item("function_call", name=name, call_id=call_id, arguments=json.dumps(arguments or {"cmd": "ls"}))


def output(call_id: str, text: Any = "Process exited with code 0\nOutput:\nok") -> Row:
    return item("function_call_output", call_id=call_id, output=text)


def count(prompt: int, answer: int, *, cached: int = 0, last: int | None = None, window: int = 258_400) -> Row:
    """A `token_count` with these running totals; `last` is the size of the last request with its answer."""
    total = {"input_tokens": prompt, "cached_input_tokens": cached, "output_tokens": answer, "total_tokens": prompt + answer}
    one = {"input_tokens": prompt if last is None else last, "total_tokens": prompt + answer if last is None else last}
    return event("token_count", info={"total_token_usage": total, "last_token_usage": one, "model_context_window": window})


def compacted(*items: Row, text: str = "What came before.") -> Row:
    """A `compacted` row whose history is made of the payloads of these rows."""
    return row("compacted", {"message": text, "replacement_history": [told["payload"] for told in items]})


def encode(rows: Iterable[Row | bytes]) -> bytes:
    return b"".join(told if isinstance(told, bytes) else json.dumps(told, ensure_ascii=False).encode() + b"\n" for told in rows)


def read_bytes(data: bytes, name: str = NAME) -> tuple[CodexReading, list[Record]]:
    """A finished reading of a rollout, and its records."""
    reading = CodexReader().read(io.BytesIO(data), path=name)
    return reading, list(reading)


def read(*rows: Row | bytes, name: str = NAME) -> tuple[CodexReading, list[Record]]:
    """A finished reading of these rows, and its records."""
    return read_bytes(encode(rows), name)


def entries(*rows: Row | bytes, name: str = NAME) -> list[Entry]:
    """The entries of these rows as they would be stored, their texts whole."""
    return stored(*read(*rows, name=name))


def stored(reading: CodexReading, records: list[Record]) -> list[Entry]:
    parsed = [record.entry for record in records if record.entry is not None]
    off = set(reading.off_branch().get("", ()))
    blobs = {digest: data for entry in parsed for digest, (_, data) in entry.blobs.items()}
    found = [
        Entry(
            index=index,
            role=entry.role,
            kind=entry.kind,
            parts=entry.parts,
            tokens=estimate_parts(entry.parts),
            source_id=entry.source_id,
            message_key=entry.message_key,
            off_branch=index in off,
            meta=entry.meta,
            usage=entry.usage,
            model=entry.model,
            timestamp=entry.timestamp,
        )
        for index, entry in enumerate(parsed)
    ]
    return [with_whole_text(entry, blobs.__getitem__) for entry in found]


def agent_view(reading: CodexReading, records: list[Record]) -> tuple[ViewMessage, ...]:
    """What the agent sends next, going by the last of its checkpoints."""
    checkpoint = None
    if made := reading.checkpoints():
        last = made[-1]
        checkpoint = Checkpoint(generation=1, lineage=Lineage.AGENT, segments=last.segments, boundary_index=last.boundary_index)
    return build(stored(reading, records), checkpoint)


def problems(reading: CodexReading) -> dict[str, int]:
    return {str(kind): number for kind, number in reading.report().by_problem.items()}
