"""Background work inside the web's process: Celery workers on threads, the sweep, notices of other processes. For `up` and live tests.

A threads pool cannot kill what it runs, so whatever runs asks whether it should stop: see `services.compactions.keeper`.
"""

import os
import socket
import threading
import time
from functools import partial
from typing import Any

import structlog
from celery.worker import WorkController
from celery.worker import state as worker_state

from project.celery import celery_app
from project.sweeping import RepeatingThread, SweepThread
from sessions_app.services import heartbeats, notices
from sessions_app.services.compactions import keeper

logger = structlog.get_logger(__name__)

READY_S = 60
LOOK_S = 0.2
INTERRUPT_S = 1.5
STOP_S = 3.0
AFTER_FAILURE_S = 1.0
CONCURRENCY = {"compactions": 2, "imports": 1, "turns": 4}
"""Threads by queue. Imports have a worker of their own: a long one must not keep a compaction waiting. Turns mostly wait for a model."""


class EmbeddedWorker(WorkController):
    """A worker on one queue, in a thread of its own."""

    def __init__(self, queue: str) -> None:
        self.ready = threading.Event()
        self._queue = queue
        super().__init__(
            app=celery_app,
            hostname=f"{queue}@embedded",
            pool="threads",
            concurrency=CONCURRENCY[queue],
            queues=[queue],
            without_heartbeat=True,
            without_mingle=True,
            without_gossip=True,
        )
        self._thread = threading.Thread(target=self.start, name=f"worker-{queue}", daemon=True)

    def should_use_eventloop(self) -> bool:
        # Celery's loop is one for each process: two workers that share it, over Redis, take each other's sockets away.
        return False

    def on_consumer_ready(self, consumer: Any) -> None:
        # Celery waits two seconds for messages before it looks whether it should stop: too long for a server's end.
        drain = consumer.connection.drain_events
        consumer.connection.drain_events = lambda timeout: drain(timeout=min(timeout, LOOK_S))
        self.ready.set()

    def run_in_background(self) -> None:
        """Returns when tasks are taken. Raises `RuntimeError` when that does not come about."""
        self._thread.start()
        if not self.ready.wait(READY_S):
            raise RuntimeError(f"The background worker for {self._queue} did not start within {READY_S} s.")

    def wait_for_end(self, timeout_s: float) -> bool:
        self._thread.join(timeout_s)
        return not self._thread.is_alive()


class BackgroundWork:
    """The workers, the sweep and the notices of this process. One at a time."""

    def __init__(self, *, sweeps: bool = True) -> None:
        self._workers: list[EmbeddedWorker] = []
        beat = partial(heartbeats.beat, f"embedded{os.getpid()}@{socket.gethostname()}", CONCURRENCY)
        self._threads = [_NoticeThread(), SweepThread(beat)] if sweeps else []

    def start(self) -> None:
        """Returns when tasks are taken."""
        # Each worker would run all system checks, for which it loads every page: whoever starts this has its own.
        os.environ.setdefault("CELERY_SKIP_CHECKS", "1")
        worker_state.should_stop = None
        # One after the other: the application's list of queues to consume is read as each worker starts.
        for queue in CONCURRENCY:
            worker = EmbeddedWorker(queue)
            worker.run_in_background()
            self._workers.append(worker)
        for thread in self._threads:
            thread.start()

    def stop(self) -> bool:
        """Ends running compactions as failed, and the workers; imports wait for the next start. False: something still runs."""
        worker_state.should_stop = 0  # type: ignore[assignment]  # an exit code; its module declares None
        for thread in self._threads:
            thread.stop()
        keeper.interrupt_all(INTERRUPT_S)
        until = time.monotonic() + STOP_S
        stopped = [worker.wait_for_end(max(0.0, until - time.monotonic())) for worker in self._workers]
        return all(stopped)


class _NoticeThread(RepeatingThread):
    """Looks forty times a second whether another process wrote; each look is one statement and takes microseconds."""

    name = "notices"

    def __init__(self) -> None:
        super().__init__(notices.EVERY_S, AFTER_FAILURE_S)
        self._others: notices.CommitsOfOthers | None = None

    def start(self) -> None:
        if notices.are_noticeable():
            self._others = notices.CommitsOfOthers()
            super().start()

    def once(self) -> None:
        # Its connection stays open: the count is one of what others did since it was opened.
        assert self._others is not None
        self._others.look()
