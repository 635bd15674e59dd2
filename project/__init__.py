"""Wiring: settings, entry points, middleware. Nothing here knows what a session is."""

import os

from project.form import settings_module

# Every way in imports this package first: manage.py, an ASGI server, `celery -A project`.
os.environ.setdefault("DJANGO_SETTINGS_MODULE", settings_module(os.environ))

from project import checks
from project.celery import celery_app

__all__ = ["celery_app", "checks"]
