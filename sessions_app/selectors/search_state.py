"""How far the search index is."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.core.cache import cache
from django.db.models import F, OuterRef, Subquery, Sum
from django.db.models.functions import Coalesce

from sessions_app.models import SearchBlock, Session
from sessions_app.selectors.search_sql import rows_of
from sessions_app.selectors.search_words import MAY_BE_ASCII, plain

CACHED_S = 10
TITLES_READ = 20_000
_KEY, _TITLES_KEY = "search_state", "search_titles"


@dataclass(frozen=True)
class IndexState:
    """Entries that stand in the index, that do not yet, and that say more than is indexed of them; and agents there are."""

    indexed: int
    missing: int
    capped: int
    agents: tuple[str, ...]


def lagging_sessions(among: Sequence[uuid.UUID] | None = None) -> list[tuple[uuid.UUID, int]]:
    """(session, first entry that is not indexed) of complete sessions, the latest active first; one query."""
    rows = Session.objects.filter(is_complete=True)
    if among is not None:
        rows = rows.filter(pk__in=among)
    last = SearchBlock.objects.filter(session=OuterRef("pk")).order_by("-first_index").values("last_index")[:1]
    counted = rows.annotate(indexed=Coalesce(Subquery(last) + 1, 0))
    return list(counted.filter(entry_count__gt=F("indexed")).order_by("-last_activity_at").values_list("pk", "indexed"))


@dataclass(frozen=True)
class PlainTitles:
    """Titles beyond ASCII in plain form, by the session's id as the database stores it; the latest active first."""

    token: str
    titles: tuple[tuple[object, str], ...]
    like_ascii: tuple[tuple[object, str], ...]  # those of them in which a term of ASCII may hide from a database


_titles = PlainTitles("", (), ())


def plain_titles() -> PlainTitles:
    """At most ten seconds old; one query. Kept in the process, since a cache would copy them for each search."""
    global _titles  # noqa: PLW0603  what is kept
    token = cache.get(_TITLES_KEY)
    if token is None or token != _titles.token:
        token = token or uuid.uuid4().hex
        rows = rows_of(
            "SELECT s.id, s.title FROM {session} s WHERE s.is_complete AND {beyond_ascii} ORDER BY s.last_activity_at DESC LIMIT %s",
            [TITLES_READ],
        )
        titles = tuple((key, plain(title)) for key, title in rows)
        like_ascii = tuple(told for told, (_, title) in zip(titles, rows, strict=True) if MAY_BE_ASCII.search(title))
        _titles = PlainTitles(token, titles, like_ascii)
        cache.set(_TITLES_KEY, token, CACHED_S)
    return _titles


def index_state() -> IndexState:
    """The sums over all sessions, at most ten seconds old; three queries."""
    state: IndexState | None = cache.get(_KEY)
    if state is None:
        entries = Session.objects.filter(is_complete=True).aggregate(total=Sum("entry_count"))["total"] or 0
        blocks = SearchBlock.objects.filter(session__is_complete=True).aggregate(
            held=Sum(F("last_index") - F("first_index") + 1), capped=Sum("capped")
        )
        indexed = blocks["held"] or 0
        agents = Session.objects.filter(is_complete=True).values_list("agent", flat=True).order_by("agent").distinct()
        state = IndexState(indexed=indexed, missing=max(0, entries - indexed), capped=blocks["capped"] or 0, agents=tuple(agents))
        cache.set(_KEY, state, CACHED_S)
    return state
