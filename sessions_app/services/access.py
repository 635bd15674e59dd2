"""Who looked at what: one event per person, session and ten minutes, in the day's access stream."""

import threading
import time

from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import Session

VIEW_GAP_S = 600


class _Seen:
    """Which (person, session) pairs were written down lately, in this process: most requests then write nothing."""

    def __init__(self) -> None:
        self._until: dict[tuple[str, str], float] = {}
        self._lock = threading.Lock()

    def is_new(self, person: str, session: str) -> bool:
        now = time.monotonic()
        with self._lock:
            if self._until.get((person, session), now) > now:
                return False
            if len(self._until) > 10_000:
                self._until = {pair: until for pair, until in self._until.items() if until > now}
            self._until[(person, session)] = now + VIEW_GAP_S
        return True

    def clear(self) -> None:
        with self._lock:
            self._until.clear()


seen = _Seen()


def record_view(*, actor: Actor, session: Session) -> None:
    """Writes down that `actor` looked at the session; nothing when that was done in the last ten minutes."""
    if seen.is_new(f"{actor.kind}:{actor.id}", str(session.pk)):
        log.append(log.access_stream(), EventType.SESSION_VIEWED, actor=actor, target=("session", str(session.pk)))
