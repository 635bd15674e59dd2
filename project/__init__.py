"""Wiring: settings, entry points, middleware. Nothing here knows what a session is."""

import os

from project.form import settings_module

# Every way in imports this package first: manage.py, an ASGI server, `celery -A project`.
os.environ.setdefault("DJANGO_SETTINGS_MODULE", settings_module(os.environ))

from project.lean import load_structlog

load_structlog()

from project import checks  # noqa: E402

__all__ = ["checks"]
