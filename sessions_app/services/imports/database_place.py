"""Whether the database still is where it was. Who has a file open can go on writing to it when nobody else finds it any more."""

from pathlib import Path

from django.db import connection


class DatabaseGoneError(Exception):
    """Another program removed or replaced the database. The message is for people."""


class DatabasePlace:
    """The database as it is found when this is made. A server's answers for itself."""

    def __init__(self) -> None:
        self._path = str(connection.settings_dict["NAME"]) if connection.vendor == "sqlite" else ""
        self._found = self._look()

    def check(self) -> None:
        """Raises `DatabaseGoneError` when there is none any more, or another one."""
        if self._found is not None and self._look() != self._found:
            raise DatabaseGoneError(
                f"The database {self._path} was removed or replaced meanwhile. What was stored since then is lost with it; "
                "put the database back where it was, or import again."
            )

    def _look(self) -> tuple[int, int] | None:
        try:
            status = Path(self._path).stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino
