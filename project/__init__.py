"""Wiring: settings, entry points, middleware. Nothing here knows what a session is."""

from project import checks
from project.celery import celery_app

__all__ = ["celery_app", "checks"]
