"""Paging by key: a cursor finds its place again, and nothing else passes for one."""

import base64
import uuid
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.models import Session
from sessions_app.selectors.keyset import Cursor, CursorError, Ordering, page_of

BY_ACTIVITY = Ordering("last_activity_at", descending=True, value_type=datetime)
BY_TITLE = Ordering("title", descending=False, value_type=str)
BY_ENTRIES = Ordering("entry_count", descending=True, value_type=int)
BY_PRESSURE = Ordering("pressure", descending=True, value_type=float)

VALUES = st.one_of(
    st.tuples(st.just(BY_TITLE), st.text()),
    st.tuples(st.just(BY_ENTRIES), st.integers(0, 2**40)),
    st.tuples(st.just(BY_PRESSURE), st.floats(0, 2, allow_nan=False)),
    st.tuples(st.just(BY_ACTIVITY), st.datetimes(timezones=st.just(UTC))),
)


@given(VALUES, st.uuids(), st.integers(1, 10**6), st.booleans())
def test_a_cursor_survives_the_address(pair, identifier: uuid.UUID, first: int, backwards: bool):
    ordering, value = pair
    stored = value.isoformat() if isinstance(value, datetime) else value
    text = Cursor(ordering.column, stored, identifier.hex, first, backwards).encode()
    assert all(letter.isascii() and (letter.isalnum() or letter in "-_") for letter in text)
    assert Cursor.decode(text, ordering) == Cursor(ordering.column, value, identifier.hex, first, backwards)


@given(st.text(min_size=1) | st.binary(min_size=1).map(lambda data: base64.urlsafe_b64encode(data).decode().rstrip("=")))
def test_no_other_text_passes_for_a_cursor(text: str):
    with pytest.raises(CursorError):
        Cursor.decode(text, BY_TITLE)


def encoded(*fields: object) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(fields)).decode().rstrip("=")


@pytest.mark.parametrize(
    "text",
    [
        encoded("title", "a", "0" * 31, 1),
        encoded("title", "a", "g" * 32, 1),
        encoded("title", 5, "0" * 32, 1),
        encoded("entry_count", 5, "0" * 32, 1),
        encoded("title", "a", "0" * 32, "1"),
    ],
)
def test_a_cursor_of_another_order_or_shape_is_refused(text: str):
    with pytest.raises(CursorError):
        Cursor.decode(text, BY_TITLE)


def test_a_time_without_zone_is_refused():
    with pytest.raises(CursorError):
        Cursor.decode(encoded("last_activity_at", "2026-11-30T12:00:00", "0" * 32, 1), BY_ACTIVITY)


@pytest.mark.parametrize("ordering", [BY_ENTRIES, BY_ENTRIES.reversed(), BY_TITLE, BY_TITLE.reversed(), BY_ACTIVITY, BY_PRESSURE])
def test_pages_cover_every_row_once_forwards_and_backwards_also_among_equals(db, ordering: Ordering):
    now = datetime(2026, 11, 30, tzinfo=UTC)
    for number in range(23):
        Session.objects.create(
            title=f"title {number % 4}",
            agent="x",
            source_key=str(number),
            entry_count=number % 3,
            pressure=number % 2 / 10,
            last_activity_at=now,
        )
    whole = list(Session.objects.order_by(*ordering.names(backwards=False)))
    cursor, pages = None, []
    while True:
        rows, position = page_of(Session.objects.all(), ordering, cursor, 5)
        pages.append((rows, position))
        cursor = Cursor.decode(position.next, ordering)
        if cursor is None:
            break
    assert [row for rows, _ in pages for row in rows] == whole
    assert [(position.first, position.last) for _, position in pages] == [(1, 5), (6, 10), (11, 15), (16, 20), (21, 23)]
    back = [pages[-1][0]]
    cursor = Cursor.decode(pages[-1][1].previous, ordering)
    while cursor is not None:
        rows, position = page_of(Session.objects.all(), ordering, cursor, 5)
        back.insert(0, rows)
        cursor = Cursor.decode(position.previous, ordering)
    assert [row for rows in back for row in rows] == whole
