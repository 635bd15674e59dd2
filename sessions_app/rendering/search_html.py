"""Hits of a search: text as everywhere, with what was found marked.

Fifty a page, so they are put together here: as a template each took ten times as long as the search for it.
"""

import re
import uuid
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import quote

from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from sessions_app.rendering.plain import plain_html
from sessions_app.selectors.search import Hit
from sessions_app.selectors.search_snippets import Piece

_TO_ESCAPE = re.compile(r"[^ !#-%(-;=?-~]")  # all but printable ASCII without " & ' < >
_CAPPED = ' <span class="tag" title="Only the first 64 kB and the last 8 kB of a text are searched">long, searched in part</span>'


def _text_html(text: str) -> str:
    """As `plain_html`. Most pieces hold nothing to be escaped, and are told so at one look."""
    return plain_html(text) if _TO_ESCAPE.search(text) else text


def snippet_html(pieces: Iterable[Piece]) -> SafeString:
    """The pieces escaped, matches within `<mark>`."""
    return mark_safe("".join(f"<mark>{_text_html(piece.text)}</mark>" if piece.is_match else _text_html(piece.text) for piece in pieces))  # noqa: S308


@lru_cache(maxsize=4_096)
def _address(session_id: uuid.UUID) -> str:
    """Asked for once per hit of a page, and by the same few sessions' hits again and again."""
    return reverse("session-detail", args=[session_id])


def hits_html(hits: Iterable[Hit], query: str) -> SafeString:
    """The hits of a page."""
    return mark_safe("".join(hit_html(hit, quote(query, safe="")) for hit in hits))  # noqa: S308


def hit_html(hit: Hit, query: str) -> str:
    """One hit of a list of all sessions. Its link opens the session around the entry, with the same search (quoted) in it."""
    where = f"{_address(hit.session_id)}?layout=canonical&amp;q={query}&amp;at={hit.index}#e{hit.index}"
    time = f' · <time datetime="{_text_html(hit.timestamp)}">{_text_html(hit.timestamp[:10])}</time>' if hit.timestamp else ""
    sub_agent = '<span class="tag">sub-agent</span>' if hit.is_sub_agent else ""
    return (
        f'<li class="hit" data-row id="hit-{hit.session_id}-{hit.index}"><div class="hit__head">'
        f'<a class="hit__link" href="{where}">{_text_html(hit.title)}</a>{sub_agent}'
        f'<span class="hit__end quiet">{_text_html(hit.agent)} · entry {hit.index:,}{time}</span></div>'
        f'<p class="hit__text"><span class="hit__who">{_text_html(hit.speaker)}</span>'
        f"<span>{snippet_html(hit.pieces)}{_CAPPED if hit.is_capped else ''}</span></p></li>"
    )
