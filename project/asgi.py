"""The application for an ASGI server of its own: `daphne project.asgi:application`. `up` serves it by itself."""

from project import checks
from project.application import application
from project.postgresql.pool import share_connections
from sessions_app.live.pauses import keep_what_is_loaded

checks.refuse_work_that_nobody_does()
checks.refuse_unsafe_settings()
checks.refuse_missing_static_files()
share_connections()
keep_what_is_loaded()

__all__ = ["application"]
