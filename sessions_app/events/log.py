"""The one place that writes events: next sequence, hash of the previous one, notice after commit."""

import hashlib
import uuid
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

from django.db import DEFAULT_DB_ALIAS, connections, transaction

from sessions_app.events import content
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.live.poke import poke_session
from sessions_app.models import Event, EventResult, EventStream

SECURITY = "security"
SESSION_PREFIX = "session:"


def session_stream(session_id: uuid.UUID | str) -> str:
    """The stream of what happens to one session."""
    return f"{SESSION_PREFIX}{session_id}"


def access_stream(day: datetime | None = None) -> str:
    """The stream of reads of one day (UTC)."""
    return f"access:{(day or datetime.now(UTC)):%Y-%m-%d}"


class Appended(NamedTuple):
    """What was written: its sequence in its stream, and its hash."""

    seq: int
    hash: bytes


def append(
    stream: str,
    event_type: EventType,
    *,
    actor: Actor,
    result: EventResult = EventResult.ALLOWED,
    target: tuple[str, str] = ("", ""),
    compaction_id: uuid.UUID | None = None,
    step: int | None = None,
    before: object = None,
    after: object = None,
    reason: str = "",
    payload: dict[str, object] | None = None,
) -> Appended:
    """Appends one event in the caller's transaction, or in one of its own.

    `target` is (kind, id). `before`, `after` and `payload` are plain JSON. Events of a session's stream are
    told to its followers after commit. Three statements.
    """
    # No savepoint: what can't be written down must not happen, so whatever the caller did ends with it.
    with transaction.atomic(savepoint=False), connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        seq, previous_hash = _next(cursor, stream)
        columns: dict[str, Any] = {
            "stream": stream,
            "seq": seq,
            "type": str(event_type),
            "compaction_id": compaction_id,
            "step": step,
            "target_kind": target[0],
            "target_id": target[1],
            "result": str(result),
            "before": before,
            "after": after,
            "reason": reason,
            "payload": payload or {},
            "at": datetime.now(UTC).isoformat(timespec="microseconds"),
            **_columns_of(actor),
        }
        digest = hashlib.sha256(previous_hash + content.of_fields(columns)).digest()
        cursor.execute(_INSERT, [*content.stored(columns), previous_hash, digest])
        cursor.execute(_ADVANCE, [seq, digest, stream])
        if stream.startswith(SESSION_PREFIX):
            transaction.on_commit(partial(poke_session, stream.removeprefix(SESSION_PREFIX), seq))
    return Appended(seq, digest)


def _columns_of(actor: Actor) -> dict[str, str]:
    """Who did it, as the event keeps it for good."""
    who = {"actor_kind": str(actor.kind), "actor_id": actor.id, "actor_name": actor.name, "actor_role": actor.role}
    return who | {"request_id": actor.request_id, "gesture_id": actor.gesture_id, "address": actor.address}


def _next(cursor: Any, stream: str) -> tuple[int, bytes]:
    """(the next sequence, the hash of the event before it) of a stream, which is this transaction's alone from here on."""
    # The head row is locked first: it orders all writers of a stream, where max(seq) + 1 would race.
    # SQLite needs no lock of a row: a transaction of ours is the only one from its beginning.
    head = _HEAD if connections[DEFAULT_DB_ALIAS].vendor == "sqlite" else f"{_HEAD} FOR UPDATE"
    row = cursor.execute(head, [stream]).fetchone()
    if row is None:
        if cursor.execute(_BEGIN, [stream, b""]).rowcount:
            return 1, b""  # a row of this transaction, which nobody else sees
        row = cursor.execute(head, [stream]).fetchone()
    return row[0] + 1, bytes(row[1])


_HEADS, _EVENTS = EventStream._meta.db_table, Event._meta.db_table
_COLUMNS = (*content.FIELDS, "previous_hash", "hash")
_HEAD = f'SELECT last_seq, last_hash FROM "{_HEADS}" WHERE name = %s'  # noqa: S608
_BEGIN = f'INSERT INTO "{_HEADS}" (name, last_seq, last_hash) VALUES (%s, 0, %s) ON CONFLICT DO NOTHING'  # noqa: S608
_ADVANCE = f'UPDATE "{_HEADS}" SET last_seq = %s, last_hash = %s WHERE name = %s'  # noqa: S608
_NAMES = ", ".join(f'"{name}"' for name in _COLUMNS)
_INSERT = f'INSERT INTO "{_EVENTS}" ({_NAMES}) VALUES ({", ".join(["%s"] * len(_COLUMNS))})'  # noqa: S608


def event_hash(event: Event) -> bytes:
    """sha256 over the previous hash and the line of JSON of every field that says something; 32 bytes."""
    return hashlib.sha256(bytes(event.previous_hash) + content.of_event(event)).digest()
