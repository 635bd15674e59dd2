"""Connections that a serving process keeps: each request has a thread of its own, and so opened one of its own.

Opening costs more than most pages ask for, and all that SQLite had read is read again: its cache is the connection's.
Commands and workers that are processes of their own keep none.
"""

import atexit
import os
import sqlite3
from pathlib import Path
from threading import Lock

MOST = 3
"""So many wait at most, each with its cache."""

Identity = tuple[int, int]
"""Of a file: its device and its number there."""

_lock = Lock()
_is_on = False
_waiting: list[tuple[str, Identity, sqlite3.Connection]] = []
_abandoned: list[object] = []  # of the process that this one was forked from: not to be closed here


def share_connections() -> None:
    """Lets requests of this process use each other's connections, one after the other."""
    global _is_on  # noqa: PLW0603  a process serves, or does not
    _is_on = True
    atexit.register(close_all)
    os.register_at_fork(after_in_child=_abandon)


def is_on() -> bool:
    return _is_on


def take(name: str | Path) -> sqlite3.Connection | None:
    """A connection to the file that has this name now, if one waits. Those to another file that had it are closed."""
    identity = identity_of(name)
    with _lock:
        for place in range(len(_waiting) - 1, -1, -1):
            path, opened, connection = _waiting[place]
            if path == str(name):
                del _waiting[place]
                if opened == identity:
                    return connection
                connection.close()
    return None


def give(name: str | Path, opened: Identity | None, connection: sqlite3.Connection) -> None:
    """Keeps a connection to the file `opened` that nobody uses any more, or closes it. What it had not committed is undone."""
    try:
        connection.rollback()
    except sqlite3.Error:
        opened = None
    with _lock:
        if _is_on and opened is not None and opened == identity_of(name) and len(_waiting) < MOST:
            _waiting.append((str(name), opened, connection))
            return
    connection.close()


def close_all() -> None:
    """Closes those that wait. From now on none is kept."""
    global _is_on  # noqa: PLW0603
    _is_on = False
    with _lock:
        while _waiting:
            _waiting.pop()[2].close()


def _abandon() -> None:
    global _is_on  # noqa: PLW0603
    _is_on = False
    _abandoned.extend(_waiting)
    _waiting.clear()


def identity_of(name: str | Path) -> Identity | None:
    """Which file it is; None where there is none."""
    try:
        found = Path(name).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
