"""What stands around a hit: pieces of text, of which some are matches. A page marks those; nothing here is markup."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from sessions_app.selectors.search_query import Term
from sessions_app.selectors.search_words import Folded, fold

LEAD_CHARS, SNIPPET_CHARS, TAIL_CHARS = 60, 260, 24
FIRST_LOOK, MAX_LOOKED_AT = 4_096, 400_000
"""Nearly every match stands near the beginning: only where none does is more of a text folded."""

LOOKED_FOR = 4  # matches of one term, to choose what is shown
WHOLE_CHARS = 32  # so far on either side of a match its characters' other parts are looked for

_BLANK = re.compile(r"\s+")
_LAST_WORD = re.compile(r"\s+\S*\Z")

Span = tuple[int, int]
_Find = Callable[..., Iterator[Span]]


@dataclass(frozen=True)
class Piece:
    """Some characters of a snippet."""

    text: str
    is_match: bool = False


def snippet(text: str, terms: Sequence[Term]) -> tuple[Piece, ...]:
    """About 260 characters where most of the terms stand, white space made single blanks; the beginning where none does."""
    folded = fold(text[:FIRST_LOOK])
    spans, finds = _spans(folded, terms, only_words=len(text) > FIRST_LOOK)
    best = _best(spans)
    if len(text) > FIRST_LOOK and (best is None or best[0] + 3 * SNIPPET_CHARS > FIRST_LOOK):
        folded = fold(text[:MAX_LOOKED_AT])
        spans, finds = _spans(folded, terms)
        best = _best(spans)
    start, end = _window(text, best)
    shown = (folded.place_of(start), folded.place_of(min(end, MAX_LOOKED_AT)) + 1)
    pieces = _pieces(text, (folded.source(*span) for find in finds for span in find(folded.text, *shown) if span[1] > span[0]), start, end)
    before = (Piece("…"),) if start else ()
    return (*before, *pieces, *((Piece("…"),) if end < len(text) else ()))


def title_pieces(title: str, terms: Sequence[Term]) -> tuple[Piece, ...]:
    """A whole title with its matches."""
    folded = fold(title)
    finds = _spans(folded, terms)[1]
    return _pieces(title, (folded.source(*span) for find in finds for span in find(folded.text)), 0, len(title)) or (Piece("Untitled"),)


def _spans(folded: Folded, terms: Sequence[Term], *, only_words: bool = False) -> tuple[list[list[Span]], list[_Find]]:
    """Where each term stands first in a text, and how it is found there: as words, or, where no term does, inside of them."""
    finds: list[_Find] = [term.found_as_words for term in terms]
    found = [list(islice(find(folded.text), LOOKED_FOR)) for find in finds]
    if not any(found) and not only_words:
        finds = [term.found_as_text for term in terms]
        found = [list(islice(find(folded.text), LOOKED_FOR)) for find in finds]
    return [[folded.source(*span) for span in spans] for spans in found], finds


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
    least = max(end - TAIL_CHARS, first[1] if first else 0)
    if least < end and (word := _LAST_WORD.search(text, least, end)):
        end = word.start()
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
        if first < place or first >= end or (last > end and pieces):
            continue  # a part of a word is no match
        last = min(last, end)  # noqa: PLW2901  a single match that is longer than what is shown
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
