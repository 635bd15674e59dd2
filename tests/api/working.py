"""A worker for tests of what waits for one: each queued task runs in a thread of its own, as soon as it is committed."""

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection

from sessions_app import queue
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.turns.run import run_turn
from tests.services.compaction_scenes import PATIENCE_S

_TASKS = {queue.RUN_COMPACTION: run_compaction, queue.RUN_TURN: run_turn}


@contextmanager
def tasks_in_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[threading.Thread]]:
    """While it runs, tasks are carried out. All of them have ended at its end."""
    threads: list[threading.Thread] = []

    def send(name: str, arguments: tuple[str, ...]) -> None:
        if name in _TASKS:
            thread = threading.Thread(target=_run, args=(name, uuid.UUID(arguments[0])), daemon=True)
            threads.append(thread)
            thread.start()

    monkeypatch.setattr(queue, "_send", send)
    yield threads
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def _run(name: str, identifier: uuid.UUID) -> None:
    try:
        _TASKS[name](identifier)
    finally:
        connection.close()
