"""What changed after a cursor: all that a live page needs to know of the event log."""

import uuid
from dataclasses import dataclass

from django.db.models import Max

from sessions_app.events.log import SESSION_PREFIX, session_stream
from sessions_app.models import Event, EventStream

MAX_CHANGED_SESSIONS = 200


@dataclass(frozen=True)
class Changes:
    """`seq`: the last event that was seen, never one that does not exist. `types`: which types of event lie before it."""

    seq: int
    types: frozenset[str]


def session_cursor(session_id: uuid.UUID | str) -> int:
    """The last sequence of a session's stream. A page reads it *before* the state that it shows. One query."""
    return EventStream.objects.filter(name=session_stream(session_id)).values_list("last_seq", flat=True).first() or 0


def changes_after(session_id: uuid.UUID | str, seq: int) -> Changes:
    """What happened to a session after `seq`. One query; two when nothing did."""
    rows = Event.objects.filter(stream=session_stream(session_id), seq__gt=seq).values("type").annotate(last=Max("seq")).order_by()
    found = {row["type"]: row["last"] for row in rows}
    if not found:
        # A cursor beyond the end (forged, or of a database that was put back) must not hide what is still to come.
        return Changes(seq=min(seq, session_cursor(session_id)), types=frozenset())
    return Changes(seq=max(found.values()), types=frozenset(found))


def list_cursor() -> int:
    """The last event of all streams. The list reads it before its rows. One query."""
    return Event.objects.aggregate(last=Max("pk"))["last"] or 0


def sessions_changed_after(cursor: int) -> tuple[tuple[uuid.UUID, ...], int]:
    """Which sessions have events after a `list_cursor`, the latest first, and the new cursor. At most 200 sessions."""
    rows = Event.objects.filter(pk__gt=cursor).values("stream").annotate(last=Max("pk")).order_by("-last")
    found = list(rows[: MAX_CHANGED_SESSIONS + 1])
    changed = [uuid.UUID(row["stream"].removeprefix(SESSION_PREFIX)) for row in found if row["stream"].startswith(SESSION_PREFIX)]
    return tuple(changed[:MAX_CHANGED_SESSIONS]), found[0]["last"] if found else min(cursor, list_cursor())
