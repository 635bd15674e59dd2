"""Whether a source is a Codex rollout, whose it is, and which turns the session had that it was copied from."""

import hashlib
import io
import re
from itertools import islice
from pathlib import Path, PurePath
from typing import Any, BinaryIO

import msgspec

from sessions_app.readers.base import SourceIdentity
from sessions_app.readers.claude_code_parts import text_of
from sessions_app.readers.codex_rows import ROW_TYPES, payload_of
from sessions_app.readers.lines import READ_SIZE, iter_pieces

HEAD_BYTES = 1 << 18
MAX_FIRST_LINE = 1 << 24
MAX_ROWS = 50  # that are looked at
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_STEM = re.compile(rf"rollout-[\dT:-]+-({_UUID.pattern})$")
_TURN = re.compile(rb'"type":\s*"(?:task_started|turn_context)".{0,400}?"turn_id":\s*"([^"\\]{1,100})"')
_DATED = re.compile(r"\d{2,4}")


def is_codex(head: bytes) -> bool:
    """Whether the first bytes of a source are rows of a rollout. Never raises."""
    rows = _rows(head)
    if rows:
        return any(map(_is_ours, rows))
    # A first line longer than the head: its fields may still show.
    return b"\n" not in head and b'"session_meta"' in head and b'"payload"' in head


def _is_ours(row: dict[str, Any]) -> bool:
    kind, payload = row.get("type"), payload_of(row)
    if not isinstance(kind, str) or kind not in ROW_TYPES or not payload or "uuid" in row:
        return False
    if kind == "session_meta":
        return "id" in payload
    return kind not in ("response_item", "event_msg") or isinstance(payload.get("type"), str)


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """What the first rows say of a session: its own id, and the session that it was copied from or started by."""

    identity: SourceIdentity
    thread_id: str
    copied_from: str = ""


def origin_of(source: BinaryIO, path: str) -> Origin:
    """Whose source this is. Leaves the source where it was."""
    start = source.tell()
    rows = _rows(source.read(HEAD_BYTES))
    source.seek(start)
    if not rows:
        rows = _rows(source.readline(MAX_FIRST_LINE))
        source.seek(start)
    meta = next((payload_of(row) for row in rows if row.get("type") == "session_meta"), {})
    named = _STEM.search(PurePath(path).stem)
    thread_id = (text_of(meta.get("id")) or (named[1] if named else "") or _nameless(path))[:100]
    parent = parent_of(meta)
    if not parent:
        copied_from = text_of(meta.get("forked_from_id"))[:100]
        return Origin(identity=SourceIdentity(session_id=thread_id), thread_id=thread_id, copied_from=copied_from)
    # Sub-agents of sub-agents all name the session that a person began.
    root = text_of(meta.get("session_id"))
    root = root if root and root != thread_id else parent
    copied_from = text_of(meta.get("forked_from_id")) or parent
    return Origin(identity=SourceIdentity(session_id=root[:150], agent_id=thread_id), thread_id=thread_id, copied_from=copied_from[:100])


def parent_of(meta: dict[str, Any]) -> str:
    """The session that started this one as its sub-agent, or an empty text."""
    source = meta.get("source")
    sub_agent = source.get("subagent") if isinstance(source, dict) else None
    spawned = sub_agent.get("thread_spawn") if isinstance(sub_agent, dict) else None
    told = text_of(spawned.get("parent_thread_id")) if isinstance(spawned, dict) else ""
    return (told or text_of(meta.get("parent_thread_id")))[:100]


def _nameless(path: str) -> str:
    folder = hashlib.sha256(str(PurePath(path).parent).encode(errors="replace")).hexdigest()[:8]
    return f"{PurePath(path).stem[:80] or 'unnamed'}@{folder}"


def _rows(head: bytes) -> list[dict[str, Any]]:
    """The objects of the first whole lines."""
    whole = head[: head.rfind(b"\n") + 1] or head
    return [piece.value for piece in islice(iter_pieces(io.BytesIO(whole)), MAX_ROWS) if piece.value is not None]


def turns_of(thread_id: str, beside: str) -> frozenset[str] | None:
    """The ids of the turns of another session, from its rollout near the file `beside`; `None` where that is not found.

    Looks in the same folder and, where folders are named by dates as Codex names them, in those of other days.
    """
    if not _UUID.fullmatch(thread_id):
        return None
    folder = Path(beside).parent
    root = folder
    for _ in range(3):
        if not _DATED.fullmatch(root.name):
            break
        root = root.parent
    depth = len(folder.parts) - len(root.parts)
    try:
        found = next(iter(folder.glob(f"rollout-*-{thread_id}.jsonl")), None)
        if found is None and depth == 3:
            found = next(iter(root.glob(f"*/*/*/rollout-*-{thread_id}.jsonl")), None)
        return _turns_in(found) if found is not None else None
    except OSError:
        return None


def _turns_in(path: Path) -> frozenset[str]:
    turns: set[str] = set()
    with path.open("rb") as file:
        held = b""
        while block := file.read(READ_SIZE):
            turns.update(match.decode(errors="replace") for match in _TURN.findall(held + block))
            held = block[-1_000:]
    return frozenset(turns)
