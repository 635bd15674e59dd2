"""How far the search index is."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.core.cache import cache
from django.db.models import F, OuterRef, Subquery, Sum
from django.db.models.functions import Coalesce

from sessions_app.models import SearchBlock, Session

CACHED_S = 10
_KEY = "search_state"


@dataclass(frozen=True)
class IndexState:
    """Entries that stand in the index, that do not yet, and that say more than is indexed of them."""

    indexed: int
    missing: int
    capped: int


def lagging_sessions(among: Sequence[uuid.UUID] | None = None) -> list[tuple[uuid.UUID, int]]:
    """(session, first entry that is not indexed) of complete sessions, the latest active first; one query."""
    rows = Session.objects.filter(is_complete=True)
    if among is not None:
        rows = rows.filter(pk__in=among)
    last = SearchBlock.objects.filter(session=OuterRef("pk")).order_by("-first_index").values("last_index")[:1]
    counted = rows.annotate(indexed=Coalesce(Subquery(last) + 1, 0))
    return list(counted.filter(entry_count__gt=F("indexed")).order_by("-last_activity_at").values_list("pk", "indexed"))


def index_state() -> IndexState:
    """The sums over all sessions, at most ten seconds old; two queries."""
    state: IndexState | None = cache.get(_KEY)
    if state is None:
        entries = Session.objects.filter(is_complete=True).aggregate(total=Sum("entry_count"))["total"] or 0
        blocks = SearchBlock.objects.filter(session__is_complete=True).aggregate(
            held=Sum(F("last_index") - F("first_index") + 1), capped=Sum("capped")
        )
        indexed = blocks["held"] or 0
        state = IndexState(indexed=indexed, missing=max(0, entries - indexed), capped=blocks["capped"] or 0)
        cache.set(_KEY, state, CACHED_S)
    return state
