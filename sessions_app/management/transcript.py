"""Messages and entries as text for a terminal."""

from collections.abc import Iterator

from sessions_app.engine.entries import Entry, Part
from sessions_app.engine.fates import EntryFate
from sessions_app.engine.messages import ViewMessage
from sessions_app.engine.terms import Fate, PartKind
from sessions_app.management.output import plain_line, plain_text

RULE = "─"
WORDS = {
    PartKind.CALL: "call",
    PartKind.RESULT: "result",
    PartKind.THINKING: "thinking",
    PartKind.IMAGE: "image",
    PartKind.DOCUMENT: "document",
}


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
