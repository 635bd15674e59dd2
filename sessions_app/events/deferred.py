"""Events that nobody waits for: reads are written after the answer, many in one transaction.

No read goes unwritten: while nothing can be written, nothing is shown either. Decision 20 says what a crash may cost all the same.
"""

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial

import structlog
from django.db import InterfaceError, InternalError, OperationalError, connection, transaction

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

UNUSABLE = (OperationalError, InterfaceError, InternalError)
"""Locked, full, gone, or (an internal error of PostgreSQL) closed to writing: it may come back."""

_AT_ONCE: ContextVar[bool] = ContextVar("at_once", default=False)


class NotRecorded(OperationalError):  # noqa: N818  it says what is the matter
    """A read can't be written down now, so what would be read is not shown. The text is what the database says."""


@contextmanager
def at_once() -> Iterator[None]:
    """Within it each event is written before `append` returns: for whoever may end at any moment, and can wait."""
    token = _AT_ONCE.set(True)
    try:
        yield
    finally:
        _AT_ONCE.reset(token)


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
    """Appends an event soon. Within a transaction it is appended at once: then it belongs to that.

    Raises `NotRecorded` where it can't be written, or, outside of `at_once`, while the ones before it could not.
    """
    write = partial(log.append, stream, event_type, actor=actor, result=result, target=target, reason=reason, payload=payload)
    if connection.in_atomic_block:
        write()
    elif _AT_ONCE.get():
        try:
            write()
        except UNUSABLE as error:
            raise NotRecorded(str(error)) from error
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
        self._failure = ""  # why the last attempt came to nothing
        self._thread: threading.Thread | None = None

    def add(self, write: Callable[[], object]) -> None:
        with self._changed:
            if self._failure:
                raise NotRecorded(self._failure)
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
                self._failure = ""
            except UNUSABLE as error:
                self._wait(batch, error)
            except Exception as error:  # noqa: BLE001  one of them cannot be written at all: the others still can
                logger.warning("events_one_by_one", waiting=len(batch), error=type(error).__name__)
                self._write_singly(batch)
            finally:
                connection.close()

    def _write_singly(self, batch: list[Callable[[], object]]) -> None:
        for place, write in enumerate(batch):
            try:
                _write_all([write])
                self._failure = ""
            except UNUSABLE as error:
                self._wait(batch[place:], error)
                return
            except Exception:
                logger.exception("event_lost")

    def _wait(self, batch: list[Callable[[], object]], error: Exception) -> None:
        logger.warning("events_wait", waiting=len(batch), error=type(error).__name__)
        self._failure = str(error) or type(error).__name__
        with self._changed:
            self._waiting.extendleft(reversed(batch))
        time.sleep(RETRY_S)

    def _next(self) -> list[Callable[[], object]]:
        with self._changed:
            self._is_writing = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._waiting)
            self._changed.wait_for(lambda: self._is_urgent or len(self._waiting) >= MOST_AT_ONCE, GATHER_S)
            self._is_writing = True
            return [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST_AT_ONCE))]

    def end(self, timeout_s: float) -> None:
        """At the end of the process: what can't be written by then is lost, and said to be."""
        if not self.flush(timeout_s):
            logger.error("events_lost", waiting=len(self._waiting), error=self._failure)


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
atexit.register(lambda: _writer.end(LAST_S))
