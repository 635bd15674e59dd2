"""Fast inserts: one prepared statement and rows of plain values, in SQL that SQLite and PostgreSQL both read."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import msgspec
from django.db import connection, models

_ENCODER = msgspec.json.Encoder()


class BulkInsert:
    """Inserts rows of one model by `executemany`, two to four times as fast as `bulk_create`.

    Values stand in the order of `fields` (attribute names), already as the database wants them: JSON as text
    (`json_value`), identifiers by `id_value`.
    """

    def __init__(self, model: type[models.Model], fields: Sequence[str], *, ignore_existing: bool = False) -> None:
        self._model, self._fields, self._ignore_existing = model, tuple(fields), ignore_existing

    @cached_property
    def _sql(self) -> str:
        meta = self._model._meta
        by_name = {field.name: str(field.column) for field in meta.concrete_fields}
        columns = ", ".join(connection.ops.quote_name(by_name[field]) for field in self._fields)
        marks = ", ".join(["%s"] * len(self._fields))
        tail = " ON CONFLICT DO NOTHING" if self._ignore_existing else ""
        return f"INSERT INTO {connection.ops.quote_name(meta.db_table)} ({columns}) VALUES ({marks}){tail}"  # noqa: S608

    def insert(self, rows: Sequence[Sequence[Any]]) -> None:
        """Inserts the rows in the caller's transaction. Raises `django.db.Error` as any query does."""
        if rows:
            with connection.cursor() as cursor:
                cursor.executemany(self._sql, rows)


def json_value(value: object) -> str:
    """A value for a JSON column."""
    return _ENCODER.encode(value).decode()


def id_value(identifier: Any, model: type[models.Model]) -> Any:
    """A primary key of `model` as the database stores it."""
    return model._meta.pk.get_db_prep_value(identifier, connection, prepared=False)
