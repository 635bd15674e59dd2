"""Statements on single rows that are written once and run often: compiling one anew takes the ORM longer than running it.

Plain SQL that SQLite and PostgreSQL both read. Values pass through the model's own fields, as the ORM's would.
"""

from functools import cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections, models


def insert(instance: models.Model, *, ignore_existing: bool = False) -> bool:
    """Inserts a new instance in the caller's transaction. A key that the database counts is not read back.

    False: with `ignore_existing`, another row had its place.
    """
    model = type(instance)
    sql, fields = _insert_sql(model, ignore_existing)
    to = connections[DEFAULT_DB_ALIAS]  # itself: its proxy would be asked anew for every value
    held = instance.__dict__
    values = [
        held[name] if type(held.get(name)) in plain else field.get_db_prep_save(field.pre_save(instance, add=True), to)
        for field, name, plain in fields
    ]
    with to.cursor() as cursor:
        cursor.execute(sql, values)
        is_inserted = bool(cursor.rowcount)
    instance._state.adding, instance._state.db = not is_inserted, to.alias
    return is_inserted


def update(model: type[models.Model], key: Any, /, **values: Any) -> int:
    """Sets columns (attribute names) of the row with this primary key. Returns how many rows there were: 0 or 1."""
    sql, fields = _update_sql(model, tuple(values))
    to = connections[DEFAULT_DB_ALIAS]
    given = [
        value if type(value) in plain else field.get_db_prep_save(value, to)
        for (field, _, plain), value in zip(fields, values.values(), strict=True)
    ]
    with to.cursor() as cursor:
        cursor.execute(sql, [*given, model._meta.pk.get_db_prep_value(key, to, prepared=False)])
        return int(cursor.rowcount)


def save(instance: models.Model, /, **values: Any) -> None:
    """Sets attributes, and the columns as well where the instance is stored already; else its insert will."""
    for name, value in values.items():
        setattr(instance, name, value)
    if not instance._state.adding:
        update(type(instance), instance.pk, **values)


def find(model: type[models.Model], columns: tuple[str, ...], /, **wanted: Any) -> tuple[Any, ...] | None:
    """The columns of a row whose fields equal these values, as the driver gives them; `None` when there is none."""
    sql, fields = _find_sql(model, columns, tuple(wanted), tuple(name for name, value in wanted.items() if value != ""))
    to = connections[DEFAULT_DB_ALIAS]
    given = [field.get_db_prep_value(value, to, prepared=False) for field, value in zip(fields, wanted.values(), strict=True)]
    with to.cursor() as cursor:
        cursor.execute(sql, given)
        row: tuple[Any, ...] | None = cursor.fetchone()
    return row


def exists(model: type[models.Model], /, **wanted: Any) -> bool:
    """Whether there is a row whose fields equal these values; without any, whether there is a row at all."""
    return find(model, (), **wanted) is not None


def is_any_between(model: type[models.Model], name: str, first: str, end: str) -> bool:
    """Whether a text of a column lies from `first` on and before `end`, in the database's own order of texts."""
    column = _quoted(_field(model, name).column)
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(f"SELECT 1 FROM {_quoted(model._meta.db_table)} WHERE {column} >= %s AND {column} < %s LIMIT 1", [first, end])  # noqa: S608
        return cursor.fetchone() is not None


def take_turn(name: str) -> None:
    """Waits until no other transaction holds this turn, and holds it to the end of the caller's.

    For what no row's lock can order. On SQLite nothing is to be done: its transactions come one after the other.
    """
    if connections[DEFAULT_DB_ALIAS].vendor == "postgresql":
        with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])


def _quoted(name: str) -> str:
    return connections[DEFAULT_DB_ALIAS].ops.quote_name(name)


def _field(model: type[models.Model], name: str) -> Any:
    return model._meta.get_field(name)


_Column = tuple[Any, str, frozenset[type]]
"""A field, the name of its attribute, and the types whose values go to the database as they are."""

_NONE = type(None)
_PLAIN: dict[type, frozenset[type]] = {
    models.CharField: frozenset({str, _NONE}),
    models.TextField: frozenset({str, _NONE}),
    models.PositiveSmallIntegerField: frozenset({int, _NONE}),
    models.PositiveIntegerField: frozenset({int, _NONE}),
    models.PositiveBigIntegerField: frozenset({int, _NONE}),
    models.BigIntegerField: frozenset({int, _NONE}),
    models.FloatField: frozenset({float, _NONE}),
    models.BooleanField: frozenset({bool, _NONE}),
    models.ForeignKey: frozenset({_NONE}),
    models.OneToOneField: frozenset({_NONE}),
}


def _as_column(field: Any) -> _Column:
    return field, field.attname, _PLAIN.get(type(field), frozenset())


@cache
def _insert_sql(model: type[models.Model], ignore_existing: bool) -> tuple[str, list[_Column]]:  # noqa: FBT001  a key of the cache
    fields: list[Any] = [field for field in model._meta.concrete_fields if not isinstance(field, models.AutoField)]
    names = ", ".join(_quoted(field.column) for field in fields)
    marks = ", ".join(["%s"] * len(fields))
    tail = " ON CONFLICT DO NOTHING" if ignore_existing else ""
    return f"INSERT INTO {_quoted(model._meta.db_table)} ({names}) VALUES ({marks}){tail}", list(map(_as_column, fields))  # noqa: S608  names of our own


@cache
def _update_sql(model: type[models.Model], names: tuple[str, ...]) -> tuple[str, list[_Column]]:
    fields = [_field(model, name) for name in names]
    changes = ", ".join(f"{_quoted(field.column)} = %s" for field in fields)
    key = _quoted(str(model._meta.pk.column))
    return f"UPDATE {_quoted(model._meta.db_table)} SET {changes} WHERE {key} = %s", list(map(_as_column, fields))  # noqa: S608


@cache
def _find_sql(
    model: type[models.Model], columns: tuple[str, ...], names: tuple[str, ...], filled: tuple[str, ...]
) -> tuple[str, list[Any]]:
    fields = [_field(model, name) for name in names]
    told = ", ".join(_quoted(_field(model, name).column) for name in columns) or "1"
    tests = [f"{_quoted(field.column)} = %s" for field in fields]
    # An index of what is filled in is used only where the statement says, in the index's own words, that this is.
    conditions = [index.condition for index in model._meta.indexes]
    tests += [f"NOT ({_quoted(_field(model, name).column)} = '')" for name in filled if ~models.Q(**{name: ""}) in conditions]
    where = " AND ".join(tests)
    return f"SELECT {told} FROM {_quoted(model._meta.db_table)}{' WHERE ' + where if where else ''} LIMIT 1", fields  # noqa: S608
