"""Statements on single rows that are written once and run often: compiling one anew takes the ORM longer than running it.

Plain SQL that SQLite and PostgreSQL both read. Values pass through the model's own fields, as the ORM's would.
"""

from functools import cache
from typing import Any

from django.db import connection, models

Values = dict[str, Any]


def insert(instance: models.Model, *, ignore_existing: bool = False) -> None:
    """Inserts a new instance in the caller's transaction. A key that the database counts is not read back."""
    model = type(instance)
    sql = _insert_sql(model, ignore_existing)
    values = [field.get_db_prep_save(field.pre_save(instance, add=True), connection) for field in _columns(model)]
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
    instance._state.adding, instance._state.db = False, connection.alias


def update(model: type[models.Model], key: Any, /, **values: Any) -> int:
    """Sets columns (attribute names) of the row with this primary key. Returns how many rows there were: 0 or 1."""
    sql, fields = _update_sql(model, tuple(values))
    given = [field.get_db_prep_save(value, connection) for field, value in zip(fields, values.values(), strict=True)]
    with connection.cursor() as cursor:
        cursor.execute(sql, [*given, _key(model, key)])
        return int(cursor.rowcount)


def find(model: type[models.Model], columns: tuple[str, ...], /, **wanted: Any) -> tuple[Any, ...] | None:
    """The columns of a row whose fields equal these values, as the driver gives them; `None` when there is none."""
    sql, fields = _find_sql(model, columns, tuple(wanted))
    given = [field.get_db_prep_value(value, connection, prepared=False) for field, value in zip(fields, wanted.values(), strict=True)]
    with connection.cursor() as cursor:
        cursor.execute(sql, given)
        row: tuple[Any, ...] | None = cursor.fetchone()
    return row


def exists(model: type[models.Model], /, **wanted: Any) -> bool:
    """Whether there is a row whose fields equal these values; without any, whether there is a row at all."""
    return find(model, (), **wanted) is not None


def is_any_between(model: type[models.Model], name: str, first: str, end: str) -> bool:
    """Whether a text of a column lies from `first` on and before `end`, in the database's own order of texts."""
    column = _quoted(_field(model, name).column)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT 1 FROM {_quoted(model._meta.db_table)} WHERE {column} >= %s AND {column} < %s LIMIT 1", [first, end])  # noqa: S608
        return cursor.fetchone() is not None


def _key(model: type[models.Model], key: Any) -> Any:
    return model._meta.pk.get_db_prep_value(key, connection, prepared=False)


def _quoted(name: str) -> str:
    return connection.ops.quote_name(name)


def _field(model: type[models.Model], name: str) -> Any:
    return model._meta.get_field(name)


@cache
def _columns(model: type[models.Model]) -> list[Any]:
    return [field for field in model._meta.concrete_fields if not isinstance(field, models.AutoField)]


@cache
def _insert_sql(model: type[models.Model], ignore_existing: bool) -> str:  # noqa: FBT001  a key of the cache
    names = ", ".join(_quoted(field.column) for field in _columns(model))
    marks = ", ".join(["%s"] * len(_columns(model)))
    tail = " ON CONFLICT DO NOTHING" if ignore_existing else ""
    return f"INSERT INTO {_quoted(model._meta.db_table)} ({names}) VALUES ({marks}){tail}"  # noqa: S608  names of our own


@cache
def _update_sql(model: type[models.Model], names: tuple[str, ...]) -> tuple[str, list[Any]]:
    fields = [_field(model, name) for name in names]
    changes = ", ".join(f"{_quoted(field.column)} = %s" for field in fields)
    key = _quoted(str(model._meta.pk.column))
    return f"UPDATE {_quoted(model._meta.db_table)} SET {changes} WHERE {key} = %s", fields  # noqa: S608


@cache
def _find_sql(model: type[models.Model], columns: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, list[Any]]:
    fields = [_field(model, name) for name in names]
    told = ", ".join(_quoted(_field(model, name).column) for name in columns) or "1"
    where = " AND ".join(f"{_quoted(field.column)} = %s" for field in fields)
    return f"SELECT {told} FROM {_quoted(model._meta.db_table)}{' WHERE ' + where if where else ''} LIMIT 1", fields  # noqa: S608
