"""Whether a source is a Claude Code file, and whose: told by its first rows and its name."""

import hashlib
import re
from collections import Counter
from pathlib import PurePath
from typing import Any, BinaryIO

from sessions_app.readers.base import SourceIdentity
from sessions_app.readers.claude_code_parts import text_of
from sessions_app.readers.claude_code_rows import CHAIN_TYPES, SIDE_TYPES
from sessions_app.readers.head import first_rows, rows_of

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_AGENT_STEM = re.compile(r"(?:^|__)agent-([\w-]+)$")


def is_claude_code(head: bytes) -> bool:
    """Whether the first bytes of a source are rows of such a file. Never raises."""
    rows = rows_of(head)
    if rows:
        # Messages tell the formats apart that share this envelope; rows beside them do so only where there are none.
        spoken = [row for row in rows if text_of(row.get("type")) in {"user", "assistant"}]
        return any(map(_is_ours, spoken or rows))
    # A first line longer than the head: its fields may still show.
    return b"\n" not in head and b'"parentUuid"' in head and b'"isSidechain"' in head


def _is_ours(row: dict[str, Any]) -> bool:
    if "session_id" in row and "sessionId" not in row:
        return False  # the live stream's envelope, which is another format
    kind = text_of(row.get("type"))
    if kind in CHAIN_TYPES:
        message = row.get("message")
        has_body = kind in {"system", "progress", "attachment"} or (isinstance(message, dict) and "content" in message)
        return has_body and "uuid" in row and ("parentUuid" in row or "sessionId" in row or "cwd" in row)
    if kind == "summary":
        return "leafUuid" in row
    if kind == "file-history-snapshot":
        return "snapshot" in row
    return kind in SIDE_TYPES and "sessionId" in row


def identify(source: BinaryIO, path: str) -> SourceIdentity:
    """The session, and the sub-agent where it is one's own file. Leaves the source where it was."""
    rows = first_rows(source)
    stem = PurePath(path).stem
    named = [session for row in rows if (session := text_of(row.get("sessionId")))]
    first_of_chain = next((row for row in rows if text_of(row.get("type")) in CHAIN_TYPES), {})
    agent_id = text_of(first_of_chain.get("agentId")) if first_of_chain.get("isSidechain") is True else ""
    if not agent_id and not named and (match := _AGENT_STEM.search(stem)):
        agent_id = match[1]
    if agent_id:
        session = text_of(first_of_chain.get("sessionId"))
    elif _UUID.fullmatch(stem):
        session = stem
    else:
        # A session that was resumed begins with rows of the one before.
        session = Counter(named).most_common(1)[0][0] if named else ""
    if not session:
        folder = hashlib.sha256(str(PurePath(path).parent).encode(errors="replace")).hexdigest()[:8]
        session = f"{stem or 'unnamed'}@{folder}"
    return SourceIdentity(session_id=session[:150], agent_id=agent_id[:100])
