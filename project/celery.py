"""The Celery application. Tasks are found in `sessions_app.tasks`; their state lives in our own rows."""

from celery import Celery

celery_app = Celery("palimpsest")
celery_app.config_from_object("django.conf:settings", namespace="CELERY")
celery_app.autodiscover_tasks()

from project import worker  # noqa: E402, F401  what a worker process does besides its tasks
