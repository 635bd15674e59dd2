"""Who searched for what: a search shows text of sessions, so it is written down as a read is."""

import hashlib

from django.core.cache import cache

from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType

GAP_S = 60


def record_search(*, actor: Actor, query: str, hits: int, session_id: str = "", filters: dict[str, str] | None = None) -> None:
    """Writes down that `actor` was shown hits of this query; nothing when that was done within the last minute."""
    person = f"{actor.kind}:{actor.id}:{session_id}:{query}"
    if not cache.add(f"searches:{hashlib.sha256(person.encode(errors='replace')).hexdigest()}", 1, GAP_S):
        return
    log.append(
        log.access_stream(),
        EventType.SEARCH_PERFORMED,
        actor=actor,
        target=("session", session_id) if session_id else ("search", ""),
        payload={"query": query, "hits_shown": hits, "filters": filters or {}},
    )
