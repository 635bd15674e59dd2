"""The addresses that lead on from a history page. Each state has one, so that any page can be kept and shared."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from django.http import QueryDict
from django.urls import reverse

from sessions_app.engine.terms import Lineage
from sessions_app.selectors.history import NO_GENERATION, HistoryPage, Layout
from sessions_app.selectors.history_window import Detail

PLACE = ("at", "before", "start")
MOST_MARKS = 60
"""So many places of compactions can be told apart along the slider."""

_LAYOUT_WORDS = {Layout.CANONICAL: "Canonical", Layout.VIEW: "Model view", Layout.SPLIT: "Split"}
_DETAIL_WORDS = {Detail.EVERYTHING: "Everything", Detail.NO_OUTPUT: "No tool output", Detail.PROMPTS: "Prompts and answers"}
_CONTEXT_WORDS = {Lineage.AGENT: "the agent's own context", Lineage.CONSOLE: "this console's view"}


@dataclass(frozen=True)
class Link:
    """One choice."""

    label: str
    url: str
    is_current: bool
    key: str = ""


@dataclass(frozen=True)
class Moment:
    """The place in time that is shown, and the way to others. `fields` keep the rest of the address.

    `marks`: the path of a line at each compaction, in a box of 1000 by 10.
    """

    entry: int
    newest: int
    is_past: bool
    now: str
    base: str
    fields: tuple[tuple[str, str], ...]
    marks: str
    since: str  # what the generation that was in force changed

    @property
    def left_out(self) -> int:
        """Entries that came later."""
        return self.newest - self.entry


@dataclass(frozen=True)
class HistoryLinks:
    """All choices of a history page."""

    here: str
    query: str
    layouts: tuple[Link, ...]
    details: tuple[Link, ...]
    generations: tuple[Link, ...]
    contexts: tuple[Link, ...]
    context_words: str
    boundary: str
    newest: str
    place: str
    turn: str  # the address of an entry in this layout, but for its index at the end
    splits: bool
    moment: Moment


def history_links(session_id: uuid.UUID, page: HistoryPage, asked: QueryDict) -> HistoryLinks:
    """The links of a page from what its address asked for."""
    base = reverse("session-detail", args=[session_id])

    def url(**changes: str | int | None) -> str:
        return _address(base, asked, changes)

    place = {"at": page.window.first} if page.window.first is not None and page.options.at is None else {}
    return HistoryLinks(
        here=_address(reverse("session-entries", args=[session_id]), asked, {}),
        query=_query(asked, {**dict.fromkeys(PLACE), "layout": page.layout.value}),
        layouts=tuple(
            Link(words, url(layout=layout.value), layout is page.layout, str(number))
            for number, (layout, words) in enumerate(_LAYOUT_WORDS.items(), 1)
        ),
        details=tuple(
            Link(words, url(detail=None if detail is Detail.EVERYTHING else detail.value), detail is page.options.detail)
            for detail, words in _DETAIL_WORDS.items()
        ),
        generations=_generations(page, url, place),
        contexts=tuple(
            Link(_CONTEXT_WORDS[context], url(context=context.value, generation=None), context is page.context and _is_default(page))
            for context in page.contexts
        )
        if len(page.contexts) > 1
        else (),
        context_words=f"shown: {_CONTEXT_WORDS[page.context]}"
        if page.generation
        else "shown: the whole history, as if nothing were folded",
        boundary=url(at=page.boundary_index, before=None, start=None),
        newest=url(at=None, before=page.entry_count if page.upto is None else page.upto + 1, start=None),
        place=_address(base, asked, {"at": 0, "before": None, "start": None}),
        turn=f"{base}?{query}&at=" if (query := _query(asked, dict.fromkeys(PLACE))) else f"{base}?at=",
        splits=page.layout is Layout.SPLIT,
        moment=_moment(base, page, asked),
    )


def _moment(base: str, page: HistoryPage, asked: QueryDict) -> Moment:
    newest = max(0, page.entry_count - 1)
    kept = QueryDict(_query(asked, dict.fromkeys((*PLACE, "at_view", "generation"))))
    places = [mark.divider_index for mark in page.marks if mark.divider_index is not None]
    step = 1 if len(places) <= MOST_MARKS else 1000 // MOST_MARKS
    return Moment(
        entry=newest if page.upto is None else page.upto,
        newest=newest,
        is_past=page.upto is not None,
        now=_address(base, asked, dict.fromkeys((*PLACE, "at_view"))),
        base=base,
        fields=tuple((name, value) for name, values in kept.lists() for value in values),
        marks="".join(dict.fromkeys(f"M{1000 * place // max(1, newest) // step * step} 0v10" for place in places)),
        since=_since(page),
    )


def _since(page: HistoryPage) -> str:
    """What the shown view lacks or keeps against the one before its generation, in words."""
    row = page.checkpoint_of(page.generation)
    held = page.checkpoint
    told = [
        (row.entries_folded if row else 0, "more trimmed" if row and row.outcome == "trimmed" else "more summarised"),
        (len(held.pinned) if held else 0, "pinned"),
        (len(held.cleared) if held else 0, "cleared"),
        (len(held.excluded) if held else 0, "excluded"),
    ]
    words = ", ".join(f"{count:,} {word}" for count, word in told if count)
    return f"since {f'#{row.revert_to}' if row.revert_to else 'the whole history'}: {words}" if row and words else words


def _is_default(page: HistoryPage) -> bool:
    return page.options.generation is None and page.upto is None


def _generations(page: HistoryPage, url: Callable[..., str], place: dict[str, int]) -> tuple[Link, ...]:
    if not page.marks:
        return ()
    links = [Link("none", url(generation=NO_GENERATION, at_view=None, **place), page.generation == NO_GENERATION)]
    for row in page.offered:
        label = f"#{row.generation}" + (" active" if row.is_active else "")
        links.append(Link(label, url(generation=row.generation, at_view=None), row.generation == page.generation))
    return tuple(links)


def _query(asked: QueryDict, changes: dict[str, str | int | None]) -> str:
    query = asked.copy()
    for name, value in changes.items():
        query.pop(name, None)
        if value is not None:
            query[name] = str(value)
    return query.urlencode()


def _address(base: str, asked: QueryDict, changes: dict[str, str | int | None]) -> str:
    query = _query(asked, changes)
    return f"{base}?{query}" if query else base
