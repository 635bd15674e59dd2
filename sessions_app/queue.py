"""The only way to start a background task: by name, with plain arguments, after the transaction is committed."""

from celery import current_app

RUN_COMPACTION = "sessions_app.run_compaction"
IMPORT_SESSIONS = "sessions_app.import_sessions"


def enqueue(task_name: str, *arguments: str) -> None:
    """Queues a task once the surrounding transaction commits, so that it finds the rows that it is about."""
    current_app.tasks[task_name].delay_on_commit(*arguments)  # type: ignore[attr-defined]  # of Celery's task for Django
