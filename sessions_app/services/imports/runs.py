"""Runs of imports: what was asked for, how far it is, what came of each source."""

import contextlib
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models.functions import Now

from sessions_app import queue
from sessions_app.events import log
from sessions_app.events.actors import Actor, system_actor
from sessions_app.events.types import EventType
from sessions_app.models import EventResult, ImportRun
from sessions_app.models.import_run import ImportState
from sessions_app.permissions import Action, require
from sessions_app.services.imports import archives, sources
from sessions_app.services.imports.database_place import DatabaseGoneError, DatabasePlace
from sessions_app.services.imports.find import files_of
from sessions_app.services.imports.mapping import MANY_FILES, unmapped
from sessions_app.services.imports.outcomes import ImportFailedError, ImportStoppedError, SourceOutcome, SourceState
from sessions_app.services.imports.sources import LOOKUP
from sessions_app.services.imports.tally import Tally

IMPORTS_STREAM = "imports"
SAVE_INTERVAL = 1.0  # seconds between two writes of a run's progress
TAKEN_UP = "taken_up"
"""Among the counts of a run: its first process was lost."""

FOUND = "found"
"""Among the counts of a run: the files that were found so far in what was given."""

ProgressReport = Callable[[str, int, int, int, int], None]
"""Called with (name of the source, bytes read of it, its size, sources done so far, sources found so far)."""


def _silent(_name: str, _done: int, _total: int, _sources: int, _found: int) -> None:
    return


def import_paths(
    *,
    actor: Actor,
    paths: Iterable[str | Path],
    progress: ProgressReport = _silent,
    may_spawn: bool = False,
    begun: Callable[[ImportRun], None] = lambda _run: None,
) -> ImportRun:
    """Imports files and folders and returns the finished run, whose `files` say what came of each.

    `may_spawn`: many files may be read by child processes, which find the settings in the environment. `begun` is given
    the run before anything is read, so that somebody can cancel it.
    Raises what `permissions.require` raises. A source that fails does not stop the others; a person who interrupts does.
    """
    require(actor, Action.IMPORT)
    given = [Path(path) for path in paths]
    run = ImportRun.objects.create(
        state=ImportState.RUNNING, requested_by=actor.name, name=", ".join(map(str, given))[:300], heartbeat_at=Now()
    )
    _tell(EventType.IMPORT_REQUESTED, actor, run)
    job = _Run(run, actor, progress, may_spawn=may_spawn)
    begun(run)
    try:
        return job.over_paths(given)
    except KeyboardInterrupt:
        job.interrupt()
        raise


def request_upload(*, actor: Actor, upload: BinaryIO, name: str = "") -> ImportRun:
    """Keeps an upload in the data folder and queues its import. `name` defaults to the upload's own."""
    require(actor, Action.IMPORT)
    name = (name or getattr(upload, "name", "") or "upload").rpartition("/")[2][:300]
    folder = Path(settings.DATA_DIR) / "uploads"
    folder.mkdir(parents=True, exist_ok=True)
    staged = folder / uuid.uuid4().hex
    try:
        with staged.open("xb") as target:
            shutil.copyfileobj(upload, target, 1 << 20)
        with transaction.atomic():
            run = ImportRun.objects.create(requested_by=actor.name, name=name, staged_path=str(staged))
            _tell(EventType.IMPORT_REQUESTED, actor, run)
            queue.enqueue(queue.IMPORT_SESSIONS, str(run.pk))
    except BaseException:
        staged.unlink(missing_ok=True)
        raise
    return run


def run_import(run_id: uuid.UUID | str, *, must_end: Callable[[], bool] = lambda: False) -> bool:
    """Imports a queued upload. A task that is delivered twice, or was cancelled before it began, does nothing.

    `must_end` says that this process is about to end. Then the run waits in the queue again, with all that it has
    stored, and the answer is False: it is not done.
    """
    claimed = ImportRun.objects.filter(pk=run_id, state=ImportState.QUEUED).update(state=ImportState.RUNNING, heartbeat_at=Now())
    if not claimed:
        return True
    run = ImportRun.objects.get(pk=run_id)
    actor = system_actor(f"import for {run.requested_by}"[:150])
    is_done = True
    try:
        is_done = _Run(run, actor, _silent, must_end=must_end).over_upload()
    finally:
        if is_done:
            Path(run.staged_path).unlink(missing_ok=True)
    return is_done


def cancel_import(*, actor: Actor, run_id: uuid.UUID | str) -> ImportRun:
    """Asks a run to stop; one that still waits ends at once. Runs that have ended stay as they are."""
    require(actor, Action.IMPORT)
    run = ImportRun.objects.get(pk=run_id)
    with transaction.atomic():
        waiting = ImportRun.objects.filter(pk=run_id, state=ImportState.QUEUED)
        if waiting.update(state=ImportState.CANCELLED, cancel_requested=True, finished_at=datetime.now(UTC)):
            Path(run.staged_path).unlink(missing_ok=True)
        elif not ImportRun.objects.filter(pk=run_id, state=ImportState.RUNNING).update(cancel_requested=True):
            return run
        _tell(EventType.IMPORT_CANCELLED, actor, run)
    run.refresh_from_db()
    return run


class _Run:
    """Keeps a run's row up to date while its sources are imported."""

    def __init__(
        self,
        run: ImportRun,
        actor: Actor,
        progress: ProgressReport,
        *,
        may_spawn: bool = False,
        must_end: Callable[[], bool] = lambda: False,
    ) -> None:
        self.run = run
        self.actor = actor
        self.progress = progress
        self.may_spawn = may_spawn
        self.must_end = must_end
        self.counts: dict[str, int] = {TAKEN_UP: 1} if run.counts.get(TAKEN_UP) else {}
        self.tally = Tally(self.counts)
        self._reading: dict[str, int] = {}
        self._next_save = time.monotonic() + SAVE_INTERVAL
        self._is_cancelled = False
        self._place, self._gone = DatabasePlace(), ""

    def over_paths(self, paths: list[Path]) -> ImportRun:
        for path in paths:
            try:
                self._over_path(path)
            except ImportFailedError as error:
                self._add(SourceOutcome(name=str(path), state=SourceState.FAILED, error=str(error)))
        return self._end()

    def interrupt(self) -> None:
        """Ends the run as cancelled, at once: who asked for it stops the process."""
        self._is_cancelled = True
        self._end()

    def _over_path(self, path: Path) -> None:
        tried = self.tally.tried
        if kind := archives.kind_of(path):
            self._over_archive(archives.Archive(path, str(path), kind, self._asked_to_stop))
            return
        self.progress(str(path), 0, 0, self.tally.sources, self.counts.get(FOUND, 0))
        try:
            found = files_of(path, cancelled=self._asked_to_stop)
        except ImportStoppedError:
            text = "It was cancelled while the folder was looked through. Nothing of it was imported."
            self._add(SourceOutcome(name=str(path), state=SourceState.CANCELLED, error=text))
            return
        self.counts[FOUND] = self.counts.get(FOUND, 0) + found.count
        for file, why in found.unreadable.items():
            self._add(SourceOutcome(name=str(file), state=SourceState.FAILED, error=why))
        for file, why in found.no_files.items():
            self._add(SourceOutcome(name=str(file), state=SourceState.SKIPPED, error=why))
        # Sub-agents come when their sessions are there: two that are written at once could miss each other.
        for group in (found.files[: found.sessions], found.files[found.sessions :]):
            for outcome in self._outcomes(group):
                if outcome.state is SourceState.SKIPPED and not path.is_dir():
                    outcome.state = SourceState.FAILED  # it was asked for by name
                self._add(outcome)
        if self.tally.tried == tried and not self._asked_to_stop():
            raise ImportFailedError(f"No file in {path} or below it is a session that can be read here. Nothing was changed.")

    def _over_archive(self, archive: archives.Archive) -> None:
        """Adds what comes of each member. Raises `ImportFailedError` when the whole can't be taken, or holds no session."""
        tried = self.tally.tried
        try:
            for outcome in archive.outcomes(lambda file, name: self._take(file, name=name, is_staged=True)):
                self._add(outcome)
                if outcome.state is SourceState.CANCELLED:
                    return
        except ImportStoppedError:
            text = "It was cancelled while the archive was looked through. Nothing of it was imported."
            self._add(SourceOutcome(name=archive.label, state=SourceState.CANCELLED, error=text))
        if self.tally.tried == tried:
            raise ImportFailedError(f"No file in {archive.label} is a session that can be read here. Nothing was changed.")

    def _outcomes(self, files: list[Path]) -> Iterator[SourceOutcome]:
        """What comes of each file, one after the other or, in a command and for many of them, several at once."""
        left: dict[str, Path] = {}
        for start in range(0, len(files), LOOKUP):
            if self._asked_to_stop():
                return
            some = files[start : start + LOOKUP]
            with unmapped(unless=len(files) < MANY_FILES):
                unchanged = sources.unchanged_among(some)
            yield from unchanged.values()
            left |= {str(file): file for file in some if file not in unchanged}
        if left and self.may_spawn:
            yield from self._outcomes_of_children(left)
        for file in self._until_cancelled(list(left.values())):
            yield self._take(file, name=str(file), is_staged=False)

    def _outcomes_of_children(self, left: dict[str, Path]) -> Iterator[SourceOutcome]:
        """What comes of files that child processes import, where that pays. Takes out of `left` what needs no second try."""
        from sessions_app.services.imports import parallel  # noqa: PLC0415  as in `_take`

        files = list(left.values())
        if parallel.is_worthwhile(files):
            # What a child could not do, because it was killed or another child was at the same session, is done here.
            with contextlib.suppress(parallel.BrokenProcessPool):
                for outcome in parallel.import_files(actor=self.actor, files=self._until_cancelled(files), run_id=str(self.run.pk)):
                    if not outcome.may_retry:
                        del left[outcome.name]
                        yield outcome

    def _until_cancelled(self, files: list[Path]) -> Iterator[Path]:
        for file in files:
            if self._asked_to_stop():
                return
            yield file

    def over_upload(self) -> bool:
        """False: this process is about to end, and the run waits for another one."""
        staged = Path(self.run.staged_path)
        try:
            if kind := archives.kind_of(staged):
                self._over_archive(archives.Archive(staged, self.run.name, kind, self._asked_to_stop))
            else:
                outcome = self._take(staged, name=self.run.name, is_staged=True)
                if outcome.state is SourceState.SKIPPED:
                    outcome.state = SourceState.FAILED
                self._add(outcome)
        except ImportFailedError as error:
            self._add(SourceOutcome(name=self.run.name, state=SourceState.FAILED, error=str(error)))
        if self.tally.count(SourceState.CANCELLED) and not (self._is_cancelled or self._gone):
            running = ImportRun.objects.filter(pk=self.run.pk, state=ImportState.RUNNING, cancel_requested=False)
            if running.update(state=ImportState.QUEUED, heartbeat_at=None):
                return False
        self._end()
        return True

    def _take(self, file: Path, *, name: str, is_staged: bool) -> SourceOutcome:
        # The readers: an import that finds nothing new starts in less time without them.
        from sessions_app.services import search_index  # noqa: PLC0415
        from sessions_app.services.imports.source import import_source  # noqa: PLC0415

        def advance(done: int, total: int) -> None:
            self.progress(name, done, total, self.tally.sources, self.counts.get(FOUND, 0))
            self._reading = {"reading_bytes": done, "reading_size": total}
            self._save_sometimes()

        try:
            outcome = import_source(
                actor=self.actor, path=file, name=name, is_staged=is_staged, progress=advance, cancelled=self._asked_to_stop
            )
            if outcome.entries:
                search_index.index_sessions([outcome.session_id])
        except Exception as error:  # noqa: BLE001  a broken source must not end the run; what it was is said
            text = f"It could not be read ({type(error).__name__}). Nothing was shown of it; the other sources went on."
            outcome = SourceOutcome(name=name, state=SourceState.FAILED, error=text)
        return outcome

    def _add(self, outcome: SourceOutcome) -> None:
        self.tally.add(outcome)
        self._reading = {}
        self.progress(outcome.name, outcome.bytes, outcome.bytes, self.tally.sources, self.counts.get(FOUND, 0))
        self._save_sometimes()

    def _asked_to_stop(self) -> bool:
        self._save_sometimes()
        return self._is_cancelled or bool(self._gone) or self.must_end()

    def _save_sometimes(self) -> None:
        now = time.monotonic()
        if now < self._next_save:
            return
        self._next_save = now + SAVE_INTERVAL
        self._look_for_database()
        with contextlib.suppress(DatabaseError):  # a full or busy database: what is written next says so
            ImportRun.objects.filter(pk=self.run.pk).update(counts=self.counts | self._reading, heartbeat_at=Now())
            self._is_cancelled = ImportRun.objects.filter(pk=self.run.pk, cancel_requested=True).exists()

    def _look_for_database(self) -> None:
        try:
            self._place.check()
        except DatabaseGoneError as error:
            self._gone = str(error)

    def _end(self) -> ImportRun:
        run, tally = self.run, self.tally
        self._look_for_database()
        if self._gone:
            tally.add(SourceOutcome(name=run.name, state=SourceState.FAILED, error=self._gone))
        failed = tally.count(SourceState.FAILED)
        run.state = ImportState.FAILED if failed else ImportState.COMPLETED
        if (self._is_cancelled or tally.count(SourceState.CANCELLED)) and not self._gone:
            run.state = ImportState.CANCELLED
        run.error = self._gone or (tally.error if failed == tally.tried else "")
        run.files, run.counts, run.finished_at = tally.listed(), self.counts, datetime.now(UTC)
        with contextlib.suppress(DatabaseError), transaction.atomic():  # a full disk: the caller still gets the outcomes
            run.save()
            _tell(EventType.IMPORT_FINISHED, self.actor, run)
        return run


def _tell(event_type: EventType, actor: Actor, run: ImportRun) -> None:
    log.append(
        IMPORTS_STREAM,
        event_type,
        actor=actor,
        result=EventResult.FAILED if run.state == ImportState.FAILED else EventResult.ALLOWED,
        target=("import", str(run.pk)),
        reason=run.error,
        payload={"name": run.name, "state": run.state, "counts": run.counts},
    )
