"""The application for an ASGI server of its own: `daphne project.asgi:application`. `up` serves it by itself."""

from project import checks
from project.application import application
from project.postgresql.pool import share_connections

checks.refuse_work_that_nobody_does()
checks.refuse_unsafe_settings()
checks.refuse_missing_static_files()
share_connections()

__all__ = ["application"]
