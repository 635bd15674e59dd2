"""Snippets of a search: text as everywhere, with what was found marked."""

from collections.abc import Iterable

from django.utils.safestring import SafeString, mark_safe

from sessions_app.rendering.plain import plain_html
from sessions_app.selectors.search_snippets import Piece


def snippet_html(pieces: Iterable[Piece]) -> SafeString:
    """The pieces escaped, matches within `<mark>`."""
    return mark_safe("".join(f"<mark>{plain_html(piece.text)}</mark>" if piece.is_match else plain_html(piece.text) for piece in pieces))  # noqa: S308
