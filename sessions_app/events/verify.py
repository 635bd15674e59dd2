"""Verification of the log: sequences without gaps, every hash as it was written, every stream as long as its head says.

All streams are walked in one pass over the index of their places, in constant memory and without a cursor that stays
open. Nothing in a database can tell that the end of a stream *and* its head were cut off together: for that, heads are
kept somewhere else and compared (`Anchor`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from uuid import UUID

import orjson
from django.db import connection

from sessions_app import prepared
from sessions_app.events.log import HASHED_FIELDS
from sessions_app.models import Event, EventStream

ROWS_AT_ONCE = 2_000
LOOK_AROUND = 8
"""An event that does not fit is tried at so many places before and behind its own: it may have been moved."""

GONE = "the event that was kept elsewhere is missing: the end was cut off, and its head with it"
Row = tuple[Any, ...]
_COLUMNS = (*HASHED_FIELDS, "previous_hash", "hash")
_STREAM, _SEQ = _COLUMNS.index("stream"), _COLUMNS.index("seq")
_COMPACTION = _COLUMNS.index("compaction_id")
_JSON = tuple(_COLUMNS.index(name) for name in ("before", "after", "payload"))
_HASHED = len(HASHED_FIELDS)


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
    """How far a verification is; `resume` with the same walk goes on. Streams come in the database's order of names."""

    only: str = ""  # one stream alone
    stream: str = ""
    seq: int = 0
    previous: bytes = b""
    is_broken: bool = False  # the stream that is being walked: its first fault is enough
    is_done: bool = False
    streams: int = 0
    events: int = 0
    verdicts: list[Verdict] = field(default_factory=list)  # finished since the caller last took them


def verify_stream(name: str) -> Verdict:
    """Walks one stream from its start to its head."""
    walk = Walk(only=name)
    while not walk.is_done:
        resume(walk, ROWS_AT_ONCE)
    return walk.verdicts[0] if walk.verdicts else _headless(name)


def verdicts_of_all() -> Iterator[Verdict]:
    """Walks every stream; yields each as it is finished."""
    walk = Walk()
    while not walk.is_done:
        resume(walk, ROWS_AT_ONCE)
        yield from walk.verdicts
        walk.verdicts.clear()


def resume(walk: Walk, most: int) -> None:
    """Looks at up to `most` further events. When there are none left, looks for streams that lost all of theirs."""
    rows = _rows(walk, most)
    for row in rows:
        if row[_STREAM] != walk.stream:
            _finish(walk)
            walk.stream, walk.seq, walk.previous, walk.is_broken = row[_STREAM], 0, b"", False
        walk.events += 1
        if not walk.is_broken:
            _look_at(walk, row)
        walk.seq, walk.previous = row[_SEQ], bytes(row[-1])
    if len(rows) < most:
        _finish(walk)
        _look_for_emptied(walk)
        walk.is_done = True


def _look_at(walk: Walk, row: Row) -> None:
    seq, previous = row[_SEQ], bytes(row[-2])
    if seq == walk.seq + 1 and previous == walk.previous and _hash(row) == bytes(row[-1]):
        return
    walk.is_broken = True
    at, reason = _fault(walk, row)
    walk.verdicts.append(Verdict(walk.stream, walk.seq, walk.previous, at, reason))


def _fault(walk: Walk, row: Row) -> tuple[int, str]:
    """Which sequence does not fit, and in which way."""
    seq, expected = row[_SEQ], walk.seq + 1
    if seq != expected:
        gap = "event {} is missing" if seq == expected + 1 else "events {} to {} are missing"
        return expected, gap.format(expected, seq - 1)
    follows, is_intact = bytes(row[-2]) == walk.previous, _hash(row) == bytes(row[-1])
    if is_intact:
        return seq, f"it does not follow from event {seq - 1}: that one was replaced, or one was put in before it"
    if follows:
        return seq, "its content was changed after it was written"
    written = _written_as(row)
    if written is None:
        return seq, "it was changed after it was written, and does not follow from the event before it"
    if written < seq:
        return seq, f"it was written as event {written}: an event was put in before it"
    if _written_at(walk.stream, written) == seq:
        return seq, f"it was written as event {written}: events were put in another order"
    return seq, f"it was written as event {written}: events before it were removed, and the rest numbered anew"


def _written_as(row: Row) -> int | None:
    """The sequence with which the content has the hash that it bears, if that is near."""
    for distance in range(1, LOOK_AROUND + 1):
        seq: int
        for seq in (row[_SEQ] - distance, row[_SEQ] + distance):
            if _hash((*row[:_SEQ], seq, *row[_SEQ + 1 :])) == bytes(row[-1]):
                return seq
    return None


def _written_at(stream: str, seq: int) -> int | None:
    row = prepared.find(Event, _COLUMNS, stream=stream, seq=seq)
    return None if row is None else _written_as(row)


def _finish(walk: Walk) -> None:
    """Compares the end of the stream that was walked with its head."""
    if not walk.stream:
        return
    walk.streams += 1
    if walk.is_broken:
        return
    head = prepared.find(EventStream, ("last_seq", "last_hash"), name=walk.stream)
    reason = _difference(head, walk)
    walk.verdicts.append(Verdict(walk.stream, walk.seq, walk.previous, walk.seq + 1 if reason else None, reason))


def _difference(head: tuple[Any, ...] | None, walk: Walk) -> str:
    if head is None:
        return "its head is missing, so that nothing tells where it ends"
    if head[0] > walk.seq:
        return f"events at its end are missing: its head names event {head[0]}"
    if head[0] < walk.seq:
        return f"its head was set back to event {head[0]}, or events were added behind it"
    return "" if bytes(head[1]) == walk.previous else "its last event is not the one that its head names: the end was replaced"


def _look_for_emptied(walk: Walk) -> None:
    """Streams whose head names events, and that have none."""
    events, streams = Event._meta.db_table, EventStream._meta.db_table
    condition, given = ("AND name = %s", [walk.only]) if walk.only else ("", [])
    with connection.cursor() as cursor:
        cursor.execute(
            f'SELECT name, last_seq FROM "{streams}" WHERE last_seq > 0 {condition} '  # noqa: S608  names of our own
            f'AND NOT EXISTS (SELECT 1 FROM "{events}" WHERE stream = name) ORDER BY name',
            given,
        )
        for name, last_seq in cursor.fetchall():
            walk.streams += 1
            walk.verdicts.append(Verdict(name, 0, b"", 1, f"events at its end are missing: its head names event {last_seq}"))


def _headless(name: str) -> Verdict:
    """A stream without events and without a head that names any."""
    is_there = prepared.exists(EventStream, name=name)
    return Verdict(name, 0) if is_there else Verdict(name, 0, b"", 1, "there is no such stream")


def broken_anchors(anchors: Iterable[Anchor]) -> Iterator[Verdict]:
    """The anchors whose event is not there any more, or is another one."""
    for anchor in anchors:
        row = prepared.find(Event, ("hash",), stream=anchor.stream, seq=anchor.seq)
        if row is None:
            yield Verdict(anchor.stream, 0, b"", anchor.seq, GONE)
        elif bytes(row[0]) != anchor.hash:
            yield Verdict(anchor.stream, 0, b"", anchor.seq, "another event stands where the one that was kept elsewhere stood")


def _rows(walk: Walk, most: int) -> list[Row]:
    names = ", ".join(f'"{name}"' for name in _COLUMNS)
    if walk.only:
        where, given = "stream = %s AND seq > %s", (walk.only, walk.seq)
    else:
        where, given = "(stream, seq) > (%s, %s)", (walk.stream, walk.seq)
    with connection.cursor() as cursor:
        cursor.execute(
            f'SELECT {names} FROM "{Event._meta.db_table}" WHERE {where} ORDER BY stream, seq LIMIT %s',  # noqa: S608  names of our own
            (*given, most),
        )
        rows: list[Row] = cursor.fetchall()
    return rows


def _hash(row: Row) -> bytes:
    """What `events.log.event_hash` makes of the same event, from the columns as the driver gives them."""
    said = dict(zip(HASHED_FIELDS, row, strict=False))
    for place in _JSON:
        value = row[place]
        if value is not None:
            said[_COLUMNS[place]] = {} if value == "{}" else orjson.loads(value) if isinstance(value, str | bytes) else value
    compaction = row[_COMPACTION]
    if compaction is not None:
        said["compaction_id"] = compaction if isinstance(compaction, UUID) else UUID(compaction)
    return sha256(bytes(row[-2]) + orjson.dumps(said, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)).digest()
