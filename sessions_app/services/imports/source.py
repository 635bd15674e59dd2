"""One source from its bytes to a complete session."""

import os
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from django.db import DatabaseError, IntegrityError, InterfaceError, OperationalError

from sessions_app.events.actors import Actor
from sessions_app.models import Session, SessionKind, SourceFile
from sessions_app.readers.base import Reader, SourceReading
from sessions_app.readers.detect import HEAD_BYTES, MAX_FIRST_LINE, known_formats, reader_for
from sessions_app.readers.others import looks_like
from sessions_app.services.imports import identity, sources
from sessions_app.services.imports.find import open_file
from sessions_app.services.imports.finish import finish, is_whole
from sessions_app.services.imports.frames import Framer
from sessions_app.services.imports.lanes import Lane
from sessions_app.services.imports.mapping import LARGE_BYTES, unmapped
from sessions_app.services.imports.outcomes import (
    ImportFailedError,
    ImportStoppedError,
    NoSessionError,
    OvertakenError,
    SourceOutcome,
    SourceState,
    database_sentence,
    database_trouble,
    grown_note,
)
from sessions_app.services.imports.repeating import may_repeat
from sessions_app.services.imports.whole_lines import UpTo
from sessions_app.services.imports.writer import SourceWriter

TRIES = 6
PAUSE_S = 0.2
NEVER_NS = 0
"""The time of a file of which nobody knows when what was read of it was written."""

Progress = Callable[[int, int], None]
"""Called with (bytes read, bytes in all) after every batch."""


def _nothing(_done: int, _total: int) -> None:
    return


def import_source(
    *,
    actor: Actor,
    path: Path,
    name: str = "",
    is_staged: bool = False,
    progress: Progress = _nothing,
    cancelled: Callable[[], bool],
    until: int | None = None,
    keep: Callable[[SourceReading, SourceWriter], None] = lambda _reading, _writer: None,
    kind: SessionKind = SessionKind.IMPORTED,
) -> SourceOutcome:
    """Imports one file, or brings its session up to date. Errors come back as a failed outcome, in a sentence;
    a file that is no session comes back as skipped.

    What stands in the file now is taken, though it grows on meanwhile. `until`: only the bytes before it are.
    `name` is what people gave; of an upload (`is_staged`) the path itself says nothing.
    `keep` is given what read and wrote a source that was taken in, so that it can go on when the file grows.
    `kind`: what a session is that is new.
    """
    label = name or str(path)
    try:
        with open_file(path) as opened:
            job = SourceImport(actor, opened, path, label, is_staged=is_staged, progress=progress, cancelled=cancelled, until=until)
            job.keep, job.kind = keep, kind
            with unmapped(unless=job.size < LARGE_BYTES):
                return _run(job)
    except NoSessionError as error:
        return SourceOutcome(name=label, state=SourceState.SKIPPED, error=str(error))
    except ImportFailedError as error:
        return SourceOutcome(name=label, state=SourceState.FAILED, error=str(error))
    except ImportStoppedError:
        note = "It was cancelled. What was read so far is kept, hidden, and the next import of this file goes on from there."
        return SourceOutcome(name=label, state=SourceState.CANCELLED, error=note)
    except (IntegrityError, OvertakenError):
        text = "Another import of the same session is under way. Nothing of this one was kept; repeat it when the other is done."
        return SourceOutcome(name=label, state=SourceState.FAILED, error=text, may_retry=True)
    except (DatabaseError, InterfaceError) as error:
        return SourceOutcome(name=label, state=SourceState.FAILED, error=database_sentence(error), trouble=database_trouble(error))
    except OSError as error:
        text = f"The file can't be read ({error.strerror or error}). Nothing was changed; check that it exists and may be read."
        return SourceOutcome(name=label, state=SourceState.FAILED, error=text)


def _run(job: "SourceImport") -> SourceOutcome:
    """Runs it, anew from what is there then where somebody else wrote to the session: a compaction its divider, or another import."""
    for number in range(1, TRIES):
        try:
            return job.run()
        except (IntegrityError, OvertakenError):
            time.sleep(random.uniform(0, PAUSE_S) * number)  # noqa: S311  two that wait must not wait alike
        except (OperationalError, InterfaceError) as error:
            if not may_repeat(error):
                raise
    return job.run()


class SourceImport:
    """The steps of one import, with what they share."""

    def __init__(
        self,
        actor: Actor,
        file: BinaryIO,
        path: Path,
        label: str,
        *,
        is_staged: bool,
        progress: Progress,
        cancelled: Callable[[], bool],
        until: int | None = None,
    ) -> None:
        status = os.fstat(file.fileno())
        self.size = status.st_size if until is None else until
        self.written_ns, self._touched_ns = status.st_mtime_ns, status.st_ctime_ns
        self._tells_of_growth = until is None
        self.actor = actor
        self.file = cast("BinaryIO", UpTo(file, self.size))
        self.path = f"upload:{label}"[:1000] if is_staged else sources.path_of(path)
        self.file_path = path
        self.reader_path = label if is_staged else str(path)
        self.label = label
        self.is_staged = is_staged
        self.progress = progress
        self.cancelled = cancelled
        self.keep: Callable[[SourceReading, SourceWriter], None] = lambda _reading, _writer: None
        self.kind = SessionKind.IMPORTED
        self._finish: Callable[[], SourceOutcome] | None = None
        self._is_new = False

    def run(self) -> SourceOutcome:
        """Reads the file and stores what is new of it."""
        return self.read() or self.store()

    def read(self) -> SourceOutcome | None:
        """Reads the file to its end. `None`: `store` is to be called; what does not fit into one transaction is stored by then."""
        known = None if self.is_staged else sources.known_source(self.path)
        if known is not None and sources.is_unchanged(known, self.file):
            return sources.unchanged_outcome(self.label, known)
        reader = self._reader()
        self.file.seek(0)
        reading = reader.read(self.file, path=self.reader_path, cancelled=self.cancelled)
        session, stored, state = self._place(reader, reading, known)
        if state is SourceState.UNCHANGED and stored is not None:
            return sources.unchanged_outcome(self.label, stored)
        self._fill(reader, reading, session, state, stored)
        return None

    def store(self) -> SourceOutcome:
        """Stores what was read, and completes the session."""
        assert self._finish is not None
        return self._finish()

    @property
    def is_new(self) -> bool:
        """Whether nothing of what was read is stored."""
        return self._is_new

    def _place(self, reader: Reader, reading: SourceReading, known: SourceFile | None) -> tuple[Session, SourceFile | None, SourceState]:
        """Where the file belongs: to the session of its path if it goes on where that one ended, else to the one it names."""
        if known is not None:
            known = sources.when_still(known, self.cancelled)
            state = sources.compare(self.file, self.size, known)
            if state is not SourceState.REWRITTEN:
                return known.session, known, state
        who = reading.identity()
        key = identity.session_key(reader.name, who)
        session = identity.find(key)
        if session is None:
            parent = identity.parent_of(reader.name, who)
            made = identity.make(key, agent=reader.name, title=Path(self.reader_path).stem, kind=self.kind, parent=parent)
            return made, None, SourceState.NEW
        stored = session.source_files.select_related("session").order_by("-version", "-imported_at").first()
        if stored is not None:
            stored = sources.when_still(stored, self.cancelled)
            session = stored.session
        return session, stored, sources.compare(self.file, self.size, stored)

    def _reader(self) -> Reader:
        self.file.seek(0)
        head = self.file.read(HEAD_BYTES)
        if not head.strip():
            raise NoSessionError("The file is empty. Nothing was changed.")
        if b"\n" not in head:
            head += self.file.readline(MAX_FIRST_LINE - len(head))  # what tells the format may stand at the end of a long first line
        reader = reader_for(head)
        if reader is None:
            told = looks_like(head)
            what = "This is no session file that can be read here" + (f": it looks like {told}" if told else "")
            raise NoSessionError(f"{what} (known: {known_formats()}). Nothing was changed.")
        return reader

    def _fill(self, reader: Reader, reading: SourceReading, session: Session, state: SourceState, stored: SourceFile | None) -> None:
        source = sources.open_source_row(session, self.path, state, stored, (reader.name, reader.version))
        start = sources.cut_last_frame(source, self.file) if state is SourceState.GROWN else 0
        source.path = self.path
        lanes = _LaneOpener(session, source, agent=reader.name, kind=self.kind)
        self.file.seek(0)
        writer = SourceWriter(actor=self.actor, source=source, reading=reading, open_lane=lanes, framer=Framer(start=start), follows=stored)
        writer.lane("")
        for record in reading:
            if writer.add(record):
                self.progress(writer.bytes_seen, self.size)
        if self.cancelled():
            writer.flush(is_last=True)
            raise ImportStoppedError
        if writer.bytes_seen < self.size:
            raise ImportFailedError("The file became shorter while it was read. What was read is kept, hidden; repeat the import.")
        notes = _notes(state, source)
        if state is SourceState.GROWN and not session.is_complete:
            state = SourceState.NEW  # it goes on where an import of it was cut off
        self._is_new = is_whole(writer, reading)
        self._finish = partial(self._complete, state, writer, reading, notes)

    def _complete(self, state: SourceState, writer: SourceWriter, reading: SourceReading, notes: list[str]) -> SourceOutcome:
        notes = notes + self._grown()
        finish(actor=self.actor, writer=writer, reading=reading, file=self.file, notes=notes)
        # Written to meanwhile: what was read may be neither the old nor the new. The next import compares it all then.
        is_untouched = os.fstat(self.file.fileno()).st_ctime_ns == self._touched_ns
        sources.keep_time(writer.source, self.written_ns if is_untouched else NEVER_NS)
        self.keep(reading, writer)
        return self._outcome(state, writer, reading, notes)

    def _grown(self) -> list[str]:
        """What there is to say where somebody goes on writing to the file."""
        left = os.fstat(self.file.fileno()).st_size - self.size
        return [grown_note(left)] if self._tells_of_growth and left > 0 else []

    def _outcome(self, state: SourceState, writer: SourceWriter, reading: SourceReading, notes: list[str]) -> SourceOutcome:
        main = writer.lane("").session
        report = reading.report()
        return SourceOutcome(
            name=self.label,
            state=state,
            session_id=str(main.pk),
            title=reading.facts().title or main.title,
            entries=sum(lane.added for lane in writer.lanes.values()),
            entries_total=writer.lane("").next_index,
            bytes=report.bytes_read,
            problems=sum(report.by_problem.values()),
            checkpoints=report.checkpoints,
            children=len(reading.child_sessions()),
            duplicates=report.duplicates,
            notes=notes,
        )


class _LaneOpener:
    """Opens the lane of the session itself, or of one of its side chains."""

    def __init__(self, session: Session, source: SourceFile, *, agent: str, kind: SessionKind) -> None:
        self.session = session
        self.source = source
        self.agent = agent
        self.kind = kind
        self.known: dict[str, Session] | None = None  # looked up when the first side chain begins

    def __call__(self, child_key: str) -> Lane:
        session = self._side_chain(child_key) if child_key else self.session
        lane = Lane(session)
        if session.entry_count:
            lane.resume(self.source)
        return lane

    def _side_chain(self, child_key: str) -> Session:
        if self.known is None:
            self.known = identity.side_chains_of(self.session)
        key = identity.child_key_of(self.session, child_key)
        return self.known.get(key) or identity.make(key, agent=self.agent, title="Side chain", kind=self.kind, parent=self.session)


def _notes(state: SourceState, source: SourceFile) -> list[str]:
    if state is not SourceState.REWRITTEN:
        return []
    return [
        f"The file no longer begins as it did: this is version {source.version} of it. "
        "Entries that were stored stay as they are; rows that are new were added at the end."
    ]
