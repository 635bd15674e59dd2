"""A compacted block, or any summary, as sections that fold."""

import hashlib
import re
import uuid
from dataclasses import dataclass, replace

from django.core.cache import cache
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from sessions_app.engine.counting import estimate_text
from sessions_app.rendering.markdown import markdown_html
from sessions_app.rendering.plain import clip, first_line

MAX_SECTION_CHARS = 12_000
HEAD_CHARS = 480
"""Of an open section so much is shown, in whole paragraphs; the rest stands behind "more"."""

LONG_LIST = 8
VERSION = 2
_HEADING = re.compile(r"#{1,3}\s+(?:\d{1,2}[.)]\s*)?(.{2,80}?)\s*:?\s*#*\Z")
_NUMBERED = re.compile(r"\d{1,2}[.)]\s+(?:\*\*)?([A-Z][A-Za-z ,/&()-]{3,60}?)\s*:?(?:\*\*)?\s*:?\Z")
_REFERENCE = re.compile(r"(?<=[(>])#([0-9]{1,7})\b")
_TAG = re.compile(r"</?[a-z]+(?:-[a-z]+)*(?: [^<>]{0,200})?>\Z")
_LISTED = re.compile(r"[-*] |\d{1,3}[.)] ")
_SAID = re.compile(r"(\d[\d,]{0,9}) messages? by the user")
_USER_MESSAGES = ("all user messages", "what the user said before this point")
_CLOSED = ("what this is", "mechanical", "state, as", "user message", "what the user said", "continuation", "contract", "how to go on")


@dataclass(frozen=True)
class SectionView:
    """One section. `more` is what follows `html` behind a fold; `is_cut`: and even that is not all of it."""

    title: str
    html: SafeString
    more: SafeString
    tokens: int
    count: str  # how many things a list holds, in words; empty for prose
    is_open: bool
    is_cut: bool


@dataclass(frozen=True)
class _Section:
    """What the cache keeps of a section."""

    title: str
    head: str
    rest: str
    tokens: int
    items: int
    is_cut: bool


def sections_of(text: str) -> list[tuple[str, str]]:
    """Title and text of each section by its headings; what stands before the first has an empty title."""
    lines = [line for line in text.splitlines() if not _TAG.match(line.strip())]
    pattern = _HEADING if sum(1 for line in lines if _HEADING.match(line)) > 1 else _NUMBERED
    sections: list[tuple[str, list[str]]] = [("", [])]
    fenced = False
    for line in lines:
        fenced ^= line.lstrip().startswith("```")
        match = None if fenced else pattern.match(line.strip() if pattern is _NUMBERED else line)
        if match:
            sections.append((match[1], []))
        else:
            sections[-1][1].append(line)
    joined = [(title, "\n".join(body).strip()) for title, body in sections]
    return [(title, body) for title, body in joined if title or body]


def section_views(text: str, *, limit: int = MAX_SECTION_CHARS) -> tuple[SectionView, ...]:
    """The sections rendered, from the cache where they are known. Prose is open, long lists and what code adds are folded."""
    key = f"block:{VERSION}:{limit}:{hashlib.blake2b(text.encode(errors='replace'), digest_size=20).hexdigest()}"
    known: tuple[list[_Section], str] | None = cache.get(key)
    if known is None:
        found = sections_of(text)
        known = [_section(title, body, limit) for title, body in found], _user_messages(found)
        cache.set(key, known, 24 * 3600)
    sections, said = known
    return tuple(
        SectionView(
            title=section.title,
            html=mark_safe(section.head),  # noqa: S308  from markdown_html
            more=mark_safe(section.rest),  # noqa: S308  likewise
            tokens=section.tokens,
            count=said if section.title.lower() == _USER_MESSAGES[0] and said else f"{section.items} listed" if section.items > 1 else "",
            is_open=len(sections) == 1 or _is_open(section),
            is_cut=section.is_cut,
        )
        for section in sections
    )


def with_references(views: tuple[SectionView, ...], session_id: uuid.UUID, before: int) -> tuple[SectionView, ...]:
    """The same sections, where a number that our block gives for an entry (`(#12)`) leads to that entry.

    Only digits go into an address, and only of entries before `before`.
    """

    def link(match: re.Match[str]) -> str:
        index = int(match[1])
        if index >= before:
            return match[0]
        return f'<a class="ref" href="{reverse("entry-detail", args=[session_id, index])}">#{index}</a>'

    def linked(html: SafeString) -> SafeString:
        return mark_safe(_REFERENCE.sub(link, html))  # noqa: S308  digits into our own address

    return tuple(replace(view, html=linked(view.html), more=linked(view.more)) for view in views)


def _section(title: str, body: str, limit: int) -> _Section:
    shown, is_cut = clip(body, limit)
    head, rest = _parted(shown)
    return _Section(
        title=first_line(title, 80) or "What this is",
        head=str(markdown_html(head)),
        rest=str(markdown_html(rest)) if rest else "",
        tokens=estimate_text(body),
        items=len(_items(body)),
        is_cut=is_cut,
    )


def _is_open(section: _Section) -> bool:
    return bool(section.head) and section.items < LONG_LIST and not any(word in section.title.lower() for word in _CLOSED)


def _items(body: str) -> list[str]:
    """The lines of a text that are items of its outermost lists."""
    return [line for line in body.splitlines() if _LISTED.match(line)]


def _user_messages(sections: list[tuple[str, str]]) -> str:
    """How many of the user's messages the texts name: `7 of 7`; `7` where nobody says how many there were."""
    bodies = {title.lower(): body for title, body in sections}
    own, ours = (bodies.get(title, "") for title in _USER_MESSAGES)
    if total := _SAID.match(own):
        return f"{len(_items(ours))} of {total[1]}" if ours else ""
    return str(len(_items(own)) or "")


def _parted(text: str) -> tuple[str, str]:
    """A text in two, between paragraphs or items of a list: its beginning, and the rest where that is worth a fold."""
    if len(text) <= HEAD_CHARS * 3 // 2:
        return text, ""
    length, fenced = 0, False
    for line in text.splitlines(keepends=True):
        if length >= HEAD_CHARS and not fenced and (not line.strip() or _LISTED.match(line)):
            return text[:length], text[length:].strip("\n")
        fenced ^= line.lstrip().startswith("```")
        length += len(line)
    return text, ""
