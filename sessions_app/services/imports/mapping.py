"""Reading SQLite without mapping its file into memory."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

LARGE_BYTES = 20_000_000
"""Sources from this size on: their own pages, read back at the end, would make up half of the process."""

MANY_FILES = 300
"""Files from this number on: the rows that tell of them lie all over the database."""


@contextmanager
def unmapped(*, unless: bool = False) -> Iterator[None]:
    """Meanwhile this thread's connection does not map a database into memory. `unless`: it does."""
    if connection.vendor != "sqlite" or unless:
        yield
        return
    with connection.cursor() as cursor:
        told = cursor.execute("PRAGMA mmap_size").fetchone()
        cursor.execute("PRAGMA mmap_size = 0")
    try:
        yield
    finally:
        if told:
            with connection.cursor() as cursor:
                cursor.execute(f"PRAGMA mmap_size = {int(told[0])}")
