"""Threads that do something again and again beside a process's work; the sweep is one of them."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import structlog
from django.db import DatabaseError, connection

from sessions_app.services import sweeper

logger = structlog.get_logger(__name__)


class RepeatingThread(ABC):
    """Does something again and again until it is stopped. A daemon: it must not keep a process alive."""

    name: str

    def __init__(self, every_s: float, after_failure_s: float) -> None:
        self._every_s, self._after_failure_s = every_s, after_failure_s
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(1)

    @abstractmethod
    def once(self) -> None:
        """One round. Whatever it raises is logged, and the next round comes all the same."""

    def _run(self) -> None:
        while True:
            rest_s = self._every_s
            try:
                self.once()
            except Exception as error:  # whatever it is: what the next rounds would do would be left undone for ever
                logger.warning(f"{self.name}_failed", error=type(error).__name__, exc_info=not isinstance(error, DatabaseError))
                connection.close()
                rest_s = self._after_failure_s
            if self._closing.wait(rest_s):
                connection.close()
                return


class SweepThread(RepeatingThread):
    """Gives a sign of life (`beat`) and sweeps, at once and then every ten seconds.

    `at_start`: the queue of this process is new, so that the first sweep queues everything that waits. `beside` is held during both.
    """

    name = "sweep"

    def __init__(self, beat: Callable[[], object], *, at_start: bool = True, beside: AbstractContextManager[object] | None = None) -> None:
        super().__init__(sweeper.EVERY_S, sweeper.EVERY_S)
        self._beat = beat
        self._at_start = at_start
        self._beside = beside or nullcontext()

    def once(self) -> None:
        with self._beside:
            self._beat()
            report = sweeper.sweep(at_start=self._at_start)
            self._at_start = False
            if report != sweeper.SweepReport():
                logger.info("swept", found=report.words())
            connection.close()
