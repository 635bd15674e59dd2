"""What `celery -A project worker` does besides its tasks: refuses unsafe settings, logs as all processes do, says that it lives, sweeps."""

import os
import threading
from contextlib import suppress
from functools import partial
from typing import Any

import structlog
from celery.signals import celeryd_init, setup_logging, worker_ready, worker_shutdown

logger = structlog.get_logger(__name__)

_PATIENCE_S = 10.0


class _Rounds:
    """Held while a sweep runs, so that no child process is forked in the middle of one, with locks that nobody opens again."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._is_held = False

    def before_fork(self) -> None:
        self._is_held = self.lock.acquire(timeout=_PATIENCE_S)

    def after_fork(self) -> None:
        if self._is_held:
            self._is_held = False
            self.lock.release()

    def in_child(self) -> None:
        self.lock, self._is_held = threading.Lock(), False


_rounds = _Rounds()
_sweeps: list[Any] = []


@celeryd_init.connect
def prepare(**_: Any) -> None:
    """Before the worker loads anything."""
    from project.checks import refuse_unsafe_settings  # noqa: PLC0415  needs the settings, which are loaded by now

    refuse_unsafe_settings()


@setup_logging.connect
def keep_logging(**_: Any) -> None:
    """Logs as the settings say. Celery would set the level anew by its own `--loglevel`, and hide what a worker tells of its work."""
    from django.conf import settings  # noqa: PLC0415  as above

    from project.logging import set_up  # noqa: PLC0415  as above

    set_up(settings.LOGGING)


@worker_ready.connect
def start_sweeping(sender: Any = None, **_: Any) -> None:
    """In the worker's own process, never in a child of it: a sweep must not wait until a long task is done."""
    from project.sweeping import SweepThread  # noqa: PLC0415  needs the loaded applications

    os.register_at_fork(before=_rounds.before_fork, after_in_parent=_rounds.after_fork, after_in_child=_rounds.in_child)
    thread = SweepThread(partial(_beat, sender), at_start=False, beside=_rounds.lock)
    thread.start()
    _sweeps.append(thread)
    logger.info("worker_ready", worker=sender.hostname)


def _beat(consumer: Any) -> None:
    """A worker that was asked to end takes nothing more, however long what runs may still take."""
    from celery.worker import state  # noqa: PLC0415  loaded by now

    from sessions_app.services import heartbeats  # noqa: PLC0415  needs the loaded applications

    takes_tasks: bool = state.should_stop is None
    if takes_tasks:
        heartbeats.beat(consumer.hostname, set(consumer.app.amqp.queues.consume_from))
    else:
        heartbeats.end(consumer.hostname)


@worker_shutdown.connect
def stop_sweeping(sender: Any = None, **_: Any) -> None:
    from django.db import DatabaseError, connection  # noqa: PLC0415  as above

    from sessions_app.services import heartbeats  # noqa: PLC0415  as above

    while _sweeps:
        _sweeps.pop().stop()
    with suppress(DatabaseError):  # its last sign of life is old soon
        heartbeats.end(sender.hostname)
    connection.close()
