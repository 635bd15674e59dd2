"""What stands around a hit: pieces of text, of which some are matches. A page marks those; nothing here is markup."""

import re
from dataclasses import dataclass

from sessions_app.selectors.search_text import fold

LEAD_CHARS, SNIPPET_CHARS = 60, 260
FIRST_LOOK, MAX_LOOKED_AT = 4_096, 400_000
"""Nearly every match stands near the beginning: only where none does is more of a text folded."""

Marks = tuple[re.Pattern[str], ...]
"""Patterns for folded text; the first one that matches anywhere in it counts."""

_BLANK = re.compile(r"\s+")


@dataclass(frozen=True)
class Piece:
    """Some characters of a snippet."""

    text: str
    is_match: bool = False


def snippet(text: str, marks: Marks) -> tuple[Piece, ...]:
    """About 260 characters around the first match, white space made single blanks; the beginning where nothing matches."""
    folded = fold(text[:FIRST_LOOK])
    pattern, first = _first(marks[:1], folded)
    if first is None or (len(text) > FIRST_LOOK and first.start() + 3 * SNIPPET_CHARS > FIRST_LOOK):
        folded = fold(text[:MAX_LOOKED_AT])
        pattern, first = _first(marks, folded)
    start = max(0, first.start() - LEAD_CHARS) if first else 0
    if start:
        blank = _BLANK.search(text, start, start + LEAD_CHARS // 2)
        start = blank.end() if blank else start
    end = min(len(text), max(start + SNIPPET_CHARS, first.end() if first and first.end() - start < 2 * SNIPPET_CHARS else 0))
    pieces = _pieces(text, folded, pattern, start, end)
    before = (Piece("…"),) if start else ()
    return (*before, *pieces, *((Piece("…"),) if end < len(text) else ()))


def title_pieces(title: str, marks: Marks) -> tuple[Piece, ...]:
    """A whole title with its matches."""
    folded = fold(title)
    return _pieces(title, folded, _first(marks, folded)[0], 0, len(title)) or (Piece("Untitled"),)


def _first(marks: Marks, folded: str) -> tuple[re.Pattern[str], re.Match[str] | None]:
    """The pattern that counts, and its first match."""
    for pattern in marks:
        if found := pattern.search(folded):
            return pattern, found
    return marks[-1], None


def _pieces(text: str, folded: str, pattern: re.Pattern[str], start: int, end: int) -> tuple[Piece, ...]:
    """The text from `start` to `end`, apart where the pattern matches in its folded form."""
    pieces: list[Piece] = []
    place = start
    for found in pattern.finditer(folded, start, min(end, len(folded))):
        if found.end() > found.start() >= place:
            pieces += [Piece(_blanked(text[place : found.start()])), Piece(_blanked(text[found.start() : found.end()]), is_match=True)]
            place = found.end()
    pieces.append(Piece(_blanked(text[place:end])))
    return tuple(piece for piece in pieces if piece.text)


def _blanked(text: str) -> str:
    return _BLANK.sub(" ", text)
