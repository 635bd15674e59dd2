"""The messages of a window as a provider gets them, with the entry that each part comes from."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
from django.urls import reverse
from django.utils.safestring import SafeString

from sessions_app.engine import legality, view
from sessions_app.engine.entries import Segment
from sessions_app.engine.terms import Fate, Lineage, PartKind, Role, SegmentKind
from sessions_app.engine.view import ViewMessage, ViewPart
from sessions_app.rendering.block_html import SectionView, section_views, with_references
from sessions_app.rendering.markdown import markdown_html
from sessions_app.rendering.plain import clip, plain_html
from sessions_app.selectors.history import Block, HistoryPage

PART_CHARS = 1_500
MOST_PARTS = 300
"""So many parts of a message are shown: more than a window of ordinary entries has, less than one message may hold."""


@dataclass(frozen=True)
class SentPart:
    """One part of a message. `index` and `url` lead to its entry; None for what the view adds itself."""

    index: int | None
    url: str
    note: str
    html: SafeString | None
    is_code: bool
    sections: tuple[SectionView, ...] = ()
    is_rest: bool = False  # it stands for the parts that are not shown


@dataclass(frozen=True)
class SentMessage:
    """One message, its role as on the wire."""

    role: str
    tokens: int
    parts: tuple[SentPart, ...]


def window_messages(page: HistoryPage) -> tuple[ViewMessage, ...]:
    """The messages of the window, as the engine builds them; with the head of the view where the window reaches it."""
    items = [*page.head, *(one for item in page.window.items for one in (item, *item.results))]
    entries = list({item.index: item.entry for item in items}.values())
    if page.checkpoint is None or not page.window.has_earlier:
        return view.build(entries, page.checkpoint)
    tail = Segment(kind=SegmentKind.RANGE, first=page.boundary_index)
    return view.build(entries, msgspec.structs.replace(page.checkpoint, segments=(tail,)))


def problems_of(messages: tuple[ViewMessage, ...]) -> list[str]:
    """What a provider would refuse of these messages."""
    return list(legality.problems(messages))


def sent_messages(
    session_id: uuid.UUID, messages: tuple[ViewMessage, ...], block: Block | None = None, boundary: int = 0
) -> list[SentMessage]:
    """The messages, ready for their template. Numbers of entries before `boundary` in a block of ours lead to them."""
    known = boundary if block is not None and block.lineage is Lineage.CONSOLE else 0
    return [SentMessage(message.role.value, message.tokens, tuple(_parts(session_id, message, known))) for message in messages]


def _parts(session_id: uuid.UUID, message: ViewMessage, known: int) -> Iterator[SentPart]:
    for part in message.parts[:MOST_PARTS]:
        yield _sent(session_id, part, message.role, known)
    left = len(message.parts) - MOST_PARTS
    if left > 0:
        yield SentPart(None, "", f"{left:,} more parts, sent but not shown here", None, is_code=False, is_rest=True)


def _sent(session_id: uuid.UUID, part: ViewPart, role: Role, known: int) -> SentPart:
    if part.synthetic and part.part.kind is PartKind.TEXT and len(part.part.text) > PART_CHARS:
        sections = with_references(section_views(part.part.text), session_id, known)
        return SentPart(None, "", "the compacted block", None, is_code=False, sections=sections)
    html, is_code = _shown(part, role)
    return SentPart(
        index=part.entry_index,
        url=reverse("entry-detail", args=[session_id, part.entry_index]) if part.entry_index is not None else "",
        note=_note(part),
        html=html,
        is_code=is_code,
    )


def _shown(part: ViewPart, role: Role) -> tuple[SafeString | None, bool]:
    given = part.part
    if given.kind in (PartKind.IMAGE, PartKind.DOCUMENT) or given.encrypted:
        return None, False
    text = f"{given.name} {given.text}" if given.kind is PartKind.CALL else given.text
    shown, is_cut = clip(text, PART_CHARS)
    if given.kind is PartKind.TEXT and role is not Role.SYSTEM and not part.glued:
        return markdown_html(shown + ("\n\n…" if is_cut else "")), False
    return plain_html(shown + ("\n…" if is_cut else "")), True


def _note(part: ViewPart) -> str:
    given = part.part
    words = {
        PartKind.CALL: "tool call",
        PartKind.RESULT: "tool result",
        PartKind.THINKING: "thinking, as its provider replays it",
        PartKind.IMAGE: f"image, {given.media_type}",
        PartKind.DOCUMENT: f"document, {given.media_type}",
    }
    said = [words.get(given.kind, "")]
    if part.fate is Fate.CLEARED:
        said.append("cleared: a placeholder stands for it")
    if part.glued:
        said.append("reminder, glued to the result before it")
    if given.encrypted:
        said.append("encrypted by its provider")
    if given.length > PART_CHARS:
        said.append(f"{given.length:,} characters, cut here")
    return ", ".join(word for word in said if word)
