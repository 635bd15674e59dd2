"""The Celery application. Tasks are found in `sessions_app.tasks`; their state lives in our own rows.

It is loaded by workers and by whoever queues a task, and not before: most commands do neither.
"""

from celery import Celery

celery_app = Celery("palimpsest")
celery_app.config_from_object("django.conf:settings", namespace="CELERY")
celery_app.autodiscover_tasks()

from project import worker  # noqa: E402, F401  what a worker process does besides its tasks


def with_tasks() -> Celery:
    """The application for whoever queues a task, which must be known for that. The applications of Django must be loaded."""
    from sessions_app import tasks  # noqa: F401, PLC0415  needs the models

    return celery_app
