"""Refusals as events, so many and no more: whoever is refused over and over must not be able to fill the log."""

import hashlib
from datetime import UTC, datetime

from django.core.cache import cache

from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import ActorKind, EventResult

WINDOW_S = 60
MOST_OF_ONE = 60
"""In a minute, of one person who is signed in, whatever they ask for; the same thing is written once."""

MOST_OF_NOBODY = 300
"""In a minute, of all who are not signed in together; of one address one."""


def record(
    *, actor: Actor, reason: str, target: tuple[str, str] = ("", ""), stream: str = "", payload: dict[str, object] | None = None
) -> None:
    """Writes `access.refused` unless its like was written within the minute; the next one says how many were left out.

    `stream` defaults to the day's reads.
    """
    who = "nobody" if actor.kind == ActorKind.ANONYMOUS else f"{actor.kind}:{actor.id}"
    what = "" if actor.kind == ActorKind.ANONYMOUS else f"{reason}:{target}"
    key = "refusals." + hashlib.sha256(f"{who}|{actor.address}|{what}".encode()).hexdigest()[:32]
    most = MOST_OF_NOBODY if actor.kind == ActorKind.ANONYMOUS else MOST_OF_ONE
    if not cache.add(key, 1, WINDOW_S) or _count(f"refusals.{who}.{datetime.now(UTC):%H%M}") > most:
        _count(f"{key}.more", lasts_s=3_600)
        return
    more = cache.get(f"{key}.more", 0)
    cache.delete(f"{key}.more")
    log.append(
        stream or log.access_stream(),
        EventType.ACCESS_REFUSED,
        actor=actor,
        result=EventResult.REFUSED,
        target=target,
        reason=reason,
        payload=(payload or {}) | ({"left_out_before": more} if more else {}),
    )


def _count(key: str, lasts_s: int = WINDOW_S) -> int:
    cache.add(key, 0, lasts_s)
    try:
        return cache.incr(key)
    except ValueError:  # it ran out between the two
        return 1
