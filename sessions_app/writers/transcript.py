"""A history as text: Markdown for people, JSON Lines for programs. Entry by entry, however long it is."""

import re
from collections.abc import Iterable, Iterator

import msgspec

from sessions_app.engine.entries import Entry, Part
from sessions_app.engine.terms import Kind, PartKind, Role
from sessions_app.engine.unseen import UNSEEN, shown

_ENCODER = msgspec.json.Encoder()
_SPEAKERS = {Role.SYSTEM: "System", Role.USER: "User", Role.ASSISTANT: "Assistant", Role.TOOL: "Tool", Role.NOTICE: "Notice"}
_KINDS = {
    Kind.CALL: "call", Kind.RESULT: "result", Kind.THINKING: "thinking", Kind.SUMMARY: "summary", Kind.REMINDER: "reminder",
    Kind.ATTACHMENT: "attachment", Kind.ERROR: "error", Kind.COMPACTED: "compaction",
}  # fmt: skip
_FENCE = re.compile(r"`{3,}")
_UNSEEN = re.compile(f"\r|{UNSEEN.pattern}")


def as_json_lines(entries: Iterable[Entry]) -> Iterator[bytes]:
    """One object a line, as it is stored: index, role, kind, parts, and what else is known of it."""
    for entry in entries:
        yield _ENCODER.encode(entry) + b"\n"


def as_markdown(title: str, entries: Iterable[Entry]) -> Iterator[bytes]:
    """A document whose headings are ours alone: everything that was said stands in fences, so that none of it is markup."""
    yield f"# {_one_line(title)}\n".encode()
    for entry in entries:
        word = _KINDS.get(entry.kind, "")
        left = ", not on the live branch" if entry.off_branch else ""
        time = f" · {_one_line(entry.timestamp)}" if entry.timestamp else ""
        heading = f"\n## {entry.index} · {_SPEAKERS[entry.role]}{f' · {word}' if word else ''}{time}{left}\n"
        yield (heading + "".join(map(_part, entry.parts))).encode("utf-8", "replace")


def _part(part: Part) -> str:
    if part.kind in (PartKind.IMAGE, PartKind.DOCUMENT):
        return f"\n[{part.kind.value}: {_one_line(part.media_type) or 'unknown type'}, {part.size_bytes} bytes]\n"
    if part.encrypted:
        return "\n[Its provider's own ciphertext]\n"
    name = f"\n{_one_line(part.name)}:\n" if part.name else ""
    text = _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", part.text)
    fence = "`" * max((len(found) + 1 for found in _FENCE.findall(text)), default=3)
    return f"{name}\n{fence}\n{text}\n{fence}\n"


def _one_line(text: str) -> str:
    """Text that stands outside a fence, on one line and without anything that could be markup."""
    words = " ".join(shown(text[:300]).split())
    return re.sub(r"([\\`*_{}\[\]<>()#|~!&])", r"\\\1", words)
