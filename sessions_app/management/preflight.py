"""What must be true before the product starts. Each failure is one sentence: what is wrong, and what to do."""

import errno
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from pkgutil import iter_modules

from django.apps import apps
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from django.db import DatabaseError, InterfaceError, OperationalError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder


def check_settings(warn: Callable[[str], object]) -> None:
    """Raises `CommandError` on settings that contradict each other or are unsafe together; `warn` is told of doubtful ones."""
    for message in run_checks(tags=["palimpsest"]):
        sentence = " ".join(filter(None, (message.msg, message.hint)))
        if message.is_serious():
            raise CommandError(f"{sentence} Nothing was started.")
        warn(sentence)


def check_data_directory(folder: Path) -> None:
    """Makes the folder, for its owner alone, where it is missing. Raises `CommandError` when it can't be written."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise CommandError(
            f"The data directory {folder} cannot be written ({error.strerror}). Nothing was started. "
            "Give another one with --data-dir or PALIMPSEST_DATA_DIR."
        ) from error


def port_number(text: str) -> int:
    """A TCP port. Raises `CommandError` when the text is none."""
    if not (text.isascii() and text.isdecimal() and 0 < int(text) < 65_536):
        raise CommandError(f"{text!r} is no port: ports are numbers from 1 to 65535. Nothing was started.")
    return int(text)


def check_port(host: str, port: int) -> None:
    """Raises `CommandError` when nobody could listen there."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        with socket.socket(family, kind, protocol) as probe:
            # As the server does: a port that an earlier run left in TIME_WAIT is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen()
    except (OSError, OverflowError) as error:
        raise CommandError(f"{_why_not(error, host, port)} Nothing was started. Give another one with --port or --host.") from error


def _why_not(error: Exception, host: str, port: int) -> str:
    number = getattr(error, "errno", None)
    if number == errno.EADDRINUSE:
        return f"Port {port} of {host} is in use by another program."
    if number == errno.EACCES:
        return f"This user may not listen on port {port}."
    return f"Nothing can listen on {host} port {port} ({error})."


def missing_database() -> Path | None:
    """The file of the database that is to be there and is not. `None` where it is, or where the database is no file."""
    if connection.vendor != "sqlite" or connection.is_in_memory_db():  # type: ignore[attr-defined]  # of its own backend
        return None
    path = Path(_database_name())
    return None if path.exists() else path


def prepare_database(*, may_migrate: bool = True) -> None:
    """Brings the database up to date. Raises `CommandError` when it is newer than this version, or is none at all.

    Without `may_migrate`, also when it is older: where other processes use it, somebody has to decide on the moment.
    """
    try:
        if _has_exactly_ours():
            return
        executor = MigrationExecutor(connection)
        loader = executor.loader
        ours = {app for app, _ in loader.disk_migrations}
        unknown = sorted(key for key in loader.applied_migrations if key[0] in ours and key not in loader.disk_migrations)
        if unknown:
            raise CommandError(
                f"The database {_database_name()} was made by a newer version of Palimpsest ({'.'.join(unknown[0])}). "
                f"Nothing was changed. Start that version, or {_another_database()}."
            )
        if executor.migration_plan(loader.graph.leaf_nodes()):
            if not may_migrate:
                raise CommandError(
                    f"The database {_database_name()} is older than this version. Nothing was changed. Run: python3 manage.py migrate"
                )
            with _alone():
                call_command("migrate", verbosity=0, interactive=False)
    except DatabaseError as error:
        raise CommandError(unusable(error, "Nothing was changed.")) from error


def unusable(error: DatabaseError, changed: str) -> str:
    """The sentence for a database that can't be reached or used as it is; `changed` says what became of the data."""
    return f"The database {_database_name()} cannot be used ({_first_line(error)}). {changed} {_remedy(error)}."


def is_about_the_database(error: DatabaseError) -> bool:
    """Whether it says that the database as a whole can't be used; else a statement was wrong, and it takes a traceback to see which."""
    return type(error) in {DatabaseError, InterfaceError, OperationalError} or _NO_RIGHT in str(error)


def _has_exactly_ours() -> bool:
    """Whether the applied migrations are those on disk, going by their names: to load them all takes as long as many a command."""
    folders = {config.label: Path(config.path, "migrations") for config in apps.get_app_configs()}
    on_disk = {
        (label, module.name) for label, folder in folders.items() for module in iter_modules([str(folder)]) if module.name[0] not in "_~"
    }
    return on_disk == {key for key in MigrationRecorder(connection).applied_migrations() if key[0] in folders}


@contextmanager
def _alone() -> Iterator[None]:
    """Two processes that start at once must not migrate at once. SQLite has locks of its own."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(hashtextextended('migrate', 0))")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(hashtextextended('migrate', 0))")


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


LEAST_FREE = 1_000_000
"""Bytes without which a database can't be opened: beside a file of SQLite stands another one while it is in use."""

_NO_RIGHT = "permission denied"
_REMEDIES = (
    ("no pg_hba.conf entry", "Let its server take this user from here (pg_hba.conf), or correct PALIMPSEST_DATABASE_URL"),
    (_NO_RIGHT, "Make the user of PALIMPSEST_DATABASE_URL the owner of the database"),
    ('database "', "Make it on its server (createdb), or correct the name in PALIMPSEST_DATABASE_URL"),
    ("authentication failed", "Correct the user and the password in PALIMPSEST_DATABASE_URL"),
    ('role "', "Make that user on its server (createuser), or correct the name in PALIMPSEST_DATABASE_URL"),
    ("resolve host", "Correct the host in PALIMPSEST_DATABASE_URL"),
    ("too many clients", "Allow it more connections (max_connections), or give each process fewer with PALIMPSEST_DATABASE_POOL"),
    ("starting up", "Its server is starting: try again in a moment"),
    ("shutting down", "Its server is stopping: try again when it is back"),
)
"""What PostgreSQL says of itself, and what to do about it. All else is a server that does not answer."""


def _remedy(error: Exception) -> str:
    said = str(error)
    if connection.vendor != "postgresql":
        return f"{_remedy_of_a_file(said.lower())}, or {_another_database()}"
    return next((remedy for words, remedy in _REMEDIES if words in said), "Start its server, or correct PALIMPSEST_DATABASE_URL")


def _remedy_of_a_file(said: str) -> str:
    if "locked" in said:
        return "Stop the program that holds it"
    # A full disk is told as an error of reading where not even the file beside it can be made.
    if "full" in said or ("i/o" in said and shutil.disk_usage(Path(_database_name()).parent).free < LEAST_FREE):
        return "Free some space on its disk"
    return "See whether its disk is well" if "i/o" in said else "Put a copy of it back"


def _another_database() -> str:
    return "correct PALIMPSEST_DATABASE_URL" if connection.vendor == "postgresql" else "give another directory with --data-dir"


def _database_name() -> str:
    return str(connection.settings_dict["NAME"])
