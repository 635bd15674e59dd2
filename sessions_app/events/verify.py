"""Verification of the log: sequences without gaps, every hash as it was written, every stream as long as its head says.

The log is read once, in the order in which it was written, which is the order in which it lies on the disk. Streams in
which something does not fit are walked again, one by one, to say what. Nothing in a database can tell that the end of a
stream *and* its head were cut off together: for that, heads are kept somewhere else and compared (`Anchor`).
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256
from multiprocessing import get_context
from typing import Any

from django.db import OperationalError, connection, connections

from sessions_app import child_processes, prepared
from sessions_app.events import content
from sessions_app.models import Event, EventStream

ROWS_AT_ONCE = 500  # what a processor holds close to it: four times as many take a tenth longer each
MANY_EVENTS = 50_000  # fewer are read before another process has started
LOOK_AROUND = 8
"""An event that does not fit is tried at so many places before and behind its own: it may have been moved."""

GONE = "the event that was kept elsewhere is missing: the end was cut off, and its head with it"
Row = tuple[Any, ...]
_COLUMNS = (*content.FIELDS, "previous_hash", "hash", "id")
_STREAM, _SEQ = content.FIELDS.index("stream"), content.FIELDS.index("seq")
_PREVIOUS, _HASH, _ID = -3, -2, -1


@dataclass(frozen=True)
class Verdict:
    """What verification of one stream found. `broken_at` is the first sequence that does not fit, or None."""

    stream: str
    events: int
    head: bytes = b""
    broken_at: int | None = None
    reason: str = ""


@dataclass(frozen=True)
class Anchor:
    """An event's hash that was kept outside of the database."""

    stream: str
    seq: int
    hash: bytes


@dataclass
class Walk:
    """How far a verification of all streams is. Begin with the highest id of the log; `resume` until it is done.

    A walk may be taken up by another process with `last_id`, `events` and `suspects` alone.
    """

    up_to: int
    last_id: int = 0
    events: int = 0
    suspects: set[str] = field(default_factory=set)  # streams in which something does not fit
    is_done: bool = False
    _ends: dict[str, tuple[int, bytes]] = field(default_factory=dict)  # stream → sequence and hash of its last event so far


def verify_stream(name: str) -> Verdict:
    """Walks one stream from its start to its head, in constant memory."""
    seq, previous = 0, b""
    while rows := _rows("stream = %s AND seq > %s ORDER BY seq", (name, seq), ROWS_AT_ONCE):
        for row in rows:
            if row[_SEQ] != seq + 1 or bytes(row[_PREVIOUS]) != previous or _hash(row) != bytes(row[_HASH]):
                at, reason = _fault(row, seq, previous)
                return Verdict(name, seq, previous, at, reason)
            seq, previous = row[_SEQ], bytes(row[_HASH])
    head = prepared.find(EventStream, ("last_seq", "last_hash"), name=name)
    reason = _difference(head, seq, previous)
    return Verdict(name, seq, previous, seq + 1 if reason else None, reason)


def verify_named(name: str) -> Verdict:
    """The same of a stream that somebody named: that it should exist."""
    verdict = verify_stream(name)
    if verdict.events or verdict.broken_at is not None or prepared.exists(EventStream, name=name):
        return verdict
    return Verdict(name, 0, b"", 1, "there is no such stream")


def verify_all(*, processes: int = 1) -> tuple[Walk, list[Verdict]]:
    """Reads the whole log. Returns the walk, and the verdicts on the streams that are broken.

    `processes`: a long log may be read by so many at once. Only for a command, which nothing else runs in.
    """
    walk = Walk(up_to=newest_id())
    if processes > 1 and walk.up_to >= MANY_EVENTS:
        _walk_in_parts(walk, processes)
    while not walk.is_done:
        resume(walk, ROWS_AT_ONCE)
    return walk, faults_of(walk)


def _walk_in_parts(walk: Walk, processes: int) -> None:
    """Takes the walk to its end, but for the comparison with the heads."""
    edges = [walk.up_to * part // processes for part in range(processes + 1)]
    connections.close_all()  # a connection must not be shared with a child
    with ProcessPoolExecutor(processes, mp_context=get_context("fork"), initializer=child_processes.begin) as pool:
        for events, suspects in pool.map(_walk_part, edges[:-1], edges[1:]):
            walk.events += events
            walk.suspects |= suspects
    walk.last_id = walk.up_to


def _walk_part(first: int, last: int) -> tuple[int, set[str]]:
    part = Walk(up_to=last, last_id=first)
    while _look_at_some(part, ROWS_AT_ONCE):
        pass
    return part.events, part.suspects


def newest_id() -> int:
    """The id of the last event of all streams, 0 without one."""
    return Event.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


def faults_of(walk: Walk) -> list[Verdict]:
    """What is the matter with each suspect; one that turns out to be whole is left out."""
    return [verdict for name in sorted(walk.suspects) if (verdict := verify_stream(name)).broken_at is not None]


def resume(walk: Walk, most: int) -> None:
    """Looks at up to `most` further events. After the last one it compares the ends of all streams with their heads."""
    if not _look_at_some(walk, most):
        walk.suspects.update(_ends_that_differ())
        walk.is_done = True


def _look_at_some(walk: Walk, most: int) -> bool:
    """False when there are no more after these."""
    rows = _lines(walk.last_id, walk.up_to, most)
    ends, suspects = walk._ends, walk.suspects
    for line, previous, digest, stream, seq, _ in rows:
        end = ends.get(stream) or _before(stream, seq)
        if end[0] + 1 != seq or end[1] != previous or sha256(previous + line).digest() != digest:
            suspects.add(stream)
        ends[stream] = (seq, digest)
    walk.events += len(rows)
    if rows:
        walk.last_id = rows[-1][-1]
    return len(rows) == most


def _lines(after_id: int, up_to: int, most: int) -> list[Row]:
    """(hashed line, previous hash, hash, stream, sequence, id) of the events behind an id, the line made by the database."""
    condition, given = "id > %s AND id <= %s ORDER BY id", (after_id, up_to)
    line = content.expression(connection.vendor)
    with connection.cursor() as cursor:
        try:
            cursor.execute(
                f'SELECT {line}, previous_hash, hash, stream, seq, id FROM "{Event._meta.db_table}" WHERE {condition} LIMIT %s',  # noqa: S608
                (*given, most),
            )
            rows: list[Row] = cursor.fetchall()
        except OperationalError:  # JSON that is none, put there around the database's own checks
            rows = [(content.of_row(row), *row[_PREVIOUS:_ID], row[_STREAM], row[_SEQ], row[_ID]) for row in _rows(condition, given, most)]
    return rows


def _before(stream: str, seq: int) -> tuple[int, bytes]:
    """(sequence, hash) of the event before one; of the first, and where that event is missing, what no event follows."""
    if seq == 1:
        return 0, b""
    row = prepared.find(Event, ("hash",), stream=stream, seq=seq - 1)
    return (seq - 1, bytes(row[0])) if row is not None else (-1, b"")


def _ends_that_differ() -> set[str]:
    """Streams whose head does not name their last event, and streams without a head. Two statements, on indexes."""
    events, streams = f'"{Event._meta.db_table}"', f'"{EventStream._meta.db_table}"'
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT h.name FROM {streams} h LEFT JOIN {events} e ON e.stream = h.name AND e.seq = h.last_seq "  # noqa: S608  names of our own
            f"WHERE (h.last_seq > 0 AND (e.hash IS NULL OR e.hash <> h.last_hash)) "
            f"OR EXISTS (SELECT 1 FROM {events} m WHERE m.stream = h.name AND m.seq > h.last_seq)"
        )
        differing = {name for (name,) in cursor.fetchall()}
        cursor.execute(
            f"SELECT e.stream FROM {events} e WHERE e.seq = 1 AND NOT EXISTS (SELECT 1 FROM {streams} h WHERE h.name = e.stream)"  # noqa: S608
        )
        return differing | {name for (name,) in cursor.fetchall()}


def _fault(row: Row, last: int, previous: bytes) -> tuple[int, str]:
    """Which sequence does not fit, and in which way. `last` and `previous` are of the event before."""
    seq, expected = row[_SEQ], last + 1
    if seq != expected:
        gap = "event {} is missing" if seq == expected + 1 else "events {} to {} are missing"
        return expected, gap.format(expected, seq - 1)
    follows, is_intact = bytes(row[_PREVIOUS]) == previous, _hash(row) == bytes(row[_HASH])
    if is_intact:
        return seq, f"it does not follow from event {seq - 1}: that one was replaced, or one was put in before it"
    if follows:
        return seq, "its content was changed after it was written"
    written = _written_as(row)
    if written is None:
        return seq, "it was changed after it was written, and does not follow from the event before it"
    if written < seq:
        return seq, f"it was written as event {written}: an event was put in before it"
    if _written_at(row[_STREAM], written) == seq:
        return seq, f"it was written as event {written}: events were put in another order"
    return seq, f"it was written as event {written}: events before it were removed, and the rest numbered anew"


def _written_as(row: Row) -> int | None:
    """The sequence with which the content has the hash that it bears, if that is near."""
    for distance in range(1, LOOK_AROUND + 1):
        seq: int
        for seq in (row[_SEQ] - distance, row[_SEQ] + distance):
            if _hash((*row[:_SEQ], seq, *row[_SEQ + 1 :])) == bytes(row[_HASH]):
                return seq
    return None


def _written_at(stream: str, seq: int) -> int | None:
    row = prepared.find(Event, _COLUMNS, stream=stream, seq=seq)
    return None if row is None else _written_as(row)


def _difference(head: tuple[Any, ...] | None, seq: int, last_hash: bytes) -> str:
    """How the head of a stream differs from its end; empty where it does not."""
    if head is None:
        return "its head is missing, so that nothing tells where it ends" if seq else ""  # nothing was ever written there
    if head[0] > seq:
        return f"events at its end are missing: its head names event {head[0]}"
    if head[0] < seq:
        return f"its head was set back to event {head[0]}, or events were added behind it"
    return "" if bytes(head[1]) == last_hash else "its last event is not the one that its head names: the end was replaced"


def broken_anchors(anchors: Iterable[Anchor]) -> Iterator[Verdict]:
    """The anchors whose event is not there any more, or is another one."""
    for anchor in anchors:
        row = prepared.find(Event, ("hash",), stream=anchor.stream, seq=anchor.seq)
        if row is None:
            yield Verdict(anchor.stream, 0, b"", anchor.seq, GONE)
        elif bytes(row[0]) != anchor.hash:
            yield Verdict(anchor.stream, 0, b"", anchor.seq, "another event stands where the one that was kept elsewhere stood")


def _rows(condition: str, given: tuple[object, ...], most: int) -> list[Row]:
    names = ", ".join(f'"{name}"' for name in _COLUMNS)
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT {names} FROM "{Event._meta.db_table}" WHERE {condition} LIMIT %s', (*given, most))  # type: ignore[arg-type]  # noqa: S608
        rows: list[Row] = cursor.fetchall()
    return rows


def hashed_bytes(row: Row) -> bytes:
    """What the hash of an event is made of, from its columns: see `events.log.event_hash`."""
    return bytes(row[_PREVIOUS]) + content.of_row(row)


def _hash(row: Row) -> bytes:
    return sha256(hashed_bytes(row)).digest()
