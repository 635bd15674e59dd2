"""What changed after a cursor: all that a live page needs to know of the event log."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from django.db import connection
from django.db.models import Max
from django.db.models.functions import Length

from sessions_app.engine.terms import Status
from sessions_app.events.log import SESSION_PREFIX, session_stream
from sessions_app.events.types import EventType
from sessions_app.models import Compaction, Event, EventStream, Turn, TurnStatus

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
    """Where the list begins to follow: it reads this before its rows. A number of the database's own. One query."""
    if connection.vendor == "postgresql":
        return _oldest_transaction()
    return _last_event()


def sessions_changed_after(cursor: int) -> tuple[tuple[uuid.UUID, ...], int]:
    """Which sessions have events after a `list_cursor`, the latest first, and the new cursor. At most 200 sessions.

    Nothing is passed over. On PostgreSQL something may be told twice, while a transaction that began earlier is under way.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as statement:
            statement.execute(_OF_TRANSACTIONS, [cursor, MAX_CHANGED_SESSIONS])
            told = statement.fetchall()
        return _sessions([stream for _, stream in told if stream is not None]), told[0][0]
    rows = Event.objects.filter(pk__gt=cursor).values("stream").annotate(last=Max("pk")).order_by("-last")
    found = list(rows[:MAX_CHANGED_SESSIONS])
    return _sessions([row["stream"] for row in found]), found[0]["last"] if found else min(cursor, _last_event())


def _sessions(streams: Iterable[str]) -> tuple[uuid.UUID, ...]:
    return tuple(uuid.UUID(stream.removeprefix(SESSION_PREFIX)) for stream in streams if stream.startswith(SESSION_PREFIX))


def _last_event() -> int:
    # One process writes at a time: events are committed in the order of their numbers.
    return Event.objects.aggregate(last=Max("pk"))["last"] or 0


def _oldest_transaction() -> int:
    """The oldest transaction that is still under way: all before it have ended.

    Events get their numbers before they are committed, and may be committed in another order; so on PostgreSQL a cursor
    names a transaction, not an event.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
        row = cursor.fetchone()
    return int(row[0])


# The upper end: a database that was put back into another server holds numbers that this one has not reached.
_OF_TRANSACTIONS = f"""
WITH seen AS (
    SELECT pg_snapshot_xmin(now)::text::bigint AS oldest, pg_snapshot_xmax(now)::text::bigint AS following FROM pg_current_snapshot() AS now
), changed AS (
    SELECT stream, max(id) AS last FROM "{Event._meta.db_table}"
    WHERE transaction_number >= %s AND transaction_number < (SELECT following FROM seen) AND stream LIKE '{SESSION_PREFIX}%%'
    GROUP BY stream ORDER BY last DESC LIMIT %s
)
SELECT seen.oldest, changed.stream FROM seen LEFT JOIN changed ON true ORDER BY changed.last DESC
"""  # noqa: S608  names of our own


@dataclass(frozen=True)
class NewEvents:
    """`cursor`: the last event that was seen. `sessions`: (session, last sequence). `requested`: attempts that were asked for."""

    cursor: int
    sessions: tuple[tuple[str, int], ...]
    requested: tuple[uuid.UUID, ...]


def events_after(cursor: int) -> NewEvents:
    """What every session's followers need to know of the log behind a `list_cursor`. Two queries.

    On SQLite nothing is missed: one process writes at a time, so events are committed in the order of their numbers.
    """
    newer = Event.objects.filter(pk__gt=cursor)
    rows = list(newer.values("stream").annotate(seq=Max("seq"), last=Max("pk")).order_by("last").values_list("stream", "seq", "last"))
    if not rows:
        # A cursor beyond the end, of a database that was put back, must not hide what is still to come.
        return NewEvents(min(cursor, _last_event()), (), ())
    asked = newer.filter(type=EventType.COMPACTION_REQUESTED, pk__lte=rows[-1][2]).order_by("pk").values_list("compaction_id", flat=True)
    sessions = tuple((stream.removeprefix(SESSION_PREFIX), seq) for stream, seq, _ in rows if stream.startswith(SESSION_PREFIX))
    return NewEvents(rows[-1][2], sessions, tuple(identifier for identifier in asked if identifier is not None))


def still_requested(compaction_ids: tuple[uuid.UUID, ...]) -> tuple[tuple[uuid.UUID, uuid.UUID], ...]:
    """(session, attempt) of those that no worker has claimed yet. One query, none when there is nothing to ask."""
    if not compaction_ids:
        return ()
    waiting = Compaction.objects.filter(pk__in=compaction_ids, status=Status.REQUESTED)
    return tuple(waiting.values_list("session_id", "pk"))


def answers_under_way() -> dict[uuid.UUID, tuple[str, int]]:
    """(session, characters that have come) by turn, of all turns that run. One query, on a partial index."""
    running = Turn.objects.filter(status=TurnStatus.RUNNING).values_list("pk", "session_id", Length("answer_text"))
    return {turn_id: (str(session_id), length) for turn_id, session_id, length in running}


def database_version() -> int | None:
    """SQLite's count of commits that other connections made, as this one sees it; `None` where the database has none."""
    if connection.vendor != "sqlite":
        return None
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA data_version")
        row = cursor.fetchone()
    return int(row[0])
