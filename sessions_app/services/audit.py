"""What admins do with the audit log: reading and exporting it are events as well."""

import csv
import io
from collections.abc import Iterator
from itertools import islice

import orjson

from sessions_app.events import content, log
from sessions_app.events.actors import Actor
from sessions_app.events.content import HASHED_FIELDS
from sessions_app.events.types import EventType
from sessions_app.models import Event
from sessions_app.permissions import Action, require
from sessions_app.selectors import audit
from sessions_app.selectors.audit import AuditFilters
from sessions_app.services import access

TARGET = ("audit", "log")
LINES_AT_ONCE = 200
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
COLUMNS = ("id", *HASHED_FIELDS, "previous_hash", "hash")


def record_view(*, actor: Actor, filters: AuditFilters) -> None:
    """Writes down that `actor` read the audit log, once in ten minutes, with what was filtered first."""
    payload: dict[str, object] = {"filters": filters.chosen} if filters.chosen else {}
    access.record(actor=actor, event_type=EventType.AUDIT_VIEWED, target=TARGET, payload=payload)


def export(*, actor: Actor, filters: AuditFilters, file_format: str) -> Iterator[bytes]:
    """The events that match, the oldest first, as JSON lines (`jsonl`) or a table (`csv`); the last line says that it is the last.

    Holds the events that are there when it begins, and in constant memory. Writes `audit.exported` with the filters
    and the number of events; raises what `permissions.require` raises.
    """
    require(actor, Action.AUDIT, target=TARGET)
    up_to = audit.newest_id()
    number = audit.count_exactly(filters, up_to=up_to)
    log.append(
        log.access_stream(),
        EventType.AUDIT_EXPORTED,
        actor=actor,
        target=TARGET,
        payload={"format": file_format, "events": number, "up_to": up_to, "filters": filters.chosen},
    )
    write = _csv if file_format == "csv" else _jsonl
    return write(audit.matching_events(filters, up_to=up_to), number)


def _jsonl(events: Iterator[Event], number: int) -> Iterator[bytes]:
    written = 0
    while lines := [_line(event) for event in islice(events, LINES_AT_ONCE)]:
        written += len(lines)
        yield b"\n".join(lines) + b"\n"
    yield orjson.dumps({"complete": written == number, "events": written}) + b"\n"


def _csv(events: Iterator[Event], number: int) -> Iterator[bytes]:
    written = 0
    yield _csv_lines([list(COLUMNS)])
    while rows := [_cells(event) for event in islice(events, LINES_AT_ONCE)]:
        written += len(rows)
        yield _csv_lines(rows)
    yield _csv_lines([["complete" if written == number else "not complete", f"{written} events"]])


def _line(event: Event) -> bytes:
    """An event as the line that its hash covers, byte for byte, behind its id and both hashes."""
    before = f'{{"id":{event.pk},"previous_hash":"{bytes(event.previous_hash).hex()}","hash":"{bytes(event.hash).hex()}",'
    return before.encode() + content.of_event(event)[1:]


def _row(event: Event) -> dict[str, object]:
    """Every field that the hash covers, by the names and types that it is made from, and both hashes in hexadecimal."""
    said: dict[str, object] = {"id": event.pk} | {name: getattr(event, name) for name in HASHED_FIELDS}
    return said | {"previous_hash": bytes(event.previous_hash).hex(), "hash": bytes(event.hash).hex()}


def _cells(event: Event) -> list[str]:
    return [_cell(value) for value in _row(event).values()]


def _cell(value: object) -> str:
    """A value as a cell that no spreadsheet takes for a formula."""
    if isinstance(value, dict | list):
        value = orjson.dumps(value).decode()
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def _csv_lines(rows: list[list[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()
