"""Messages and entries as text for a terminal, and as the objects that `--json` gives."""

from collections.abc import Iterator

from sessions_app.engine.entries import Entry, Part
from sessions_app.engine.fates import EntryFate
from sessions_app.engine.messages import ViewMessage, ViewPart
from sessions_app.engine.terms import Fate, Origin, PartKind, Scope
from sessions_app.management.output import plain_line, plain_text
from sessions_app.management.shapes import Shape, tokens

RULE = "─"
WORDS = {
    PartKind.CALL: "call",
    PartKind.RESULT: "result",
    PartKind.THINKING: "thinking",
    PartKind.IMAGE: "image",
    PartKind.DOCUMENT: "document",
}


def message_shape(message: ViewMessage) -> Shape:
    """A message of a view: each part with the entry that it comes from (null: the view adds it), and its fate."""
    return {
        "object": "message",
        "role": message.role.value,
        "size": tokens(message.tokens, origin=Origin.ESTIMATED, scope=Scope.VIEW),
        "parts": [_view_part_shape(part) for part in message.parts],
    }


def entry_shape(entry: Entry, fate: EntryFate) -> Shape:
    """An entry of the canonical history, with what became of it in the view that was asked for."""
    return {
        "object": "entry",
        "index": entry.index,
        "role": entry.role.value,
        "kind": entry.kind.value,
        "timestamp": entry.timestamp or None,
        "model": entry.model or None,
        "size": tokens(entry.tokens, origin=Origin.ESTIMATED, scope=Scope.VIEW),
        "fate": fate.fate.value,
        "generation": fate.generation,
        "parts": [part_shape(part) for part in entry.parts],
    }


def part_shape(part: Part) -> Shape:
    """One part. `text` of a call is its arguments as JSON; `bytes` is the size of an image or document."""
    shape: Shape = {"kind": part.kind.value, "text": part.text}
    more = {
        "name": part.name,
        "call_id": part.call_id,
        "is_error": part.is_error,
        "media_type": part.media_type,
        "bytes": part.size_bytes,
        "encrypted": part.encrypted,
        "chars": part.chars,
    }
    return shape | {name: value for name, value in more.items() if value}


def _view_part_shape(part: ViewPart) -> Shape:
    shape = part_shape(part.part) | {"entry": part.entry_index, "fate": part.fate.value, "tokens": part.tokens}
    return shape | {name: True for name in ("glued", "synthetic") if getattr(part, name)}


def message_lines(message: ViewMessage, *, width: int, clip: int, raw: bool) -> Iterator[str]:
    """A message as text: a head, then its parts."""
    yield head(f"{message.role.value} · {places(message)}~{message.tokens:,} tokens", width)
    for part in message.parts:
        notes = ["cleared"] if part.fate is Fate.CLEARED else []
        notes += ["glued to the result before it"] if part.glued else []
        yield from _part_lines(part.part, notes, clip=clip, raw=raw)
    yield ""


def entry_lines(entry: Entry, fate: EntryFate, *, width: int, clip: int, raw: bool) -> Iterator[str]:
    """An entry as text: a head with its fate, then its parts."""
    of = f" by #{fate.generation}" if fate.generation else ""
    when = f" · {plain_line(entry.timestamp)[:19].replace('T', ' ')}" if entry.timestamp else ""
    yield head(f"{entry.index} · {entry.role.value} {entry.kind.value} · {fate.fate.words}{of} · ~{entry.tokens:,} tokens{when}", width)
    for part in entry.parts:
        yield from _part_lines(part, [], clip=clip, raw=raw)
    yield ""


def head(text: str, width: int) -> str:
    """A line between two texts."""
    return f"{RULE * 2} {text} {RULE * max(2, min(width, 100) - len(text) - 4)}"


def places(message: ViewMessage) -> str:
    """The entries that a message comes from, in words that end with a separator."""
    found = sorted({part.entry_index for part in message.parts if part.entry_index is not None})
    if not found:
        return "added by the view · "
    span = f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,}–{found[-1]:,}"
    return f"{'entry' if len(found) == 1 else 'entries'} {span} · "


def _part_lines(part: Part, notes: list[str], *, clip: int, raw: bool) -> Iterator[str]:
    said = [WORDS.get(part.kind, ""), plain_line(part.name)]
    said += ["error"] if part.is_error else []
    said += [f"{plain_line(part.media_type)}, {part.size_bytes:,} bytes"] if part.kind in (PartKind.IMAGE, PartKind.DOCUMENT) else []
    said += ["encrypted by its provider"] if part.encrypted else []
    words = " ".join(word for word in said if word)
    if words or notes:
        yield f"[{', '.join(filter(None, (words, *notes)))}]"
    text = part.text if not clip or len(part.text) <= clip else part.text[:clip]
    if text:
        yield text if raw else plain_text(text)
    if len(text) < part.length:
        yield f"[… {part.length - len(text):,} more characters]"
