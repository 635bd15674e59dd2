"""Turns at writing between processes that import at once.

SQLite lets one write at a time, and whoever has to wait looks again after longer and longer naps: of two that write all the
time one mostly sleeps. A lock on a file wakes the next one at once. It is only about speed: SQLite's own lock still decides.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from django.conf import settings

try:
    import fcntl
except ImportError:  # not on this system: everybody naps
    fcntl = None  # type: ignore[assignment]

_file: IO[bytes] | None = None
_depth = 0


def take_turns() -> None:
    """From now on this process, which must have one thread, waits for its turn in `write_turn`."""
    global _file  # noqa: PLW0603  of the process
    if _file is None and fcntl is not None:
        _file = (Path(settings.DATA_DIR) / "import.turn").open("ab")


@contextmanager
def write_turn() -> Iterator[None]:
    """Around a transaction that writes; within each other as well."""
    global _depth  # noqa: PLW0603
    if _file is None or _depth:
        yield
        return
    fcntl.flock(_file, fcntl.LOCK_EX)
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        fcntl.flock(_file, fcntl.LOCK_UN)
