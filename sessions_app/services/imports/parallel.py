"""Many files at once: child processes read and write, each with a connection of its own.

Only commands do this: a worker's thread imports one upload at a time.
"""

import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from pathlib import Path

from django.db import connection, connections

from sessions_app import child_processes
from sessions_app.events.actors import Actor
from sessions_app.models import ImportRun
from sessions_app.services import search_index, write_turns
from sessions_app.services.imports.outcomes import SourceOutcome
from sessions_app.services.imports.together import import_sources

WORTHWHILE_BYTES = 20_000_000
WORTHWHILE_FILES = 300
"""Below both, starting processes takes longer than it saves."""

MAX_PROCESSES = 4
QUEUED_PER_PROCESS = 4
TASK_BYTES = 500_000
TASK_FILES = 25
"""What one task takes of small files: handing each over by itself would take as long as importing it."""

CHECKPOINT_PAGES = 12_000
"""Of SQLite's log, about 50 MB: a page that many transactions in a row change is then copied into the database once."""

__all__ = ["BrokenProcessPool", "import_files", "is_worthwhile", "process_count"]

CANCEL_INTERVAL = 1.0  # seconds between two looks at whether the run was cancelled


def is_worthwhile(files: list[Path]) -> bool:
    """Whether child processes pay for these files on this machine."""
    if len(files) < 2 or process_count() < 2:
        return False
    return len(files) >= WORTHWHILE_FILES or sum(map(_size, files)) >= WORTHWHILE_BYTES


def process_count() -> int:
    return min(MAX_PROCESSES, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def import_files(*, actor: Actor, files: Iterable[Path], run_id: str) -> Iterator[SourceOutcome]:
    """Imports files in child processes and gives the outcomes as they come, in no order.

    Closing the iterator takes back what no child has begun; those that run end by themselves when the run is cancelled.
    """
    connections.close_all()  # a fork would share them
    with ProcessPoolExecutor(process_count(), mp_context=_context(), initializer=child_processes.begin) as pool:
        waiting = _tasks(files)
        open_ones: set[Future[list[SourceOutcome]]] = set()
        try:
            while True:
                for task in islice(waiting, process_count() * QUEUED_PER_PROCESS - len(open_ones)):
                    open_ones.add(pool.submit(_import_some, actor, task, run_id))
                if not open_ones:
                    return
                done, open_ones = wait(open_ones, return_when=FIRST_COMPLETED)
                for future in done:
                    yield from future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _context() -> multiprocessing.context.BaseContext:
    """A fork has everything loaded already; beside other threads, it could come while one of them holds a lock."""
    is_safe = sys.platform == "linux" and threading.active_count() == 1
    return multiprocessing.get_context("fork" if is_safe else "spawn")


def _tasks(files: Iterable[Path]) -> Iterator[list[str]]:
    """The files in their order: large ones one by one, small ones some at a time."""
    task: list[str] = []
    held = 0
    for file in files:
        size = _size(file)
        if task and (held + size > TASK_BYTES or len(task) >= TASK_FILES):
            yield task
            task, held = [], 0
        task.append(str(file))
        held += size
    if task:
        yield task


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0  # whoever imports it says why


def _import_some(actor: Actor, paths: list[str], run_id: str) -> list[SourceOutcome]:
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA mmap_size = 0")  # it would count for each process, and imports hardly read
            cursor.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        write_turns.take_turns()
    cancelled = _Cancelled(run_id)
    outcomes = list(import_sources(actor=actor, paths=[Path(path) for path in paths], cancelled=cancelled))
    search_index.index_sessions(outcome.session_id for outcome in outcomes if outcome.entries)
    return outcomes


class _Cancelled:
    """Whether somebody cancelled the run; looks at most once a second."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._answer = False
        self._next_look = time.monotonic() + CANCEL_INTERVAL

    def __call__(self) -> bool:
        if not self._answer and time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + CANCEL_INTERVAL
            self._answer = ImportRun.objects.filter(pk=self._run_id, cancel_requested=True).exists()
        return self._answer
