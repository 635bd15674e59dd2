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
OPEN_CHARS = 900
MAX_OPEN = 5
VERSION = 1
_HEADING = re.compile(r"#{1,3}\s+(?:\d{1,2}[.)]\s*)?(.{2,80}?)\s*:?\s*#*\Z")
_NUMBERED = re.compile(r"\d{1,2}[.)]\s+(?:\*\*)?([A-Z][A-Za-z ,/&()-]{3,60}?)\s*:?(?:\*\*)?\s*:?\Z")
_REFERENCE = re.compile(r"(?<=[(>])#([0-9]{1,7})\b")
_TAG = re.compile(r"</?[a-z]+(?:-[a-z]+)*(?: [^<>]{0,200})?>\Z")
_CLOSED = ("mechanical", "user message", "continuation", "contract", "how to go on")


@dataclass(frozen=True)
class SectionView:
    """One section. `is_cut`: only its beginning is shown here."""

    title: str
    html: SafeString
    tokens: int
    is_open: bool
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
    """The sections rendered, from the cache where they are known."""
    key = f"block:{VERSION}:{limit}:{hashlib.blake2b(text.encode(errors='replace'), digest_size=20).hexdigest()}"
    known = cache.get(key)
    if known is None:
        known = [_plain_view(title, body, limit) for title, body in sections_of(text)]
        cache.set(key, known, 24 * 3600)
    views = []
    opened = 0
    for title, html, tokens, length, is_cut in known:
        is_open = len(known) == 1 or (
            length <= OPEN_CHARS and opened < MAX_OPEN and not any(word in title.lower() for word in _CLOSED) and bool(length)
        )
        opened += is_open
        views.append(SectionView(title, mark_safe(html), tokens, is_open, is_cut))  # noqa: S308  from markdown_html
    return tuple(views)


def with_references(views: tuple[SectionView, ...], session_id: uuid.UUID, before: int) -> tuple[SectionView, ...]:
    """The same sections, where a number that our block gives for an entry (`(#12)`) leads to that entry.

    Only digits go into an address, and only of entries before `before`.
    """

    def link(match: re.Match[str]) -> str:
        index = int(match[1])
        if index >= before:
            return match[0]
        return f'<a class="ref" href="{reverse("entry-detail", args=[session_id, index])}">#{index}</a>'

    return tuple(replace(view, html=mark_safe(_REFERENCE.sub(link, view.html))) for view in views)  # noqa: S308  digits into our own address


def _plain_view(title: str, body: str, limit: int) -> tuple[str, str, int, int, bool]:
    shown, is_cut = clip(body, limit)
    return first_line(title, 80) or "What this is", str(markdown_html(shown)), estimate_text(body), len(body), is_cut
