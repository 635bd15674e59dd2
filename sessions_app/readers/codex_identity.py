"""Whether a source is a Codex rollout, whose it is, and which turns the session had that it was copied from."""

import hashlib
import re
from pathlib import Path, PurePath
from typing import Any, BinaryIO

import msgspec

from sessions_app.readers.base import SourceIdentity
from sessions_app.readers.claude_code_parts import text_of
from sessions_app.readers.codex_rows import ROW_TYPES, payload_of
from sessions_app.readers.head import first_rows, rows_of
from sessions_app.readers.lines import READ_SIZE

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_STEM = re.compile(rf"rollout-[\dT:-]+-({_UUID.pattern})$")
_TURN = re.compile(rb'"type":\s*"(?:task_started|turn_context)".{0,400}?"turn_id":\s*"([^"\\]{1,100})"')
_DATED = re.compile(r"\d{2,4}")


def is_codex(head: bytes) -> bool:
    """Whether the first bytes of a source are rows of a rollout. Never raises."""
    rows = rows_of(head)
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
    rows = first_rows(source)
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
