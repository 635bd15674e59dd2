"""Where one is in a long history: the user turns around a window, and a map of the whole in at most 300 marks."""

import json
import re
import uuid
from dataclasses import dataclass
from itertools import pairwise

from django.core.cache import cache
from django.db.models import Subquery
from django.db.models.functions import Coalesce, Substr

from sessions_app.engine.terms import Fate, Kind, Role
from sessions_app.models import Entry, Session
from sessions_app.selectors import plans
from sessions_app.selectors.history import HistoryPage

TURNS_EACH_WAY = 50
TURN_CHARS = 90
MAX_MARKS = 300
MAP_HEIGHT = 1000
FEW_DECIDED = 12
_READ_CHARS = 700
_TEXT = re.compile(r'"text":"((?:[^"\\]|\\.)*)')


@dataclass(frozen=True)
class Turn:
    """A user message. `mark` is set on the first of a group: what became of the turns from here on."""

    index: int
    text: str
    mark: str
    is_here: bool


@dataclass(frozen=True)
class Outline:
    """Turns in order; `is_part`: there are more before or after."""

    turns: tuple[Turn, ...] = ()
    is_part: bool = False


@dataclass(frozen=True)
class DecidedPlace:
    """An entry that is pinned or excluded."""

    index: int
    word: str


@dataclass(frozen=True)
class Decided:
    """What people decided about single entries, in order."""

    places: tuple[DecidedPlace, ...] = ()

    @property
    def count(self) -> int:
        return len(self.places)

    @property
    def is_open(self) -> bool:
        """Whether so few that they may stand open in the outline."""
        return self.count <= FEW_DECIDED


@dataclass(frozen=True)
class Mark:
    """A stretch of the map: `y` and `height` are of 1000."""

    form: str
    index: int
    y: float
    height: float
    width: int


@dataclass(frozen=True)
class Minimap:
    """The whole history, each stretch as tall as its tokens."""

    marks: tuple[Mark, ...]
    entry_count: int
    boundary: int | None
    cut_y: float | None
    first: int
    last: int
    here_y: float
    here_height: float


def outline(session_id: uuid.UUID, page: HistoryPage) -> Outline:
    """At most a hundred user turns around the window; one query over the index of user messages."""
    here = page.window.first or 0
    turns = Entry.objects.filter(session_id=session_id, role=Role.USER, kind=Kind.MESSAGE, meta=False, off_branch=False)
    if page.upto is not None:
        turns = turns.filter(index__lte=page.upto)
    head = turns.annotate(head=Substr("parts", 1, _READ_CHARS)).values_list("index", "head")
    earliest = Subquery(turns.filter(index__lt=here).order_by("-index").values("index")[TURNS_EACH_WAY : TURNS_EACH_WAY + 1])
    around = list(head.filter(index__gte=Coalesce(earliest, 0)).order_by("index")[: 2 * TURNS_EACH_WAY + 2])
    before = [turn for turn in around if turn[0] < here]
    after = [turn for turn in around if turn[0] >= here]
    found = [*before[-TURNS_EACH_WAY:], *after[:TURNS_EACH_WAY]]
    is_part = len(before) > TURNS_EACH_WAY or len(after) > TURNS_EACH_WAY
    anchor = page.options.at if page.options.at is not None else here
    current = max((index for index, _ in found if index <= anchor), default=None)
    marks = _marks_by_turn(page, [index for index, _ in found])
    return Outline(tuple(Turn(index, _first_text(text), marks.get(index, ""), index == current) for index, text in found), is_part)


def decided(session: Session) -> Decided:
    """What is pinned and excluded; from the session's row, without a query."""
    held = plans.overrides_of(session)
    words = dict.fromkeys(held.pinned, Fate.PINNED.words) | dict.fromkeys(held.excluded, Fate.EXCLUDED.words)
    return Decided(tuple(DecidedPlace(index, words[index]) for index in sorted(words)))


def minimap(session: Session, page: HistoryPage) -> Minimap | None:
    """The map, or None for a history that fits a window. One query over some 300 places, cached until the history grows."""
    if page.window.first is None or page.window.last is None or session.entry_count <= page.window.last - page.window.first + 1:
        return None
    sums = _sums(session)
    total = sums[-1][1] or 1

    def height_at(index: int) -> float:
        """Where an entry stands on the map, between the two places that were read around it."""
        for (left, before), (right, after) in pairwise(sums):
            if left <= index <= right:
                share = (index - left) / max(1, right - left)
                return MAP_HEIGHT * (before + (after - before) * share) / total
        return MAP_HEIGHT

    marks = tuple(_mark(page, left, right, total) for left, right in pairwise(sums))
    boundary = page.boundary_index or None
    here = height_at(page.window.first)
    return Minimap(
        marks=marks,
        entry_count=session.entry_count,
        boundary=boundary,
        cut_y=round(height_at(boundary), 1) if boundary else None,
        first=page.window.first,
        last=page.window.last,
        here_y=round(here, 1),
        here_height=round(max(6.0, height_at(page.window.last + 1) - here), 1),
    )


def _mark(page: HistoryPage, left: tuple[int, int], right: tuple[int, int], total: int) -> Mark:
    height = MAP_HEIGHT * (right[1] - left[1]) / total
    share = (right[1] - left[1]) / max(1, right[0] - left[0])
    width = 24 if share > 2_000 else 17 if share > 400 else 10  # tokens an entry: a dump, a text, a line
    form = "summarised" if left[0] < page.boundary_index else "verbatim"
    return Mark(form, left[0], round(MAP_HEIGHT * left[1] / total, 1), round(max(0.6, height - 0.4), 1), width)


def _sums(session: Session) -> list[tuple[int, int]]:
    """Index and prefix sum of tokens at up to 301 places, the end included."""
    key = f"minimap:{session.pk}:{session.entry_count}"
    known: list[tuple[int, int]] | None = cache.get(key)
    if known is None:
        count = session.entry_count
        places = range(count) if count <= MAX_MARKS else sorted({place * count // MAX_MARKS for place in range(MAX_MARKS)})
        rows = Entry.objects.filter(session_id=session.pk, index__in=list(places)).order_by("index")
        known = [*rows.values_list("index", "prefix_tokens"), (count, session.tokens_total)]
        cache.set(key, known, 600)
    return known


def _marks_by_turn(page: HistoryPage, indexes: list[int]) -> dict[int, str]:
    """The word before the first turn of each stretch: summarised by which generation, or sent word for word."""
    folding = sorted(
        (mark.boundary_index, mark.generation) for mark in page.marks if mark.boundary_index and mark.generation <= page.generation
    )
    marks: dict[int, str] = {}
    last = ""
    for index in indexes:
        generation = next((number for boundary, number in folding if index < boundary), None)
        word = "" if not page.boundary_index else f"summarised #{generation}" if generation and index < page.boundary_index else "boundary"
        if word and word != last:
            marks[index] = word
        last = word
    return marks


def _first_text(head: str) -> str:
    """The start of the first text in the beginning of a row's JSON, which may be cut anywhere."""
    match = _TEXT.search(head)
    if match is None:
        return "(no text)"
    said = match[1].rstrip("\\") if match.end() == len(head) else match[1]
    try:
        text = json.loads(f'"{said}"')
    except ValueError:
        text = said
    line = " ".join(text.split()) or "(no text)"
    return line if len(line) <= TURN_CHARS else line[: TURN_CHARS - 1] + "…"
