"""Paging by key: a page starts behind a row, never at a number of rows, so that its cost does not grow."""

import base64
import binascii
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from django.db.models import Model, Q, QuerySet

Row = TypeVar("Row", bound=Model)


class CursorError(ValueError):
    """The text is not a cursor of this list and order."""

    def __init__(self) -> None:
        super().__init__(
            "This page of the list cannot be found: its address is damaged or of another order. Start again from the first page."
        )


@dataclass(frozen=True)
class Ordering:
    """By one column, and by id where that is equal."""

    column: str
    descending: bool
    value_type: type

    def reversed(self) -> "Ordering":
        return replace(self, descending=not self.descending)

    def names(self, *, backwards: bool) -> tuple[str, str]:
        sign = "-" if self.descending != backwards else ""
        return f"{sign}{self.column}", f"{sign}id"

    def beyond(self, value: object, identifier: str, *, backwards: bool) -> Q:
        """Rows on the far side of one row. The first condition is the one that an index can use."""
        word = "lt" if self.descending != backwards else "gt"
        column = self.column
        return Q(**{f"{column}__{word}e": value}) & (Q(**{f"{column}__{word}": value}) | Q(**{f"id__{word}": identifier}))


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """The row at the edge of a page. `first` is the number of the first row of the page that it leads to, from 1."""

    column: str
    value: object
    id: str
    first: int
    backwards: bool = False

    def encode(self) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")

    @staticmethod
    def decode(text: str, ordering: Ordering) -> "Cursor | None":
        """The cursor that `encode` wrote, None for an empty text. Raises `CursorError` on anything else."""
        if not text:
            return None
        try:
            cursor = msgspec.json.decode(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True), type=Cursor)
            value: object = msgspec.convert(cursor.value, ordering.value_type)
        except (msgspec.MsgspecError, binascii.Error, ValueError) as error:
            raise CursorError from error
        is_naive = isinstance(value, datetime) and value.tzinfo is None
        if cursor.column != ordering.column or is_naive or not _is_id(cursor.id):
            raise CursorError
        return Cursor(cursor.column, value, cursor.id, max(1, cursor.first), cursor.backwards)


def _is_id(text: str) -> bool:
    return len(text) == 32 and all(letter in "0123456789abcdef" for letter in text)


@dataclass(frozen=True)
class Position:
    """Where a page lies. Cursors are empty at the ends; `first` is approximate once rows have come or gone."""

    first: int
    last: int
    previous: str
    next: str


def page_of(query: "QuerySet[Row]", ordering: Ordering, cursor: Cursor | None, size: int) -> tuple[list[Row], Position]:
    """At most `size` rows behind (or before) the cursor, in order. One query."""
    backwards = cursor.backwards if cursor else False
    if cursor:
        query = query.filter(ordering.beyond(cursor.value, cursor.id, backwards=backwards))
    rows = list(query.order_by(*ordering.names(backwards=backwards))[: size + 1])
    has_more = len(rows) > size
    rows = rows[:size]
    if backwards:
        rows.reverse()
    first = cursor.first if cursor else 1
    has_previous = has_more if backwards else cursor is not None
    has_next = True if backwards else has_more
    return rows, Position(
        first=first,
        last=first + len(rows) - 1,
        previous=_edge(rows[0], ordering, first=max(1, first - size), backwards=True) if rows and has_previous else "",
        next=_edge(rows[-1], ordering, first=first + len(rows), backwards=False) if rows and has_next else "",
    )


def _edge(row: Any, ordering: Ordering, *, first: int, backwards: bool) -> str:
    value = getattr(row, ordering.column)
    if isinstance(value, datetime):
        value = value.isoformat()
    return Cursor(ordering.column, value, row.pk.hex, first, backwards).encode()
