"""Django's PostgreSQL backend, made to keep what it is given: exact text, exact JSON, and one order of texts everywhere.

- Text passes through `exact_text`, for whatever statement it is.
- JSON is stored as `json`, the text itself: `jsonb` refuses U+0000 and gives numbers back in another notation, under which
  the hash of an event would no longer hold.
- Texts compare by their bytes (collation `C`), as SQLite's do: the order of a list does not depend on the machine's locale,
  and an index outlives a change of the system's collation tables.
- No length is enforced: the application cuts what must be cut, and both databases hold the same.
"""

from functools import lru_cache, partial
from json import dumps
from typing import Any

from django.conf import settings
from django.db.backends.postgresql import base, creation, operations
from django.db.backends.postgresql.psycopg_any import get_adapters_template
from psycopg.adapt import AdaptersMap, Loader
from psycopg.types.json import Json, JsonDumper
from psycopg.types.string import StrDumperUnknown

from project.postgresql import exact_text

TEXT_TYPES = ("text", "varchar", "bpchar")


class ExactStrDumper(StrDumperUnknown):
    def dump(self, obj: str) -> bytes:
        return exact_text.encode(obj)


class ExactJsonDumper(JsonDumper):
    oid = 0  # untyped: a column takes it as `json`, a comparison as `jsonb`

    def dump(self, obj: Any) -> Any:
        dumped = super().dump(obj)
        return None if dumped is None else exact_text.encode_json(bytes(dumped).decode())


class ExactTextLoader(Loader):
    def load(self, data: Any) -> str:
        return exact_text.decode(bytes(data))


class ExactJsonLoader(Loader):
    """Gives the document as text: Django's field reads it."""

    def load(self, data: Any) -> str:
        return exact_text.decode_json(bytes(data))


@lru_cache
def adapters(timezone: Any) -> AdaptersMap:
    """How values go to the server and come back, on every connection."""
    found = AdaptersMap(get_adapters_template(settings.USE_TZ, timezone))
    found.register_dumper(str, ExactStrDumper)
    found.register_dumper(Json, ExactJsonDumper)
    for name in TEXT_TYPES:
        found.register_loader(name, ExactTextLoader)
    for name in ("json", "jsonb"):
        found.register_loader(name, ExactJsonLoader)
    return found


class DatabaseOperations(operations.DatabaseOperations):
    def adapt_json_value(self, value: Any, encoder: Any) -> Json:  # type: ignore[override]  # the stubs say text
        return Json(value, dumps=partial(dumps, cls=encoder) if encoder else dumps)

    def lookup_cast(self, lookup_type: str, internal_type: str | None = None) -> str:
        # `json` has no equality of its own.
        if internal_type == "JSONField" and lookup_type in {"exact", "in"}:
            return "(%s)::jsonb"
        return str(super().lookup_cast(lookup_type, internal_type))


class DatabaseCreation(creation.DatabaseCreation):
    """Makes and removes the database of the tests."""

    def _destroy_test_db(self, test_database_name: str, verbosity: int) -> None:  # noqa: ARG002
        # A thread or a process that a test left behind still has a connection.
        with self._nodb_cursor() as cursor:  # type: ignore[attr-defined]  # the stubs do not know it
            cursor.execute(f"DROP DATABASE {self.connection.ops.quote_name(test_database_name)} WITH (FORCE)")


class DatabaseWrapper(base.DatabaseWrapper):
    data_types = {  # noqa: RUF012
        **base.DatabaseWrapper.data_types,
        "CharField": "varchar",
        "SlugField": "varchar",
        "JSONField": "json",
    }
    data_types_suffix = {  # noqa: RUF012
        **base.DatabaseWrapper.data_types_suffix,
        **dict.fromkeys(("CharField", "SlugField", "TextField"), 'COLLATE "C"'),
    }
    ops_class = DatabaseOperations
    creation_class = DatabaseCreation

    def get_connection_params(self) -> dict[str, Any]:
        return {**super().get_connection_params(), "context": adapters(self.timezone)}
