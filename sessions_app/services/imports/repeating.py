"""Whether an import may try once more what a database server did not let it finish."""

import time

from django.db import DatabaseError, InterfaceError, OperationalError, connection

CROSSED = frozenset({"40001", "40P01"})
"""SQLSTATEs of a transaction that was ended for the sake of another one: serialization failure, deadlock."""

AWAY_S = 30.0
LOOK_S = 0.5


def may_repeat(error: DatabaseError | InterfaceError) -> bool:
    """Whether the same may succeed now. Where the server went away, waits up to `AWAY_S` seconds until it is back.

    On SQLite nothing is to be repeated: there a statement has waited long enough before it fails.
    """
    if connection.vendor == "sqlite":
        return False
    if getattr(error.__cause__, "sqlstate", None) in CROSSED:
        return True
    if connection.connection is not None and connection.is_usable():
        return False
    until = time.monotonic() + AWAY_S
    while time.monotonic() < until:
        connection.close()
        try:
            connection.ensure_connection()
        except OperationalError:
            time.sleep(LOOK_S)
        else:
            return True
    return False
