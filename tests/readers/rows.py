"""Rows of small transcripts of our own making, in the shape that Claude Code writes."""

import io
import json
from collections.abc import Iterable
from typing import Any

from sessions_app.readers.base import Record
from sessions_app.readers.claude_code import ClaudeCodeReader, ClaudeCodeReading

SESSION = "11111111-2222-4333-8444-555555555555"
Row = dict[str, Any]


def _base(uuid: str, parent: str | None, **more: Any) -> Row:
    return {
        "parentUuid": parent, "isSidechain": False, "cwd": "/home/dev/shop", "sessionId": SESSION, "version": "2.1.332",
        "gitBranch": "main", "uuid": uuid, "timestamp": f"2026-11-30T10:00:{sum(map(ord, uuid)) % 60:02d}.000Z", **more,
    }  # fmt: skip


def prompt(uuid: str, parent: str | None, text: str | list[Row] = "Do it", **more: Any) -> Row:
    return _base(uuid, parent, type="user", message={"role": "user", "content": text}, **more)


def answer(uuid: str, parent: str | None, *blocks: Row | str, message: str = "", output: int = 5, **more: Any) -> Row:
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks or ("Done.",)]
    usage = {"input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20, "output_tokens": output}
    body = {"id": message or f"msg_{uuid}", "role": "assistant", "model": "claude-opus-4-5", "content": content, "usage": usage}
    return _base(uuid, parent, type="assistant", message=body, **more)


def call(call_id: str, name: str = "Bash", **arguments: Any) -> Row:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments or {"command": "ls"}}


def result(uuid: str, parent: str | None, call_id: str, content: Any = "ok", *, is_error: bool = False, **more: Any) -> Row:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": is_error}
    return _base(uuid, parent, type="user", message={"role": "user", "content": [block]}, **more)


def system(uuid: str, parent: str | None, subtype: str, **more: Any) -> Row:
    return _base(uuid, parent, type="system", subtype=subtype, **more)


def reminder(uuid: str, parent: str | None, text: str, **more: Any) -> Row:
    body = {"attachment": {"type": "date"}, "rendered": [{"content": text}], "renderedRole": "system"}
    return _base(uuid, parent, type="attachment", **body, **more)


def boundary(uuid: str, logical: str | None, **metadata: Any) -> Row:
    metadata = {"trigger": "manual", "preTokens": 9_000, **metadata}
    return system(uuid, None, "compact_boundary", content="Conversation compacted", logicalParentUuid=logical, compactMetadata=metadata)


def summary(uuid: str, parent: str, text: str = "What came before.") -> Row:
    return prompt(uuid, parent, text, isCompactSummary=True, isVisibleInTranscriptOnly=True)


def encode(rows: Iterable[Row | bytes]) -> bytes:
    return b"".join(row if isinstance(row, bytes) else json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def read(*rows: Row | bytes, name: str = f"{SESSION}.jsonl") -> tuple[ClaudeCodeReading, list[Record]]:
    """A finished reading of these rows, and its records."""
    reading = ClaudeCodeReader().read(io.BytesIO(encode(rows)), path=name)
    return reading, list(reading)


def problems(reading: ClaudeCodeReading) -> dict[str, int]:
    return {str(kind): count for kind, count in reading.report().by_problem.items()}
