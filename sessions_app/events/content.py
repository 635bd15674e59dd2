"""What the hash of an event covers: one line of JSON of all its fields, by name, without spaces.

It is made in three ways that agree: from an event, from its columns as the driver gives them, and by the database itself,
which is how a long log is verified. `before`, `after` and `payload` stand in it as they are stored: see `models.event.CanonicalJSONField`.
"""

from typing import Any
from uuid import UUID

import orjson
from django.db import DEFAULT_DB_ALIAS, connections

from sessions_app.models.event import CANONICAL, Event

HASHED_FIELDS = (
    "stream", "seq", "type", "compaction_id", "step", "actor_kind", "actor_id", "actor_name", "actor_role", "target_kind",
    "target_id", "result", "before", "after", "reason", "request_id", "gesture_id", "address", "payload", "at",
)  # fmt: skip
FIELDS = tuple(sorted(HASHED_FIELDS))
"""In the order in which they are hashed."""

_JSON = ("after", "before", "payload")
_JSON_PLACES = tuple(FIELDS.index(name) for name in _JSON)
_COMPACTION = FIELDS.index("compaction_id")
_compaction_field = Event._meta.get_field("compaction_id")
_EMPTY = orjson.Fragment(b"{}")


def of_fields(said: dict[str, Any]) -> bytes:
    """The line of an event that says this. Raises `TypeError` for what JSON cannot say."""
    return orjson.dumps(said, option=CANONICAL)


def of_event(event: Event) -> bytes:
    """The line of an event that was read."""
    said = {field: getattr(event, field) for field in FIELDS}
    said["type"], said["result"], said["actor_kind"] = str(event.type), str(event.result), str(event.actor_kind)
    return of_fields(said)


def stored(said: dict[str, Any]) -> list[Any]:
    """What an event says as values for its columns, in the order of `FIELDS`."""
    values = [said[name] for name in FIELDS]
    for place in _JSON_PLACES:
        if values[place] is not None:
            values[place] = orjson.dumps(values[place], option=CANONICAL).decode()
    if (compaction := values[_COMPACTION]) is not None:
        values[_COMPACTION] = _compaction_field.get_db_prep_value(compaction, connections[DEFAULT_DB_ALIAS])
    return values


def of_row(row: tuple[Any, ...]) -> bytes:
    """The line of an event from its columns, in the order of `FIELDS`, as the driver gives them; further ones are passed over."""
    said: dict[str, Any] = dict(zip(FIELDS, row, strict=False))
    for place in _JSON_PLACES:
        if (value := row[place]) is not None:
            said[FIELDS[place]] = _stored_json(value)
    compaction = row[_COMPACTION]
    if compaction is not None and not isinstance(compaction, UUID):
        said["compaction_id"] = _hyphenated(compaction)
    return orjson.dumps(said)


def expression(vendor: str) -> str:
    """The line, in UTF-8, as an expression in SQL. On SQLite it fails where stored JSON is none; PostgreSQL stores nothing else.

    Where a database writes a character in another way (U+0000 on PostgreSQL), the line differs, and `of_row` has the last word.
    """
    return _EXPRESSIONS[vendor]


def _stored_json(text: object) -> object:
    if text == "{}":
        return _EMPTY
    try:
        return orjson.Fragment(orjson.dumps(orjson.loads(text), option=CANONICAL)) if isinstance(text, str | bytes) else text
    except orjson.JSONDecodeError:
        return text  # a text, which it never was: so it is another line


def _hyphenated(text: str) -> str:
    """A UUID as SQLite keeps it, as it is hashed."""
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}" if len(text) == 32 else text


def _sqlite(name: str) -> str:
    if name in _JSON:
        return f'json("{name}")'
    if name != "compaction_id":
        return f'"{name}"'
    parts = "||'-'||".join(f"substr(compaction_id, {first}, {length})" for first, length in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12)))
    return f"CASE WHEN compaction_id IS NOT NULL THEN {parts} END"


def _postgresql(name: str) -> str:
    if name in _JSON:
        return f"""coalesce("{name}"::text, 'null')"""
    return f"""coalesce(to_json("{name}")::text, 'null')"""


_EXPRESSIONS = {
    "sqlite": "CAST(json_object(" + ", ".join(f"'{name}', {_sqlite(name)}" for name in FIELDS) + ") AS BLOB)",
    "postgresql": "convert_to('{' || "
    + " || ',' || ".join(f"""'"{name}":' || {_postgresql(name)}""" for name in FIELDS)
    + " || '}', 'UTF8')",
}
