"""Many files at once: child processes read and write, each with a connection of its own.

Only commands do this: a worker's thread imports one upload at a time.
"""

import multiprocessing
import os
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from pathlib import Path

import django

from sessions_app.events.actors import Actor
from sessions_app.models import ImportRun
from sessions_app.services.imports.outcomes import SourceOutcome
from sessions_app.services.imports.source import import_source

WORTHWHILE_BYTES = 20_000_000
"""Below this, starting processes takes longer than it saves."""

MAX_PROCESSES = 4
QUEUED_PER_PROCESS = 4
CANCEL_INTERVAL = 1.0  # seconds between two looks at whether the run was cancelled


def is_worthwhile(files: list[Path]) -> bool:
    """Whether child processes pay for these files on this machine."""
    return len(files) > 1 and process_count() > 1 and sum(file.stat().st_size for file in files if file.is_file()) >= WORTHWHILE_BYTES


def process_count() -> int:
    return min(MAX_PROCESSES, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def import_files(*, actor: Actor, files: Iterable[Path], run_id: str) -> Iterator[SourceOutcome]:
    """Imports files in child processes and gives the outcomes as they come, in no order.

    Closing the iterator takes back what no child has begun; those that run end by themselves when the run is cancelled.
    """
    # A fork would share connections and locks. The initializer must not be ours: our modules need what it loads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(process_count(), mp_context=context, initializer=django.setup) as pool:
        waiting = iter(files)
        open_ones: set[Future[SourceOutcome]] = set()
        try:
            while True:
                for file in islice(waiting, process_count() * QUEUED_PER_PROCESS - len(open_ones)):
                    open_ones.add(pool.submit(_import_one, actor, str(file), run_id))
                if not open_ones:
                    return
                done, open_ones = wait(open_ones, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _import_one(actor: Actor, path: str, run_id: str) -> SourceOutcome:
    return import_source(actor=actor, path=Path(path), name=path, cancelled=_Cancelled(run_id))


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
