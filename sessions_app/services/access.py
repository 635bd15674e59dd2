"""Who looked at what: one event per person, thing and ten minutes, in the day's access stream, written after the answer."""

import threading
import time

from sessions_app.events import deferred, log, refusals
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import Session

VIEW_GAP_S = 600


class _Seen:
    """What was written down lately, in this process: most requests then write nothing."""

    def __init__(self) -> None:
        self._until: dict[tuple[str, str], float] = {}
        self._lock = threading.Lock()

    def is_new(self, person: str, thing: str) -> bool:
        now = time.monotonic()
        with self._lock:
            if self._until.get((person, thing), now) > now:
                return False
            if len(self._until) > 10_000:
                self._until = {pair: until for pair, until in self._until.items() if until > now}
            self._until[(person, thing)] = now + VIEW_GAP_S
        return True

    def forget(self, person: str, thing: str) -> None:
        with self._lock:
            self._until.pop((person, thing), None)

    def clear(self) -> None:
        with self._lock:
            self._until.clear()


seen = _Seen()


def record_view(*, actor: Actor, session: Session) -> None:
    """Writes down that `actor` looks at the session; nothing when that was done in the last ten minutes. Raises as `record` does."""
    record(actor=actor, event_type=EventType.SESSION_VIEWED, target=("session", str(session.pk)))


def record_refusal(*, actor: Actor, reason: str, target: tuple[str, str]) -> None:
    """Writes down that `actor` was refused outside of the gates in `permissions`, its like at most once a minute."""
    refusals.record(actor=actor, reason=reason, target=target)


def record(*, actor: Actor, event_type: EventType, target: tuple[str, str], payload: dict[str, object] | None = None) -> None:
    """Writes down that `actor` reads the target, once in ten minutes. Call it before anything is shown.

    Returns before it is written, outside of a transaction. Raises `deferred.NotRecorded` while nothing can be written.
    """
    person, thing = f"{actor.kind}:{actor.id}", f"{event_type}:{target[1]}"
    if not seen.is_new(person, thing):
        return
    try:
        deferred.append(log.access_stream(), event_type, actor=actor, target=target, payload=payload)
    except deferred.NotRecorded:
        seen.forget(person, thing)
        raise
