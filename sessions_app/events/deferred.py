"""Events that nobody waits for: reads are written after the answer, many in one transaction."""

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial

import structlog
from django.db import InterfaceError, OperationalError, connection, transaction

from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import EventResult

logger = structlog.get_logger(__name__)

GATHER_S = 0.3
"""So long the first event waits for others. What a crash loses is at most this and the time that writing takes."""

MOST_AT_ONCE = 200
MOST_WAITING = 20_000
"""Beyond this the writer cannot keep up: then whoever reads waits until there is room, and no read goes unwritten."""

RETRY_S = 1.0
LAST_S = 5.0
"""How long the end of the process waits for what is still to be written."""


def append(
    stream: str,
    event_type: EventType,
    *,
    actor: Actor,
    result: EventResult = EventResult.ALLOWED,
    target: tuple[str, str] = ("", ""),
    reason: str = "",
    payload: dict[str, object] | None = None,
) -> None:
    """Appends an event soon. Within a transaction it is appended at once: then it belongs to that."""
    write = partial(log.append, stream, event_type, actor=actor, result=result, target=target, reason=reason, payload=payload)
    if connection.in_atomic_block:
        write()
    else:
        _writer.add(write)


def flush(timeout_s: float = LAST_S) -> bool:
    """Waits until everything is written. False: it took too long."""
    return _writer.flush(timeout_s)


class Writer:
    """One thread that writes what was handed to it, in order. It starts with the first event, in whatever process that is."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], object]] = deque()
        self._changed = threading.Condition()
        self._is_writing = False
        self._is_urgent = False
        self._thread: threading.Thread | None = None

    def add(self, write: Callable[[], object]) -> None:
        with self._changed:
            if self._thread is None:
                # A daemon: a database that does not answer must not keep a process alive. `flush` runs at its end.
                self._thread = threading.Thread(target=self._run, name="events", daemon=True)
                self._thread.start()
            self._changed.wait_for(lambda: len(self._waiting) < MOST_WAITING)
            self._waiting.append(write)
            self._changed.notify_all()

    def flush(self, timeout_s: float) -> bool:
        with self._changed:
            self._is_urgent = True
            self._changed.notify_all()
            try:
                return self._changed.wait_for(lambda: not self._waiting and not self._is_writing, timeout_s)
            finally:
                self._is_urgent = False

    def _run(self) -> None:
        while True:
            batch = self._next()
            try:
                _write_all(batch)
            except (OperationalError, InterfaceError) as error:  # locked, full, gone: it may come back
                logger.warning("events_wait", waiting=len(batch), error=type(error).__name__)
                self._put_back(batch)
                time.sleep(RETRY_S)
            except Exception as error:  # noqa: BLE001  one of them cannot be written at all: the others still can
                logger.warning("events_one_by_one", waiting=len(batch), error=type(error).__name__)
                self._write_singly(batch)
            finally:
                connection.close()

    def _write_singly(self, batch: list[Callable[[], object]]) -> None:
        for write in batch:
            try:
                _write_all([write])
            except (OperationalError, InterfaceError):
                self._put_back([write])
            except Exception:
                logger.exception("event_lost")

    def _next(self) -> list[Callable[[], object]]:
        with self._changed:
            self._is_writing = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._waiting)
            self._changed.wait_for(lambda: self._is_urgent or len(self._waiting) >= MOST_AT_ONCE, GATHER_S)
            self._is_writing = True
            return [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST_AT_ONCE))]

    def _put_back(self, batch: list[Callable[[], object]]) -> None:
        with self._changed:
            self._waiting.extendleft(reversed(batch))


def _write_all(batch: list[Callable[[], object]]) -> None:
    with transaction.atomic():
        for write in batch:
            write()


def _start_anew() -> None:
    """After a fork: threads do not come along, and the lock may be held by one of them."""
    global _writer  # noqa: PLW0603  one for the process, and this is another process
    _writer = Writer()


_writer = Writer()
os.register_at_fork(after_in_child=_start_anew)
atexit.register(lambda: _writer.flush(LAST_S))
