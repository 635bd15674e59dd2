"""The pool of a web process: one connection per request would cost more than the page.

Commands and workers have none: a pool belongs to one process, and a worker forks; and a command that finds no database
should say so at once.
"""

from django.conf import settings
from django.db import connections

WAIT_S = 10
"""How long a request waits for a connection while all of them are in use."""


def share_connections() -> None:
    """Lets the threads of this process share its connections. Call before the first one is opened."""
    connections.settings["default"].setdefault("OPTIONS", {})["pool"] = {
        "min_size": 1,
        "max_size": settings.DATABASE_POOL,  # type: ignore[misc]  # of the distributed form alone
        "timeout": WAIT_S,
    }
