"""Databases that are in the way."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def closed_to_writing() -> Iterator[None]:
    """This thread's connection may read and not write, as on a standby or with a file that is read-only."""
    on, off = ("PRAGMA query_only = 1", "PRAGMA query_only = 0")
    if connection.vendor == "postgresql":
        on, off = ("SET default_transaction_read_only = on", "SET default_transaction_read_only = off")
    with connection.cursor() as cursor:
        cursor.execute(on)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(off)
