"""Each file that is followed: up to where it is taken in, and how it is brought up to date."""

import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from sessions_app.events.actors import Actor
from sessions_app.models import SessionKind
from sessions_app.readers.base import SourceReading
from sessions_app.services.imports.growth import GrowingReading, OpenSource
from sessions_app.services.imports.outcomes import SourceOutcome, SourceState
from sessions_app.services.imports.source import import_source
from sessions_app.services.imports.whole_lines import end_of_lines, is_object
from sessions_app.services.imports.writer import SourceWriter

RETRY_S = 1.0
QUIET_S = 2.0
"""A last line without its end is taken when it is an object and nothing came for so long."""

LARGE_BYTES = 2_000_000
"""What is to be read of a large file: others do not wait behind it."""


OPEN_RECORDS = 400_000
"""Records of all sources that are kept open, about 100 bytes each: those that were used last."""


@dataclass
class _Known:
    """`end`: bytes that are taken in. `device` and `inode` tell a file from another one that took its place."""

    end: int
    device: int
    inode: int


class WatchedFiles:
    """The files of a watch. One thread at a time may bring a file up; different files may come from different threads."""

    def __init__(self, *, actor: Actor, cancelled: Callable[[], bool]) -> None:
        self._actor, self._cancelled = actor, cancelled
        self._known: dict[Path, _Known] = {}
        self._open: dict[Path, OpenSource] = {}  # the latest used last
        self._observed: set[str] = set()
        self._lock = threading.Lock()

    def is_large(self, path: Path) -> bool:
        """Whether bringing it up to date may take long."""
        known = self._known.get(path)
        try:
            return path.stat().st_size - (known.end if known else 0) > LARGE_BYTES
        except OSError:
            return False

    def is_observed(self, session_id: str) -> bool:
        """Whether this was asked of a session before."""
        with self._lock:
            is_so = session_id in self._observed
            self._observed.add(session_id)
        return is_so

    def forget(self, paths: Iterable[Path]) -> None:
        """Files that are gone. What was taken in of them stays in the product."""
        with self._lock:
            for path in paths:
                self._known.pop(path, None)
                self._open.pop(path, None)

    def bring_up(self, path: Path) -> tuple[SourceOutcome | None, float | None]:
        """Takes in what is new. Answers what came of it, if anything, and after how many seconds to look again, if at all.

        A last line that is half written waits for its end. Raises `OSError` when the file can't be read.
        """
        try:
            file = path.open("rb")
        except FileNotFoundError:
            self.forget([path])
            return None, None
        with file:
            status = os.fstat(file.fileno())
            known = self._known.get(path)
            start = known.end if known is not None and self._is_same(known, status) else 0
            until, again_s = status.st_size, None
            if path.suffix == ".jsonl":
                until = end_of_lines(file, status.st_size, start=start)
                if until < status.st_size and is_object(file, until, status.st_size):
                    is_quiet = time.time() - status.st_mtime >= QUIET_S
                    until, again_s = (status.st_size, None) if is_quiet else (until, QUIET_S)
            if until == 0 or (until == start and path.suffix == ".jsonl"):
                return None, again_s
            outcome = self._go_on(path, file, until) if start else None
        if outcome is None:
            outcome = self._import(path, until)
        if outcome.may_retry:
            return outcome, RETRY_S
        if outcome.state not in {SourceState.FAILED, SourceState.CANCELLED, SourceState.SKIPPED}:
            with self._lock:
                self._known[path] = _Known(until, status.st_dev, status.st_ino)
        return outcome, again_s

    def _go_on(self, path: Path, file: BinaryIO, until: int) -> SourceOutcome | None:
        """Takes in what was added to a source that is open. `None`: it is not, or knows too little."""
        with self._lock:
            source = self._open.pop(path, None)
        if source is None or source.end > until:
            return None
        outcome = source.go_on(file, until, str(path))
        if outcome is not None:
            self._keep(path, source)
        return outcome

    def _import(self, path: Path, until: int) -> SourceOutcome:
        def keep(reading: SourceReading, writer: SourceWriter) -> None:
            if path.suffix == ".jsonl" and hasattr(reading, "go_on"):
                self._keep(path, OpenSource(actor=self._actor, reading=cast("GrowingReading", reading), writer=writer))

        with self._lock:
            self._open.pop(path, None)
        return import_source(
            actor=self._actor,
            path=path,
            name=str(path),
            cancelled=self._cancelled,
            until=until,
            keep=keep,
            kind=SessionKind.OBSERVED,
        )

    def _keep(self, path: Path, source: OpenSource) -> None:
        with self._lock:
            self._open[path] = source
            while len(self._open) > 1 and sum(kept.record_count for kept in self._open.values()) > OPEN_RECORDS:
                del self._open[next(iter(self._open))]

    @staticmethod
    def _is_same(known: _Known, status: os.stat_result) -> bool:
        return (known.device, known.inode) == (status.st_dev, status.st_ino) and status.st_size >= known.end
