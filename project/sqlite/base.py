"""Django's SQLite backend, whose connections can outlive the request that opened them: see `project.sqlite.kept`."""

import sqlite3
import weakref
from typing import Any

from django.db.backends.sqlite3 import base

from project.sqlite import kept


class DatabaseWrapper(base.DatabaseWrapper):
    """As Django's own, until this process keeps connections."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._cursors: weakref.WeakSet[sqlite3.Cursor] = weakref.WeakSet()
        self._opened: kept.Identity | None = None  # the file behind the connection, where it may be kept

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        if not kept.is_on():
            return super().get_new_connection(conn_params)
        name = conn_params["database"]
        before = kept.identity_of(name)
        connection = kept.take(name) or super().get_new_connection(conn_params)
        after = kept.identity_of(name)
        self._opened = after if before in {None, after} else None
        return connection

    def create_cursor(self, name: str | None = None) -> Any:
        cursor = super().create_cursor(name)
        if kept.is_on():
            self._cursors.add(cursor)
        return cursor

    def _close(self) -> None:
        connection = self.connection
        if connection is None or not kept.is_on() or self.in_atomic_block or self.errors_occurred or self.is_in_memory_db():
            super()._close()  # type: ignore[misc]  # which the stubs do not know
            return
        for cursor in list(self._cursors):
            cursor.close()  # one that was not read to its end would hold its view of the database
        self._cursors.clear()
        kept.give(self.settings_dict["NAME"], self._opened, connection)
