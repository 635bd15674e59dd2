"""The one place that writes events: next sequence, hash of the previous one, notice after commit."""

import hashlib
import uuid
from datetime import UTC, datetime
from functools import partial

from django.db import connection, transaction

from sessions_app import prepared
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
) -> Event:
    """Appends one event in the caller's transaction (or one of its own) and returns it.

    `target` is (kind, id). `before`, `after` and `payload` are plain JSON. Events of a session's stream are
    told to its followers after commit. Two statements and one insert.
    """
    # No savepoint: what can't be written down must not happen, so whatever the caller did ends with it.
    with transaction.atomic(savepoint=False):
        seq, previous_hash = _advance(stream)
        event = Event(
            stream=stream,
            seq=seq,
            type=event_type,
            compaction_id=compaction_id,
            step=step,
            target_kind=target[0],
            target_id=target[1],
            result=result,
            before=before,
            after=after,
            reason=reason,
            payload=payload or {},
            at=datetime.now(UTC).isoformat(timespec="microseconds"),
            previous_hash=previous_hash,
            **_columns_of(actor),
        )
        event.hash = event_hash(event)
        prepared.insert(event)
        prepared.update(EventStream, stream, last_hash=event.hash)
        if stream.startswith(SESSION_PREFIX):
            transaction.on_commit(partial(poke_session, stream.removeprefix(SESSION_PREFIX), event.seq))
    return event


def _columns_of(actor: Actor) -> dict[str, str]:
    """Who did it, as the event keeps it for good."""
    who = {"actor_kind": actor.kind, "actor_id": actor.id, "actor_name": actor.name, "actor_role": actor.role}
    return who | {"request_id": actor.request_id, "gesture_id": actor.gesture_id, "address": actor.address}


def _advance(stream: str) -> tuple[int, bytes]:
    """(the next sequence, the hash of the event before it) of a stream."""
    with connection.cursor() as cursor:
        # The head row comes first: its update orders all writers of a stream, where max(seq) + 1 would race.
        cursor.execute(_ADVANCE, [stream])
        if not cursor.rowcount:
            prepared.insert(EventStream(name=stream), ignore_existing=True)
            cursor.execute(_ADVANCE, [stream])
    head = prepared.find(EventStream, ("last_seq", "last_hash"), name=stream)
    assert head is not None
    return head[0], bytes(head[1])


_ADVANCE = f'UPDATE "{EventStream._meta.db_table}" SET last_seq = last_seq + 1 WHERE name = %s'  # noqa: S608


def event_hash(event: Event) -> bytes:
    """sha256 over the previous hash and the line of JSON of every field that says something; 32 bytes."""
    return hashlib.sha256(bytes(event.previous_hash) + content.of_event(event)).digest()
