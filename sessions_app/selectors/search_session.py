"""Hits within one session, in its order, and the way from one to the next."""

import bisect
from dataclasses import dataclass

from sessions_app.models import Entry, Session
from sessions_app.selectors.search import Hit, hits_of, inside_session
from sessions_app.selectors.search_query import SearchQuery
from sessions_app.selectors.search_sql import SearchFilters, key_of, search_index

MOST = 2_000
LISTED = 24


@dataclass(frozen=True)
class SessionHits:
    """What a query finds in a session, from where the reader is."""

    query: SearchQuery
    indexes: tuple[int, ...]
    is_cut: bool  # there are more than these
    is_partial: bool  # not everything was read
    are_words: bool  # there are so many that parts of words were not looked for
    listed: tuple[Hit, ...]
    at: int | None
    position: int  # from 1; 0 where the reader is at no hit
    is_walking: bool  # whether the reader asked for a place in the session
    previous: int | None
    next: int | None


def session_hits(session: Session, query: SearchQuery, at: int | None) -> SessionHits:
    """The hits, and those around entry `at` with their texts. Reads a bounded part of the session, whatever its length."""
    indexes, is_cut, is_partial, are_words = _indexes(session, query, at)
    place = bisect.bisect_left(indexes, at) if at is not None else 0
    is_at_hit = at is not None and place < len(indexes) and indexes[place] == at
    following = place + 1 if is_at_hit else place
    around = indexes[max(0, place - LISTED // 3) :][:LISTED]
    ids = dict(Entry.objects.filter(session=session, index__in=around).values_list("index", "pk"))
    return SessionHits(
        query=query,
        indexes=tuple(indexes),
        is_cut=is_cut,
        is_partial=is_partial,
        are_words=are_words,
        listed=hits_of(query, [ids[index] for index in around if index in ids]),
        at=at if is_at_hit else None,
        position=place + 1 if is_at_hit else 0,
        is_walking=at is not None,
        previous=indexes[place - 1] if place else None,
        next=indexes[following] if following < len(indexes) else None,
    )


def _indexes(session: Session, query: SearchQuery, at: int | None) -> tuple[list[int], bool, bool, bool]:
    """Indexes of hits in order, whether there are more, whether only a part was read, and whether parts of words are left out."""
    if query.is_empty:
        return [], False, False, False
    found: list[int] = []
    if query.has_words and not query.signs:
        entries = Entry.objects.filter(session=session)
        first, last = (entries.order_by(order).values_list("pk", flat=True).first() or 0 for order in ("index", "-index"))
        key = key_of(session.pk)
        found = search_index().in_order(query, key, (first, last), MOST + 1)
        if len(found) > MOST:
            if at is not None and at > found[-1]:
                start = entries.filter(index__gte=at).order_by("index").values_list("pk", flat=True).first() or last
                found = search_index().in_order(query, key, (start, last), MOST + 1)
            return found[:MOST], True, False, False
        looks_inside = query.looks_inside_words and bool(query.pieces)
        if len(found) >= LISTED or not looks_inside:
            return found, False, False, looks_inside
    more, is_partial = inside_session(query, SearchFilters(session=str(session.pk)))
    return sorted({*found, *more}), False, is_partial, False
