"""Hits of a search: over all sessions, best first, or within one, in its order."""

import base64
import binascii
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

import msgspec

from sessions_app.engine.entries import Part
from sessions_app.engine.terms import Kind, Role
from sessions_app.models import Entry
from sessions_app.selectors.agents import agent_name
from sessions_app.selectors.keyset import CursorError
from sessions_app.selectors.search_query import SearchQuery
from sessions_app.selectors.search_snippets import Piece, snippet, title_pieces
from sessions_app.selectors.search_sql import SearchFilters, escaped_like, moment_of, rows_of, search_index, session_of
from sessions_app.selectors.search_state import IndexState, index_state, plain_titles
from sessions_app.selectors.search_text import blob_texts, blobs_of, parts_of, searchable
from sessions_app.selectors.search_words import plain
from sessions_app.selectors.session_filters import Choice, FilterChoices

PAGE_HITS = 50
TITLE_HITS = 5
TITLES_READ = 500
COUNTED = 1_000
INSIDE_A_SESSION = 300
BLOCKS_A_READ, READS, READS_FOR_ONE = 8, 5, 20
"""Where no index of words helps, so many blocks of entries are read for one page, and so many times until there is a hit on it at
all; the next page goes on from there."""


@dataclass(frozen=True)
class Hit:
    """An entry that was found."""

    session_id: uuid.UUID
    title: str
    agent: str
    is_sub_agent: bool
    index: int
    role: str
    kind: str
    timestamp: str
    pieces: tuple[Piece, ...]
    is_capped: bool  # it says more than is searched

    @property
    def speaker(self) -> str:
        """Who says it, or what it is: whichever tells more."""
        return self.role if self.role == Role.TOOL or self.kind == Kind.MESSAGE else self.kind


@dataclass(frozen=True)
class TitleHit:
    """A session whose title was found."""

    session_id: uuid.UUID
    pieces: tuple[Piece, ...]
    agent: str
    entries: int
    active_at: datetime


class Place(msgspec.Struct, frozen=True, array_like=True):
    """Where the next page goes on: behind a ranked hit, or within the blocks that are read."""

    rank: float | None = None
    entry: int = 0
    block: int | None = None
    index: int = -1
    first: int = 1  # number of its first hit

    def encode(self) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")

    @staticmethod
    def decode(text: str) -> "Place | None":
        """The place that `encode` wrote, None for an empty text. Raises `CursorError` on anything else."""
        if not text:
            return None
        try:
            place = msgspec.json.decode(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True), type=Place)
        except (msgspec.MsgspecError, binascii.Error, ValueError) as error:
            raise CursorError from error
        if abs(place.entry) >= 2**62 or abs(place.block or 0) >= 2**62:
            raise CursorError
        return place


@dataclass(frozen=True)
class SearchPage:
    """One page of hits, and what is to be said about them."""

    query: SearchQuery
    filters: SearchFilters
    titles: tuple[TitleHit, ...]
    hits: tuple[Hit, ...]
    first: int
    total: int  # entries that hold the words, COUNTED at most; only where nothing else narrows them
    next: str
    state: IndexState

    @property
    def last(self) -> int:
        return self.first + len(self.hits) - 1

    @property
    def has_more_than_counted(self) -> bool:
        return self.total >= COUNTED


@dataclass(frozen=True)
class _Found:
    """An entry in the making of a page."""

    entry: int
    rank: float | None = None
    total: int | None = None  # of all that are ranked from its page on, where that was counted along with them


def search_page(query: SearchQuery, filters: SearchFilters, after: str = "") -> SearchPage:
    """At most `PAGE_HITS` hits from the place `after` on. The number of queries does not grow with the sessions.

    Raises `CursorError`.
    """
    place = Place.decode(after) or Place()
    if query.is_empty:
        return SearchPage(query, filters, (), (), 1, 0, "", index_state())
    found, following = _found(query, filters, place)
    hits = hits_of(query, [one.entry for one in found])
    is_narrowed = filters.is_set or query.signs or not query.has_words
    return SearchPage(
        query=query,
        filters=filters,
        titles=_titles(query, filters) if not after else (),
        hits=hits,
        first=place.first,
        total=0 if is_narrowed else _total(query, found, place),
        next=msgspec.structs.replace(following, first=place.first + len(hits)).encode() if following else "",
        state=index_state(),
    )


def _total(query: SearchQuery, found: Sequence[_Found], place: Place) -> int:
    counted = found[0].total if found and place.rank is None else None
    return search_index().counted(query, COUNTED) if counted is None else min(counted, COUNTED)


def _found(query: SearchQuery, filters: SearchFilters, place: Place) -> tuple[list[_Found], Place | None]:
    """Entries for one page, and the place behind them if there may be more: first by words, then what stands inside words."""
    found: list[_Found] = []
    if query.has_words and not query.signs and place.block is None:
        after = None if place.rank is None else (place.rank, place.entry)
        rows = search_index().ranked(query, filters, after, PAGE_HITS + 1)
        found = [_Found(entry, rank=rank, total=total) for rank, entry, total in rows[:PAGE_HITS]]
        if len(rows) > PAGE_HITS:
            return found, Place(rank=found[-1].rank, entry=found[-1].entry)
    if query.has_words and not query.signs and not query.looks_inside_words:
        return found, None
    if query.has_words and not query.signs and not query.pieces:
        return found, None
    more, following = inside(query, filters, place, PAGE_HITS - len(found), READS if found else READS_FOR_ONE)
    return found + more, following


def inside(
    query: SearchQuery, filters: SearchFilters, place: Place, limit: int, most_reads: int = READS
) -> tuple[list[_Found], Place | None]:
    """Entries that hold the terms somewhere, and as words not all of them; verified on their texts, the newest blocks first.

    Blocks are read a few at a time, `READS` times; where nothing is found so, up to `most_reads` times.
    """
    found: list[_Found] = []
    up_to = place.block
    for read in range(most_reads):
        if read >= READS and found:
            break
        blocks = search_index().blocks(query, filters, up_to, BLOCKS_A_READ + 1)
        holding = [
            (block, index, entry)
            for block, index, entry, text in _texts(blocks[:BLOCKS_A_READ], filters)
            if (block != place.block or index > place.index) and query.holds(plain(text))
        ]
        known = search_index().having_words(query, [entry for _, _, entry in holding]) if not query.signs else set()
        for block, index, entry in holding:
            if entry in known:
                continue
            if len(found) == limit:
                return found, Place(block=block, index=index - 1)
            found.append(_Found(entry))
        if len(blocks) <= BLOCKS_A_READ:
            return found, None
        up_to = blocks[BLOCKS_A_READ]
    return found, Place(block=up_to)


def inside_session(query: SearchQuery, filters: SearchFilters) -> tuple[list[int], bool]:
    """Indexes of at most a few hundred entries that hold the terms somewhere, and whether more was left unread."""
    found, following = inside(query, filters, Place(), INSIDE_A_SESSION)
    return list(Entry.objects.filter(pk__in=[one.entry for one in found]).values_list("index", flat=True)), following is not None


def _texts(blocks: Sequence[int], filters: SearchFilters) -> Iterator[tuple[int, int, int, str]]:
    """(block, index, entry id, text) of the entries of these blocks that the filters let through."""
    if not blocks:
        return
    condition, values = filters.conditions()
    marks = ", ".join(["%s"] * len(blocks))
    rows = rows_of(  # marks and conditions of our own
        "SELECT b.id, {place}, e.id, e.parts FROM {block} b"  # noqa: S608
        " JOIN {entry} e ON e.session_id = b.session_id AND {place} BETWEEN b.first_index AND b.last_index"
        f" JOIN {{session}} s ON s.id = e.session_id WHERE b.id IN ({marks}){condition} ORDER BY b.id DESC, {{place}}",
        [*blocks, *values],
    )
    parsed = [(block, index, entry, parts_of(parts)) for block, index, entry, parts in rows]
    long_texts = blob_texts({blob for *_, parts in parsed for blob in blobs_of(parts)})
    for block, index, entry, parts in parsed:
        yield block, index, entry, searchable(parts, long_texts)[0]


def hits_of(query: SearchQuery, ids: Sequence[int]) -> tuple[Hit, ...]:
    """The hits of these entries, in this order, with what stands around the terms; two queries at most."""
    if not ids:
        return ()
    marks = ", ".join(["%s"] * len(ids))
    rows = rows_of(  # marks alone
        "SELECT e.id, e.session_id, s.title, s.agent, s.relation, {place}, e.role, e.kind, e.timestamp, e.parts FROM {entry} e"  # noqa: S608
        f" JOIN {{session}} s ON s.id = e.session_id WHERE e.id IN ({marks}) AND s.is_complete",
        ids,
    )
    by_id = {row[0]: row[1:-1] for row in rows}
    snippets = dict(_snippets(query, ((row[0], parts_of(row[-1])) for row in rows)))
    return tuple(
        Hit(
            session_id=session_of(session_id),
            title=title or "Untitled",
            agent=agent_name(agent),
            is_sub_agent=relation == "sub_agent",
            index=index,
            role=role,
            kind=kind,
            timestamp=timestamp,
            pieces=snippets[key][0],
            is_capped=snippets[key][1],
        )
        for key, (session_id, title, agent, relation, index, role, kind, timestamp) in ((one, by_id[one]) for one in ids if one in by_id)
    )


def _snippets(query: SearchQuery, entries: Iterable[tuple[int, tuple[Part, ...]]]) -> Iterator[tuple[int, tuple[tuple[Piece, ...], bool]]]:
    """Snippets by entry. Long texts are fetched only for entries whose beginning does not hold the terms."""
    later = []
    for key, parts in entries:
        text, is_capped = searchable(parts, {})
        blobs = tuple(blobs_of(parts))
        pieces = snippet(text, query.wanted)
        if blobs and not any(piece.is_match for piece in pieces):
            later.append((key, parts, blobs))
        else:
            yield key, (pieces, is_capped or any(part.chars > 73_728 for part in parts))
    long_texts = blob_texts({blob for _, _, blobs in later for blob in blobs})
    for key, parts, _ in later:
        text, is_capped = searchable(parts, long_texts)
        yield key, (snippet(text, query.wanted), is_capped)


def _titles(query: SearchQuery, filters: SearchFilters) -> tuple[TitleHit, ...]:
    """Sessions with all terms in their titles, the latest active first; none where hits are narrowed to entries of some kind.

    Databases compare ASCII alone: titles beyond it are compared here.
    """
    if filters.role or filters.kind or filters.session:
        return ()
    condition, values = filters.session_conditions()
    is_ascii = all(term.needle.isascii() for term in query.wanted)
    known = plain_titles()
    keys = islice((key for key, title in (known.like_ascii if is_ascii else known.titles) if query.is_in_title(title)), TITLES_READ)
    found = [*keys]
    written = "".join(f" AND {search_index().title_has}" for _ in query.wanted) if is_ascii else " AND 1 = 0"
    likes = [f"%{escaped_like(max(term.needle.split(), key=len))}%" for term in query.wanted] if is_ascii else []
    marks = f" OR s.id IN ({', '.join(['%s'] * len(found))})" if found else ""
    rows = rows_of(  # conditions of our own
        "SELECT s.id, s.title, s.agent, s.entry_count, s.last_activity_at FROM {session} s"  # noqa: S608
        f" WHERE s.is_complete{condition} AND ((1 = 1{written}){marks}) ORDER BY s.last_activity_at DESC LIMIT %s",
        [*values, *likes, *found, TITLES_READ],
    )
    hits = islice((row for row in rows if query.is_in_title(plain(row[1]))), TITLE_HITS)
    return tuple(
        TitleHit(session_of(key), title_pieces(title, query.wanted), agent_name(agent), entries, moment_of(active_at))
        for key, title, agent, entries, active_at in hits
    )


def search_choices(filters: SearchFilters) -> tuple[FilterChoices, ...]:
    """What the filters offer."""
    offered = (
        FilterChoices("agent", "Agent", tuple(Choice(agent, agent_name(agent)) for agent in index_state().agents)),
        FilterChoices("role", "Role", tuple(Choice(role, role) for role in Role)),
        FilterChoices("kind", "Kind", tuple(Choice(kind, kind) for kind in Kind)),
    )
    return tuple(choice.choosing(getattr(filters, choice.name), getattr(filters, choice.name)) for choice in offered)
