"""Signals that end a command."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """SIGTERM and the end of the terminal are as Ctrl-C, so that what was begun is ended, unless told otherwise (`nohup`)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    wanted = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, _interrupt) for number in wanted}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
