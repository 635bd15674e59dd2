"""The only way to start a background task: by name, with plain arguments, after the transaction is committed."""

from functools import partial

import structlog
from django.conf import settings
from django.db import transaction
from django.utils.module_loading import import_string

logger = structlog.get_logger(__name__)

RUN_COMPACTION = "sessions_app.run_compaction"
RUN_TURN = "sessions_app.run_turn"
REPAIR_MEMORY = "sessions_app.repair_memory"
IMPORT_SESSIONS = "sessions_app.import_sessions"

ONE_PROCESS_BROKER = "memory://"
"""With this broker, what one process queues no other one gets."""


def is_shared() -> bool:
    """Whether workers of other processes get what this one queues."""
    return not settings.CELERY_BROKER_URL.startswith(ONE_PROCESS_BROKER)


def enqueue(task_name: str, *arguments: str) -> None:
    """Queues a task once the surrounding transaction commits, so that it finds the rows that it is about.

    A broker that is away is no failure: what is asked for is stored, and a sweep queues what nobody took.
    """
    transaction.on_commit(partial(_send, task_name, arguments))


def _send(task_name: str, arguments: tuple[str, ...]) -> None:
    from kombu.exceptions import OperationalError  # noqa: PLC0415  most processes queue nothing

    try:
        import_string(settings.TASK_APPLICATION)().tasks[task_name].delay(*arguments)
    except (OperationalError, OSError) as error:
        logger.warning("task_not_queued", task=task_name, error=type(error).__name__)
