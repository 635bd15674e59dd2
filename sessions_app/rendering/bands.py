"""A history page laid out: bands of entries on the left, what the model gets of them on the right."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from django.urls import reverse
from django.utils.safestring import SafeString

from sessions_app.engine.fates import EntryFate
from sessions_app.engine.terms import Fate, Kind, Lineage, PartKind, Role, SegmentKind
from sessions_app.rendering import entry_html, tools
from sessions_app.rendering.ansi import strip_ansi
from sessions_app.rendering.block_html import SectionView, section_views, with_references
from sessions_app.rendering.plain import clip, first_line, visible
from sessions_app.selectors.history import Block, CheckpointRow, HistoryPage, Layout
from sessions_app.selectors.history_window import Detail, EntryWindow, HistoryItem

RUN_MIN = 7
"""So many folded entries in a row that a person did not write are drawn as a few lines and a run."""

RUN_HEAD = 3
PREVIEW_CHARS = 420
PREVIEW_LINES = 5
_NOT_SENT = {
    Fate.DISPLAY_ONLY: "not sent",
    Fate.OFF_BRANCH: "not sent: on a branch that was left",
    Fate.EXCLUDED: "not sent: excluded",
}
CALL_MISSING = "not sent: the call that it answers is not in the view"


@dataclass(frozen=True)
class FateView:
    """The word of a fate and the name of its ribbon."""

    words: str
    form: str


@dataclass(frozen=True)
class MessageView:
    """What the right side says of one entry. `note` says how it differs from the left; `kind`: text, code or placeholder."""

    role: str
    note: str
    tokens: int
    text: str = ""
    kind: str = "text"
    source: int | None = None
    is_pinned: bool = False


class Choice(NamedTuple):
    """A decision that may be taken about an entry. `verb` is the end of its address."""

    verb: str
    words: str
    icon: str
    title: str


_PIN = Choice("pin", "Pin", "pin", "Keep it word for word in every view")
_UNPIN = Choice("unpin", "Unpin", "pin", "No longer keep it; it stays until the next compaction folds it")
_EXCLUDE = Choice("exclude", "Exclude", "stop", "Never send it again")
_INCLUDE = Choice("include", "Include", "undo", "No longer exclude it")
_CHOICES: dict[Fate, tuple[Choice, ...]] = {
    Fate.PINNED: (_UNPIN, _EXCLUDE),
    Fate.EXCLUDED: (_PIN, _INCLUDE),
    Fate.OFF_BRANCH: (),
    Fate.DISPLAY_ONLY: (),
}


@dataclass(frozen=True)
class ItemView:
    """An entry, ready for its template. `body` is empty on a quiet line, which has `line` instead."""

    item: HistoryItem
    role: str
    fate: FateView
    permalink: str
    anchors: tuple[int, ...]
    is_user: bool
    body: SafeString | None
    line: str
    is_mono: bool
    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True)
class RunView:
    """Several folded entries as one line."""

    first: int
    last: int
    count: int
    tokens: int
    fate: FateView
    url: str


@dataclass(frozen=True)
class BlockView:
    """The compacted block. `sections` is empty where only a pointer to it stands."""

    block: Block
    sections: tuple[SectionView, ...]
    carried: tuple[MessageView, ...]
    url: str


@dataclass(frozen=True)
class Band:
    """One row of the page. `kind`: entry, folded, divider or boundary."""

    kind: str
    lines: tuple[ItemView | RunView, ...] = ()
    messages: tuple[MessageView, ...] = ()
    not_sent: str = ""
    is_same: bool = False
    is_target: bool = False
    block: BlockView | None = None
    checkpoint: CheckpointRow | None = None
    fate: FateView | None = None


@dataclass
class _Layout:
    """What laying out one page needs at hand."""

    session_id: uuid.UUID
    page: HistoryPage
    bodies: dict[int, SafeString] = field(default_factory=dict)

    def fate(self, item: HistoryItem) -> EntryFate:
        return self.page.fates[item.index]

    def url(self, index: int) -> str:
        return reverse("entry-detail", args=[self.session_id, index])


def lay_out(session_id: uuid.UUID, page: HistoryPage) -> list[Band]:
    """The bands of a page, in order."""
    layout = _Layout(session_id, page)
    folds = page.layout is Layout.SPLIT
    full = tuple(item for item in page.window.items if not item.is_divider and not (folds and _is_folded(page, item)))
    layout.bodies = entry_html.bodies(session_id, full, page.options.detail)
    return list(_bands(layout, folds=folds))


def _bands(layout: _Layout, *, folds: bool) -> Iterator[Band]:
    page = layout.page
    folded: list[HistoryItem] = []
    is_marked = page.boundary_index == 0
    previous = (page.window.first or 0) - 1
    for item in page.window.items:
        if folds and _is_folded(page, item):
            folded.append(item)
            continue
        if folded:
            yield _folded_band(layout, folded)
            folded = []
        # The divider of the shown generation says already that here is the boundary.
        is_marked = is_marked or _divides(page, item)
        if not is_marked and previous < page.boundary_index <= item.index:
            is_marked = True
            yield Band(kind="boundary", checkpoint=page.checkpoint_of(page.generation))
        previous = item.last_index
        yield _divider_band(layout, item) if item.is_divider else _entry_band(layout, item)
    if folded:
        yield _folded_band(layout, folded)


def _is_folded(page: HistoryPage, item: HistoryItem) -> bool:
    """Whether an entry lies under the block: before the boundary, and in no range that the view still holds."""
    checkpoint = page.checkpoint
    if checkpoint is None or item.index >= checkpoint.boundary_index or item.is_divider:
        return False
    return not any(
        segment.kind is SegmentKind.RANGE
        and segment.first is not None
        and segment.first <= item.index
        and (segment.last is None or item.index <= segment.last)
        for segment in checkpoint.segments
    )


def _divides(page: HistoryPage, item: HistoryItem) -> bool:
    """Whether the entry is the divider of the shown generation, right at its boundary."""
    row = page.divider_at(item.index) if item.is_divider and abs(item.index - page.boundary_index) <= 1 else None
    return row is not None and row.generation == page.generation


def fate_view(fate: EntryFate) -> FateView:
    """`summarised #2`, with the ribbon that goes with it."""
    words = fate.fate.words if fate.generation is None else f"{fate.fate.words} #{fate.generation}"
    return FateView(words, fate.fate.value)


def _divider_band(layout: _Layout, item: HistoryItem) -> Band:
    return Band(
        kind="divider",
        checkpoint=layout.page.divider_at(item.index),
        lines=(_item_view(layout, item, is_line=True),),
        is_target=item.index == layout.page.options.at,
    )


def _entry_band(layout: _Layout, item: HistoryItem) -> Band:
    fate = layout.fate(item)
    messages = () if fate.fate in _NOT_SENT else tuple(_messages(layout, item))
    return Band(
        kind="entry",
        lines=(_item_view(layout, item, is_line=False),),
        messages=messages,
        not_sent=CALL_MISSING if item.index in layout.page.left_out else _NOT_SENT.get(fate.fate, ""),
        is_same=all(message.kind != "placeholder" for message in messages),
        is_target=layout.page.options.at is not None and item.index <= layout.page.options.at <= item.last_index,
        fate=fate_view(fate),
    )


def _folded_band(layout: _Layout, items: list[HistoryItem]) -> Band:
    """Folded entries beside the block: the whole of it where the last of them stands, elsewhere a pointer to that place."""
    page = layout.page
    last_folded = max(item.index for item in page.window.items if _is_folded(page, item))
    ends_here = items[-1].index == last_folded and (page.window.last or 0) + 1 >= page.boundary_index
    return Band(
        kind="folded",
        lines=tuple(_condensed(layout, items)),
        block=_block_view(layout, page.block, is_whole=ends_here) if page.block else None,
        fate=fate_view(layout.fate(items[-1])),
    )


def _condensed(layout: _Layout, items: list[HistoryItem]) -> Iterator[ItemView | RunView]:
    """Quiet lines; long stretches that no person wrote become a few lines and a run."""
    stretch: list[HistoryItem] = []
    for item in items:
        if _is_quiet(layout, item) and (not stretch or layout.fate(stretch[-1]).generation == layout.fate(item).generation):
            stretch.append(item)
            continue
        yield from _stretch(layout, stretch)
        stretch = [item] if _is_quiet(layout, item) else []
        if not stretch:
            yield _item_view(layout, item, is_line=True)
    yield from _stretch(layout, stretch)


def _is_quiet(layout: _Layout, item: HistoryItem) -> bool:
    """Whether a folded entry may stand in a run: no person wrote it, and it is nowhere in the view."""
    return not item.is_user_message and layout.fate(item).fate in (Fate.SUMMARISED, Fate.TRIMMED, Fate.DISPLAY_ONLY)


def _stretch(layout: _Layout, items: list[HistoryItem]) -> Iterator[ItemView | RunView]:
    keep = len(items) if len(items) < RUN_MIN else RUN_HEAD
    for item in items[:keep]:
        yield _item_view(layout, item, is_line=True)
    rest = items[keep:]
    if rest:
        yield RunView(
            first=rest[0].index,
            last=rest[-1].last_index,
            count=sum(1 + len(item.results) for item in rest),
            tokens=sum(item.tokens for item in rest),
            fate=fate_view(layout.fate(rest[-1])),
            url=layout.url(rest[0].index),
        )


def _block_view(layout: _Layout, block: Block, *, is_whole: bool) -> BlockView:
    texts = "\n\n".join(message.text for message in block.messages)
    # Each by itself: a result that is carried as well is in the head under its own number.
    alone = (replace(item, results=()) for item in layout.page.head) if is_whole else ()
    carried = tuple(message for item in alone for message in _messages(layout, item, source=item.index))
    sections = section_views(texts) if is_whole and texts else ()
    if block.lineage is Lineage.CONSOLE:
        sections = with_references(sections, layout.session_id, layout.page.boundary_index)
    return BlockView(
        block=block,
        sections=sections,
        carried=carried,
        url=layout.url(layout.page.boundary_index) if not is_whole else "",
    )


def _item_view(layout: _Layout, item: HistoryItem, *, is_line: bool) -> ItemView:
    line, is_mono = ("", False) if not is_line else line_of(item)
    return ItemView(
        item=item,
        role=role_words(item, is_line=is_line),
        fate=fate_view(layout.fate(item)),
        permalink=layout.url(item.index),
        anchors=tuple(result.index for result in item.results),
        is_user=item.is_user_message,
        body=None if is_line else layout.bodies[item.index],
        line=line,
        is_mono=is_mono,
        choices=_choices(layout, item),
    )


def _choices(layout: _Layout, item: HistoryItem) -> tuple[Choice, ...]:
    """What may be decided about an entry. A decision is about today, so that there is none on a page of the past."""
    if item.entry.role is Role.SYSTEM or layout.page.upto is not None:
        return ()
    return _CHOICES.get(layout.fate(item).fate, (_PIN, _EXCLUDE))


def role_words(item: HistoryItem, *, is_line: bool = False) -> str:
    """Who speaks, in one word; on a quiet line a call is named by its tool."""
    entry = item.entry
    if is_line and entry.kind is Kind.CALL:
        return first_line(next((part.name for part in entry.parts if part.kind is PartKind.CALL), ""), 24) or "call"
    if entry.kind is Kind.THINKING and is_line:
        return "thinking"
    if entry.kind is Kind.RESULT:
        return "result"
    if entry.kind in (Kind.SUMMARY, Kind.REMINDER, Kind.ATTACHMENT, Kind.ERROR):
        return entry.kind.value
    return entry.role.value


def line_of(item: HistoryItem) -> tuple[str, bool]:
    """What a quiet line says of an entry, and whether it is code."""
    entry = item.entry
    if entry.kind is Kind.THINKING:
        return "folded", False
    for part in entry.parts:
        if part.kind is PartKind.CALL:
            return first_line(tools.subject_of(tools.arguments_of(part.text))), True
        if part.text:
            return first_line(strip_ansi(part.text[:2_000])), False
        if part.kind in (PartKind.IMAGE, PartKind.DOCUMENT):
            return f"{part.kind.value} {visible(part.media_type)}", False
    return "", False


def _messages(layout: _Layout, item: HistoryItem, *, source: int | None = None) -> Iterator[MessageView]:
    """What the model gets of an entry and its results."""
    checkpoint = layout.page.checkpoint
    yield replace(_message(item, source), is_pinned=checkpoint is not None and item.index in checkpoint.pinned)
    shows_output = layout.page.options.detail is Detail.EVERYTHING
    for result in item.results:
        fate = layout.page.fates.get(result.index)
        if fate is not None and fate.fate is Fate.CLEARED:
            text = f"[Result cleared: entry {result.index}, about {result.entry.tokens} tokens.]"
            yield MessageView("tool result", "placeholder instead of the result", 0, text, "placeholder", source)
        else:
            yield _message(result, source, shows_text=shows_output)


def _message(item: HistoryItem, source: int | None, *, shows_text: bool = True) -> MessageView:
    entry = item.entry
    role = "tool result" if entry.role is Role.TOOL or entry.kind is Kind.RESULT else entry.role.value
    text, note, kind = "", "same text", "text"
    call = next((part for part in entry.parts if part.kind is PartKind.CALL), None)
    if call is not None:
        said = next((part.text for part in entry.parts if part.kind is PartKind.TEXT and part.text), "")
        text, kind = f"{said}\n{call.name} {call.text}".lstrip("\n"), "code"
    elif entry.kind is Kind.THINKING:
        note = "thinking, as its provider replays it"
    elif shows_text:
        text = next((part.text for part in entry.parts if part.text), "")
        kind = "code" if role == "tool result" else "text"
        if "\x1b" in text:
            text, note = strip_ansi(text), "same text, colour codes removed"
        if not text and any(part.kind is PartKind.IMAGE for part in entry.parts):
            text = next(visible(part.media_type) for part in entry.parts if part.kind is PartKind.IMAGE)
    return MessageView(role, note, entry.tokens, _preview(text), kind, source)


def _preview(text: str) -> str:
    shown, is_cut = clip(visible(text[: PREVIEW_CHARS * 4]), PREVIEW_CHARS)
    lines = shown.strip("\n").split("\n")
    if len(lines) > PREVIEW_LINES:
        lines, is_cut = lines[:PREVIEW_LINES], True
    return "\n".join(lines) + ("\n…" if is_cut or len(text) > PREVIEW_CHARS * 4 else "")


def child_bands(child_id: uuid.UUID, window: EntryWindow) -> list[ItemView]:
    """The entries of a sub-agent as quiet lines. They are in no view of the parent, so they have no fate there."""
    nothing = FateView("", Fate.DISPLAY_ONLY.value)
    views = []
    for item in window.items:
        line, is_mono = line_of(item)
        url = reverse("entry-detail", args=[child_id, item.index])
        views.append(ItemView(item, role_words(item, is_line=True), nothing, url, (), item.is_user_message, None, line, is_mono))
    return views
