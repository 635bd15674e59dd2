"""What stands around a hit: pieces of text, of which some are matches. A page marks those; nothing here is markup."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from sessions_app.selectors.search_query import Term
from sessions_app.selectors.search_words import Folded, fold

LEAD_CHARS, SNIPPET_CHARS = 60, 260
FIRST_LOOK, MAX_LOOKED_AT = 4_096, 400_000
"""Nearly every match stands near the beginning: only where none does is more of a text folded."""

LOOKED_FOR = 64  # matches of one term
WHOLE_CHARS = 32  # so far on either side of a match its characters' other parts are looked for

_BLANK = re.compile(r"\s+")

Span = tuple[int, int]


@dataclass(frozen=True)
class Piece:
    """Some characters of a snippet."""

    text: str
    is_match: bool = False


def snippet(text: str, terms: Sequence[Term]) -> tuple[Piece, ...]:
    """About 260 characters where most of the terms stand, white space made single blanks; the beginning where none does."""
    spans = _spans(fold(text[:FIRST_LOOK]), terms, only_words=len(text) > FIRST_LOOK)
    best = _best(spans)
    if len(text) > FIRST_LOOK and (best is None or best[0] + 3 * SNIPPET_CHARS > FIRST_LOOK):
        spans = _spans(fold(text[:MAX_LOOKED_AT]), terms)
        best = _best(spans)
    start, end = _window(text, best)
    pieces = _pieces(text, [span for found in spans for span in found if span[0] >= start and span[1] <= end], start, end)
    before = (Piece("…"),) if start else ()
    return (*before, *pieces, *((Piece("…"),) if end < len(text) else ()))


def title_pieces(title: str, terms: Sequence[Term]) -> tuple[Piece, ...]:
    """A whole title with its matches."""
    spans = _spans(fold(title), terms)
    return _pieces(title, [span for found in spans for span in found], 0, len(title)) or (Piece("Untitled"),)


def _spans(folded: Folded, terms: Sequence[Term], *, only_words: bool = False) -> list[list[Span]]:
    """Where each term stands in a text: as words, or, where no term does, inside of them."""
    found = [list(islice(term.found_as_words(folded.text), LOOKED_FOR)) for term in terms]
    if not any(found) and not only_words:
        found = [list(islice(term.found_as_text(folded.text), LOOKED_FOR)) for term in terms]
    return [[folded.source(*span) for span in spans if span[1] > span[0]] for spans in found]


def _best(spans: Sequence[Sequence[Span]]) -> Span | None:
    """The first match behind which, within the length of a snippet, most of the terms stand."""
    present = [found for found in spans if found]
    if len(present) < 2:
        return present[0][0] if present else None
    best, most = None, 0
    starts = [[start for start, _ in found] for found in present]
    for span in sorted(span for found in present for span in found):
        reach = span[0] + SNIPPET_CHARS - LEAD_CHARS
        count = sum((place := bisect_left(one, span[0])) < len(one) and one[place] < reach for one in starts)
        if count > most:
            best, most = span, count
        if most == len(present):
            break
    return best


def _window(text: str, first: Span | None) -> Span:
    """From where to where the text is shown, so that no character is cut in two."""
    start = max(0, first[0] - LEAD_CHARS) if first else 0
    if start and first:
        blank = _BLANK.search(text, start, min(start + LEAD_CHARS // 2, first[0]))
        start = blank.end() if blank else start
    end = max(start + SNIPPET_CHARS, first[1] if first and first[1] - start < 2 * SNIPPET_CHARS else 0)
    if end >= len(text):
        return whole(text, start, len(text))[0], len(text)
    return whole(text, start, end)


def _pieces(text: str, spans: Iterable[Span], start: int, end: int) -> tuple[Piece, ...]:
    """The text from `start` to `end`, apart at the matches; those that touch are one."""
    merged: list[Span] = []
    for span in sorted(whole(text, *span) for span in spans):
        if merged and span[0] <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(span[1], merged[-1][1]))
        else:
            merged.append(span)
    pieces: list[Piece] = []
    place = start
    for first, last in merged:
        pieces += [Piece(_blanked(text[place:first])), Piece(_blanked(text[first:last]), is_match=True)]
        place = last
    pieces.append(Piece(_blanked(text[place:end])))
    return tuple(piece for piece in pieces if piece.text)


def whole(text: str, start: int, end: int) -> Span:
    """The span, and what belongs to the characters at its ends: their accents, joiners, tones of skin, other halves of flags."""
    around = text[max(0, start - 1) : end + 1]
    if around.isascii():
        return start, end
    first, last = max(0, start - WHOLE_CHARS), end + WHOLE_CHARS
    import regex  # noqa: PLC0415  a twentieth of a second, which most texts do not need

    for found in regex.finditer(r"\X", text, pos=first, endpos=min(len(text), last)):
        if found.start() < start < found.end():
            start = found.start()
        if found.start() < end < found.end():
            return start, found.end()
    return start, end


def _blanked(text: str) -> str:
    return _BLANK.sub(" ", text)
