"""Writes one session file record by record, as Claude Code would, with times relative to its end."""

import base64
import json
import struct
import uuid
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

NAMESPACE = uuid.UUID("6f0c4a52-7d3b-4b1e-9a57-5b1d1e0c2f44")
VERSION = "2.1.332"
PREFIX_TOKENS = 2_400  # system prompt and tools, as far as the usage numbers tell
CHARS_PER_TOKEN = 3.7
OPENING = "This session is being continued from a previous conversation that ran out of context. What came before, in short:\n\n"


@dataclass
class Transcript:
    """One file under construction. Ids follow from `key`, so that the same story is always the same session."""

    key: str
    cwd: str
    branch: str = "main"
    model: str = "claude-sonnet-4-5"
    agent_id: str = ""  # set in a sub-agent's own file
    session_key: str = ""  # the parent's key there
    _lines: list[tuple[float, dict[str, object] | bytes]] = field(default_factory=list)
    _clock: float = 0.0
    _count: int = 0
    _last: str | None = None
    _message: str = ""
    _context_chars: int = 0
    _cached_tokens: int = 0

    @property
    def session_id(self) -> str:
        return str(uuid.uuid5(NAMESPACE, self.session_key or self.key))

    @property
    def context_tokens(self) -> int:
        """About what the agent sends with its next call."""
        return PREFIX_TOKENS + int(self._context_chars / CHARS_PER_TOKEN)

    @property
    def last_row(self) -> str:
        """The uuid of the row that the next one hangs on."""
        return self._last or ""

    @property
    def record_count(self) -> int:
        return len(self._lines)

    def wait(self, seconds: float) -> None:
        self._clock += seconds

    def ask(self, text: str) -> str:
        """A person's message; answers its uuid."""
        self.wait(40)
        return self._chained("user", {"message": {"role": "user", "content": text}}, len(text))

    def say(self, text: str, *, ends_message: bool = True) -> str:
        """A text of the assistant; a call may follow in the same API message unless it ends here."""
        self.wait(6)
        row = self._assistant({"type": "text", "text": text}, len(text), stop="end_turn" if ends_message else "tool_use")
        if ends_message:
            self._message = ""
        return row

    def think(self, text: str) -> str:
        self.wait(4)
        return self._assistant({"type": "thinking", "thinking": text, "signature": "ZGVtbw=="}, len(text), stop="tool_use")

    def call(
        self,
        tool: str,
        arguments: Mapping[str, object],
        result: str | Sequence[dict[str, object]],
        *,
        error: bool = False,
        seconds: float = 3,
    ) -> str:
        """A call of a tool and its result; answers the call's id."""
        call_id = self.open_call(tool, arguments)
        self.answer(call_id, result, error=error, seconds=seconds)
        return call_id

    def open_call(self, tool: str, arguments: Mapping[str, object]) -> str:
        """A call that has no result yet."""
        self.wait(5)
        call_id = "toolu_" + self._new_uuid().replace("-", "")[:22]
        block = {"type": "tool_use", "id": call_id, "name": tool, "input": dict(arguments)}
        self._assistant(block, len(json.dumps(arguments)), stop="tool_use")
        return call_id

    def answer(self, call_id: str, result: str | Sequence[dict[str, object]], *, error: bool = False, seconds: float = 3) -> str:
        self.wait(seconds)
        self._message = ""
        content = result if isinstance(result, str) else list(result)
        block: dict[str, object] = {"type": "tool_result", "tool_use_id": call_id, "content": content}
        if error:
            block["is_error"] = True
        size = len(result) if isinstance(result, str) else 6_000
        return self._chained("user", {"message": {"role": "user", "content": [block]}}, size)

    def title(self, text: str) -> None:
        self._plain({"type": "custom-title", "customTitle": text, "sessionId": self.session_id})

    def raw(self, line: bytes) -> None:
        """Bytes as they are, for files that went wrong."""
        self._lines.append((self._clock, line))

    def plain(self, row: Mapping[str, object]) -> None:
        """A record outside the chain."""
        self._plain({**row, "sessionId": self.session_id})

    def rewind(self, parent: str) -> None:
        """What comes next continues from an earlier row: what lay between is abandoned."""
        self._last = parent
        self._message = ""

    def compact(self, summary: str, *, automatic: bool, keep: Sequence[str], instructions: str = "", seconds: float = 48) -> None:
        """The agent's own compaction: boundary, summary, and the rows `keep` that stay as they are."""
        before = self.context_tokens
        self.wait(seconds)
        logical_parent, boundary = self._last, self._new_uuid()
        self._context_chars = len(summary) + 3_000
        anchor_uuid = str(uuid.uuid5(NAMESPACE, f"{self.key}:{self._count + 1}"))
        metadata: dict[str, object] = {
            "trigger": "auto" if automatic else "manual",
            "preTokens": before,
            "postTokens": int(len(summary) / CHARS_PER_TOKEN) + 700,
            "durationMs": int(seconds * 1000),
        }
        if instructions:
            metadata["userContext"] = instructions
        if keep:
            metadata["preservedSegment"] = {"headUuid": keep[0], "anchorUuid": anchor_uuid, "tailUuid": keep[-1]}
            metadata["preservedMessages"] = {"anchorUuid": anchor_uuid, "uuids": list(keep), "allUuids": list(keep)}
        row = self._row("system") | {
            "subtype": "compact_boundary",
            "content": "Conversation compacted",
            "level": "info",
            "isMeta": False,
            "compactMetadata": metadata,
            "parentUuid": None,
            "logicalParentUuid": logical_parent,
            "uuid": boundary,
        }
        self._lines.append((self._clock, row))
        self._last = boundary
        self._cached_tokens = 0
        text = OPENING + summary
        self._chained(
            "user",
            {"message": {"role": "user", "content": text}, "isCompactSummary": True, "isVisibleInTranscriptOnly": True},
            len(text),
        )

    def render(self, ends_at: datetime) -> bytes:
        """The file, with its last record at `ends_at`."""
        lines = []
        for at, row in self._lines:
            if isinstance(row, bytes):
                lines.append(row)
                continue
            moment = (ends_at - timedelta(seconds=self._clock - at)).astimezone(UTC)
            stamp = {"timestamp": moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03}Z"}
            lines.append(json.dumps(row | stamp if "timestamp" in row else row, separators=(",", ":")).encode())
        return b"\n".join(lines) + b"\n"

    def _new_uuid(self) -> str:
        self._count += 1
        return str(uuid.uuid5(NAMESPACE, f"{self.key}:{self._count}"))

    def _row(self, kind: str) -> dict[str, object]:
        row: dict[str, object] = {
            "parentUuid": self._last,
            "isSidechain": bool(self.agent_id),
            "userType": "external",
            "cwd": self.cwd,
            "sessionId": self.session_id,
            "version": VERSION,
            "gitBranch": self.branch,
            "type": kind,
            "timestamp": "",
        }
        return row | {"agentId": self.agent_id} if self.agent_id else row

    def _chained(self, kind: str, extra: Mapping[str, object], chars: int) -> str:
        row = self._row(kind) | {"uuid": self._new_uuid()} | dict(extra)
        self._lines.append((self._clock, row))
        self._last = str(row["uuid"])
        self._context_chars += chars
        return self._last

    def _assistant(self, block: Mapping[str, object], chars: int, *, stop: str) -> str:
        first = not self._message
        if first:
            self._message = "msg_" + self._new_uuid().replace("-", "")[:24]
            self._prompt_tokens = self.context_tokens
        fresh = max(self._prompt_tokens - self._cached_tokens, 0)
        usage = {
            "input_tokens": 4,
            "cache_creation_input_tokens": fresh,
            "cache_read_input_tokens": self._prompt_tokens - fresh,
            "output_tokens": max(int(chars / CHARS_PER_TOKEN), 1),
            "service_tier": "standard",
        }
        message = {
            "id": self._message,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [dict(block)],
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": usage,
        }
        uuid_ = self._chained("assistant", {"message": message, "requestId": "req_" + self._message[4:]}, chars)
        self._cached_tokens = self._prompt_tokens
        return uuid_

    def _plain(self, row: dict[str, object]) -> None:
        self._lines.append((self._clock, row))

    _prompt_tokens: int = 0


def picture(width: int, height: int, colours: Sequence[tuple[int, int, int]]) -> dict[str, object]:
    """A content block with a small PNG of vertical stripes."""
    stripe = max(width // len(colours), 1)
    row = b"\0" + b"".join(bytes(colours[min(x // stripe, len(colours) - 1)]) for x in range(width))
    data = zlib.compress(row * height, 9)

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    png = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
        + chunk(b"IDAT", data)
        + chunk(b"IEND", b"")
    )
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": base64.b64encode(png).decode()}}
