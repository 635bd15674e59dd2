"""Rows of entries as the driver gives them, and what the engine takes: read one by one, they would cost ten times as much."""

from collections.abc import Iterator
from typing import Any

import msgspec
from django.db import connections
from django.db.models import QuerySet, TextField, Value
from django.db.models.functions import Cast, NullIf

from sessions_app.engine.entries import Entry, Part, Usage, decode_parts
from sessions_app.engine.shapes import EntryShape
from sessions_app.engine.terms import Kind, PartKind, Role
from sessions_app.models import Entry as EntryRow

UNREADABLE = "[What this entry says can't be read as it is stored.]"

_ROLES = {role.value: role for role in Role}
_KINDS = {kind.value: kind for kind in Kind}
_USAGE = msgspec.json.Decoder(Usage)
_CALL_IDS = msgspec.json.Decoder(list[str])
_FETCH_ROWS = 5_000


class UnreadableRow(ValueError):  # noqa: N818  it says what is the matter
    """A row holds a word that this version has not: nobody can say what it is, and so nothing may be planned or sent with it."""

    def __init__(self, index: int) -> None:
        self.index = index
        super().__init__(index)


def fetch(rows: QuerySet[Any, Any]) -> Iterator[tuple[Any, ...]]:
    """The rows as the driver gives them: booleans may be numbers. Converting them one by one takes as long as reading them."""
    with connections[rows.db].cursor() as cursor:
        cursor.execute(*rows.query.sql_with_params())
        while page := cursor.fetchmany(_FETCH_ROWS):
            yield from page


def _for_shapes(rows: QuerySet[EntryRow]) -> QuerySet[EntryRow, tuple[Any, ...]]:
    """The columns of a shape; no text is among them."""
    more = NullIf(Cast("more_call_ids", TextField()), Value("[]", TextField()))
    return rows.annotate(more=more).values_list(
        "index", "role", "kind", "tokens", "source_id", "message_key", "call_id", "more", "off_branch", "meta"
    )


def shapes(rows: QuerySet[EntryRow]) -> list[EntryShape]:
    """The shapes of the entries of these rows, in their order. One query. Raises `UnreadableRow`."""
    found: list[EntryShape] = []
    index = -1
    try:
        for index, role, kind, tokens, source_id, message_key, call_id, more, off_branch, meta in fetch(_for_shapes(rows)):
            shape = EntryShape(
                index=index,
                role=_ROLES[role],
                kind=_KINDS[kind],
                tokens=tokens,
                source_id=source_id,
                message_key=message_key,
                call_ids=_call_ids(call_id, more),
                off_branch=bool(off_branch),
                meta=bool(meta),
            )
            found.append(shape)
    except (KeyError, msgspec.DecodeError) as error:
        raise UnreadableRow(index) from error
    return found


def for_entries(rows: QuerySet[EntryRow]) -> QuerySet[EntryRow, tuple[Any, ...]]:
    """The columns that `entry` takes."""
    return rows.annotate(used=Cast("usage", TextField())).values_list(
        "index", "role", "kind", "parts", "tokens", "source_id", "message_key", "off_branch", "meta", "used", "model", "timestamp"
    )


def entry(
    index: int, role: str, kind: str, parts: str, tokens: int, source_id: str, message_key: str, off_branch: bool, meta: bool,  # noqa: FBT001
    used: str | None, model: str, timestamp: str,
) -> Entry:  # fmt: skip
    """The entry of a row. Raises `UnreadableRow`."""
    try:
        return Entry(
            index=index,
            role=_ROLES[role],
            kind=_KINDS[kind],
            parts=readable_parts(parts),
            tokens=tokens,
            source_id=source_id,
            message_key=message_key,
            off_branch=bool(off_branch),
            meta=bool(meta),
            usage=_usage(used) if used else None,
            model=model,
            timestamp=timestamp,
        )
    except (KeyError, msgspec.DecodeError) as error:
        raise UnreadableRow(index) from error


def shown_entry(*row: Any) -> Entry:
    """The same for people: where `entry` raises, a notice that tells why."""
    index, role, kind, parts, tokens, source_id, message_key, off_branch, meta, _, model, timestamp = row
    try:
        return entry(*row)
    except UnreadableRow:
        shown_role, shown_kind, shown_parts = as_shown(role, kind, parts)
        return Entry(
            index=index, role=shown_role, kind=shown_kind, parts=shown_parts, tokens=tokens, source_id=source_id, message_key=message_key,
            off_branch=bool(off_branch), meta=bool(meta), model=model, timestamp=timestamp,
        )  # fmt: skip


def readable_parts(stored: str) -> tuple[Part, ...]:
    """What an entry says; a note where that can't be read, so that one broken row takes no page and no view with it."""
    try:
        return decode_parts(stored)
    except msgspec.DecodeError:
        return (Part(kind=PartKind.TEXT, text=UNREADABLE),)


def as_shown(role: str, kind: str, parts: str) -> tuple[Role, Kind, tuple[Part, ...]]:
    """What an entry is and says, for people: one of which this version does not know what it is, is a notice that tells so."""
    if role in _ROLES and kind in _KINDS:
        return _ROLES[role], _KINDS[kind], readable_parts(parts)
    note = Part(kind=PartKind.TEXT, text=f"[This entry is stored as “{role} {kind}”, words that this version does not know.]")
    return Role.NOTICE, Kind.OTHER, (note, *readable_parts(parts))


def _usage(stored: str) -> Usage | None:
    try:
        return _USAGE.decode(stored)
    except msgspec.DecodeError:
        return None


def readable_usage(stored: object) -> Usage | None:
    """What was measured for an entry; None where that can't be read."""
    try:
        return msgspec.convert(stored, Usage, strict=False) if stored else None
    except msgspec.ValidationError:
        return None


def _call_ids(call_id: str, more: str | None) -> tuple[str, ...]:
    if not call_id:
        return ()
    return (call_id, *_CALL_IDS.decode(more)) if more else (call_id,)
