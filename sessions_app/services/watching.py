"""Following folders of session files: what agents add to them is imported while they write it.

Each file has one import at a time, and growth never waits behind a large file. What goes wrong with one file stops no other.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import structlog
from django.db import DatabaseError, InterfaceError, connection
from django.db.models import Q

from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import ImportRun, ImportState, Session, SessionKind, SessionRelation
from sessions_app.permissions import Action, require
from sessions_app.services.imports import cancel_import, import_paths
from sessions_app.services.imports.database_place import DatabaseGoneError, DatabasePlace
from sessions_app.services.imports.outcomes import SourceOutcome, SourceState, database_trouble
from sessions_app.services.imports.runs import IMPORTS_STREAM
from sessions_app.services.imports.sources import LOOKUP, path_of
from sessions_app.services.watched_files import WatchedFiles
from sessions_app.services.watched_folders import FolderObserver, Turns, is_polled, session_files

logger = structlog.get_logger(__name__)

RESCAN_S = 30.0
"""A notice of the file system may get lost: so often every file's size and time are looked at."""

RESCAN_SHARE = 50
"""So many times as long as a look took, in seconds of the processor, the next one waits at least."""

SETTLED_S = 2.0
"""After so long the file system is sure to tell of changes; what was written until then is looked for."""

TROUBLE_S = 5.0
"""What the database could not take is tried again after so long."""

WORKERS = ("small", "large")
STOP_S = 10.0


@dataclass(frozen=True)
class WatchStatus:
    """Where a watch stands. `news` is what came of one file just now; `problem` a sentence about one."""

    files: int = 0
    entries: int = 0
    failures: int = 0
    is_first_pass: bool = True
    news: SourceOutcome | None = None
    problem: str = ""


def check_folders(folders: Sequence[str | Path]) -> list[Path]:
    """The folders as absolute paths. Raises `ValueError`, in a sentence, when one of them can't be followed."""
    found = [Path(folder).expanduser().absolute() for folder in folders]
    for folder in found:
        if not folder.is_dir():
            raise ValueError(f"There is no folder {folder}. Nothing was started; give folders that exist.")
    return list(dict.fromkeys(found))


class Watch:
    """Follows folders until it is told to stop. Raises what `permissions.require` raises when it is made."""

    def __init__(self, *, actor: Actor, folders: Sequence[Path], tell: Callable[[WatchStatus], None], polls: bool = False) -> None:
        require(actor, Action.IMPORT)
        self._actor, self._folders, self._tell = actor, tuple(folders), tell
        self._polled = {folder: polls or is_polled(folder) for folder in self._folders}
        self._stop = threading.Event()
        self._turns = Turns()
        self._files = WatchedFiles(actor=actor, cancelled=self._stop.is_set)
        self._status = WatchStatus()
        self._telling = threading.Lock()
        self._first_run: ImportRun | None = None
        self._place = DatabasePlace()
        self._gone: DatabaseGoneError | None = None
        self._trouble = ""  # of the database, as it was told last

    @property
    def polled(self) -> list[Path]:
        """The folders that tell of no changes and are looked through instead."""
        return [folder for folder, is_so in self._polled.items() if is_so]

    def stop(self) -> None:
        """Asks it to end; `run` returns within seconds. From any thread."""
        self._stop.set()

    def run(self) -> None:
        """Takes in what is there, then what comes, until `stop`. Raises `DatabaseGoneError` when that can't be stored any more."""
        self._log(EventType.WATCH_STARTED)
        seen = session_files(self._folders)
        self._note(files=len(seen))
        observers = [
            FolderObserver([folder for folder in self._folders if self._polled[folder] is polls], self._changed, self._stop, polls=polls)
            for polls in set(self._polled.values())
        ]
        threads = [threading.Thread(target=self._work, args=(size,), name=f"watch-{size}", daemon=True) for size in WORKERS]
        threads.append(threading.Thread(target=self._first_pass, name="watch-first", daemon=True))
        for thread in (*observers, *threads):
            thread.start()
        try:
            rest_s = SETTLED_S
            while not self._stop.wait(rest_s):
                started = time.thread_time()
                seen = self._rescan(seen)
                rest_s = max(RESCAN_S, RESCAN_SHARE * (time.thread_time() - started))
        finally:
            self._stop.set()
            self._turns.close()
            if self._gone is None:
                self._cancel_first_pass()
            for thread in (*threads, *observers):
                thread.join(STOP_S)
            if self._gone is None:
                self._log(EventType.WATCH_STOPPED)
            connection.close()
        if self._gone is not None:
            raise self._gone

    def _first_pass(self) -> None:
        try:
            run = import_paths(actor=self._actor, paths=self._folders, may_spawn=True, begun=self._begun)
            names = list(session_files(self._folders))
            for start in range(0, len(names), LOOKUP):
                observe(Q(source_files__path__in=[path_of(Path(name)) for name in names[start : start + LOOKUP]]))
            problems = [f"{file['name']}: {file['error']}" for file in run.files if file["state"] == SourceState.FAILED.value]
            for problem in problems:
                if not any(problem.startswith(f"{folder}: ") for folder in self._folders):  # an empty folder may fill yet
                    self._note(problem=problem, failures=1)
            self._note(entries=run.counts.get("entries", 0), is_first_pass=False)
        except Exception as error:  # whatever it is, what comes from now on is still taken
            logger.warning("watch_first_pass_failed", error=type(error).__name__, exc_info=not isinstance(error, DatabaseError))
            self._note(is_first_pass=False, problem=f"What was there could not all be taken in ({error}). New lines are still followed.")
        finally:
            connection.close()

    def _begun(self, run: ImportRun) -> None:
        self._first_run = run

    def _cancel_first_pass(self) -> None:
        if self._first_run is not None and ImportRun.objects.filter(pk=self._first_run.pk, state=ImportState.RUNNING).exists():
            cancel_import(actor=self._actor, run_id=self._first_run.pk)

    def _changed(self, paths: Sequence[Path]) -> None:
        for path in paths:
            self._turns.add(path, is_large=self._files.is_large(path))

    def _rescan(self, seen: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
        """Takes what no notice told of."""
        self._look_for_database()
        now = session_files(self._folders)
        self._changed([Path(name) for name, state in now.items() if seen.get(name) != state])
        self._files.forget(map(Path, seen.keys() - now.keys()))
        self._note(files=len(now))
        return now

    def _work(self, size: str) -> None:
        try:
            while (path := self._turns.take(may_be_large=size == "large")) is not None:
                self._bring_up(path)
        finally:
            connection.close()

    def _bring_up(self, path: Path) -> None:
        again_s = None
        try:
            self._look_for_database()
            outcome, again_s = self._files.bring_up(path)
            if outcome is not None and outcome.trouble:
                again_s = self._wait(outcome.trouble)
            elif outcome is not None:
                self._trouble = ""
                self._take(outcome)
        except (DatabaseError, InterfaceError) as error:
            again_s = self._wait(database_trouble(error))
            connection.close()
        except Exception as error:  # a broken file: the others go on, and it comes again when it changes
            logger.warning("watched_file_failed", error=type(error).__name__, exc_info=not isinstance(error, OSError))
            self._note(problem=f"{path}: it could not be read ({type(error).__name__}). The other files are followed on.", failures=1)
            connection.close()
        finally:
            self._turns.done(path, again_s)

    def _wait(self, trouble: str) -> float:
        """Says once what is the matter with the database, and answers when to try again."""
        if trouble != self._trouble:
            self._trouble = trouble
            self._note(problem=f"{trouble} What is new is not taken in yet, and tried again every {TROUBLE_S:.0f} seconds.")
        return TROUBLE_S

    def _look_for_database(self) -> None:
        try:
            self._place.check()
        except DatabaseGoneError as error:
            self._gone = error
            self._stop.set()

    def _take(self, outcome: SourceOutcome) -> None:
        if outcome.state is SourceState.FAILED and not outcome.may_retry:
            self._note(problem=f"{outcome.name}: {outcome.error}", failures=1)
        elif outcome.state in {SourceState.NEW, SourceState.GROWN, SourceState.REWRITTEN}:
            if not self._files.is_observed(outcome.session_id):
                observe(Q(pk=outcome.session_id) | Q(parent_id=outcome.session_id, relation=SessionRelation.SUB_AGENT))
            files = self._status.files + (outcome.state is SourceState.NEW)
            self._note(news=outcome, entries=outcome.entries, files=files)

    def _note(
        self,
        *,
        files: int | None = None,
        entries: int = 0,
        failures: int = 0,
        news: SourceOutcome | None = None,
        problem: str = "",
        is_first_pass: bool | None = None,
    ) -> None:
        with self._telling:
            old = self._status
            self._status = replace(
                old,
                files=old.files if files is None else files,
                entries=old.entries + entries,
                failures=old.failures + failures,
                is_first_pass=old.is_first_pass if is_first_pass is None else is_first_pass,
            )
            self._tell(replace(self._status, news=news, problem=problem))

    def _log(self, event_type: EventType) -> None:
        status = self._status
        payload: dict[str, object] = {"folders": [str(folder) for folder in self._folders]}
        if event_type is EventType.WATCH_STOPPED:
            payload |= {"files": status.files, "entries": status.entries, "failures": status.failures}
        target = ("folder", str(self._folders[0])[-64:])
        log.append(IMPORTS_STREAM, event_type, actor=self._actor, target=target, payload=payload)


def observe(which: Q) -> int:
    """Says of imported sessions that their files are followed. Returns how many became so."""
    found = list(Session.objects.filter(which, kind=SessionKind.IMPORTED).values_list("pk", flat=True).distinct())
    count = 0
    for start in range(0, len(found), 500):
        count += Session.objects.filter(pk__in=found[start : start + 500]).update(kind=SessionKind.OBSERVED)
    return count
