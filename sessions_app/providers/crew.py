"""Calls of models side by side, each in a thread of its own, for an attempt that has one."""

import queue
import threading
from collections.abc import Callable

from sessions_app.engine.asking import Raw
from sessions_app.engine.steps import ShouldStop, Stop, Stopped

LOOK_S = 0.1


class ThreadCrew:
    """A thread for each call. Whoever waits is let go within a second of a stop, also where a call does not heed it."""

    def __init__(self) -> None:
        self._back: queue.SimpleQueue[tuple[int, Raw]] = queue.SimpleQueue()
        self._dismissed = threading.Event()

    def submit(self, place: int, make: Callable[[ShouldStop], Raw], should_stop: ShouldStop) -> None:
        """Begins a call."""
        dismissed, back = self._dismissed, self._back

        def stop() -> Stop | None:
            return Stop.CANCELLED if dismissed.is_set() else should_stop()

        # A daemon: a call that heeds no stop must keep no process alive.
        threading.Thread(target=lambda: back.put((place, make(stop))), name=f"summary-{place}", daemon=True).start()

    def wait(self, should_stop: ShouldStop) -> tuple[int, Raw]:
        """The next call that has come back. Raises `Stopped`."""
        while True:
            try:
                return self._back.get(timeout=LOOK_S)
            except queue.Empty:
                if (stop := should_stop()) is not None:
                    raise Stopped(stop) from None

    def dismiss(self) -> None:
        """Stops what is under way, and forgets it."""
        self._dismissed.set()
        self._dismissed, self._back = threading.Event(), queue.SimpleQueue()
