"""What is known of a source before it is read: unchanged, grown, rewritten, or never seen."""

import hashlib
import os
import stat
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from django.db import transaction

from sessions_app import prepared
from sessions_app.models import Record, RecordFrame, Session, SourceFile
from sessions_app.selectors.raw_page import source_bytes
from sessions_app.services.imports.find import open_file
from sessions_app.services.imports.outcomes import ImportFailedError, OvertakenError, SourceOutcome, SourceState

TAIL_BYTES = 65_536
_BLOCK = 1 << 20
_LOOKED_AT = ("path", "size", "mtime_ns", "tail_hash", "is_complete", "imported_at", "session_id", "session__title", "session__entry_count")
STILL_S = 2.0
LOOK_S = 0.1
LOOKUP = 500
"""Paths that one query asks for."""

SETTLED_NS = 2_000_000_000
"""A change of a file may carry a time that is older than itself by as much as the coarsest file system rounds."""


def tail_hash(file: BinaryIO, size: int) -> bytes:
    """sha256 of the last `TAIL_BYTES` before `size`; 32 bytes."""
    file.seek(max(0, size - TAIL_BYTES))
    return hashlib.sha256(file.read(min(size, TAIL_BYTES))).digest()


def prefix_hash(file: BinaryIO, size: int) -> bytes:
    """sha256 of the first `size` bytes; 32 bytes."""
    file.seek(0)
    digest = hashlib.sha256()
    while size > 0 and (block := file.read(min(_BLOCK, size))):
        digest.update(block)
        size -= len(block)
    return digest.digest()


def known_source(path: str) -> SourceFile | None:
    """The newest version of what was imported from this path, with its session."""
    if not prepared.exists(SourceFile, path=path):
        return None
    return SourceFile.objects.filter(path=path).select_related("session").order_by("-version", "-imported_at").first()


def is_unchanged(known: SourceFile, file: BinaryIO) -> bool:
    """Whether size, time and tail say that nothing was written since it was stored. Reads 64 kB at most."""
    return known.is_complete and _is_same(file, known.size, known.mtime_ns, bytes(known.tail_hash))


def _is_same(file: BinaryIO, size: int, mtime_ns: int, tail: bytes) -> bool:
    status = os.fstat(file.fileno())
    return (status.st_size, status.st_mtime_ns) == (size, mtime_ns) and tail_hash(file, size) == tail


def unchanged_among(files: Sequence[Path]) -> dict[Path, SourceOutcome]:
    """What there is to say of those files to which nothing was written since they were imported. One query: for `LOOKUP` files at most."""
    by_path = {path_of(file): file for file in files}
    # Rows and not instances: an import of many files that are unchanged does little else.
    stored = SourceFile.objects.filter(path__in=by_path).order_by("version", "imported_at").values_list(*_LOOKED_AT)
    found: dict[Path, SourceOutcome] = {}
    for row in {row[0]: row for row in stored}.values():
        path, size, mtime_ns, tail, is_complete, imported_at, session_id, title, entries = row
        file_path = by_path[path]
        try:
            if not is_complete:
                continue
            if not _is_untouched(file_path, size, mtime_ns, imported_at):
                with open_file(file_path) as file:
                    if not _is_same(file, size, mtime_ns, bytes(tail)):
                        continue
            found[file_path] = _unchanged(str(file_path), size, str(session_id), title, entries)
        except (OSError, ImportFailedError):
            continue  # whoever imports it says why
    return found


def _is_untouched(path: Path, size: int, mtime_ns: int, imported_at: datetime) -> bool:
    """Whether the file system itself says that nobody touched the file since it was imported, so that nothing needs to be read.

    Any program may set the time of the last change of a file's contents, but none that of the last change to its entry: writing,
    replacing and setting times all move it.
    """
    if os.name != "posix":
        return False  # elsewhere `st_ctime` is the time at which the file was made
    status = path.stat()
    is_same = stat.S_ISREG(status.st_mode) and (status.st_size, status.st_mtime_ns) == (size, mtime_ns)
    return is_same and status.st_ctime_ns + SETTLED_NS < int(imported_at.timestamp() * 1e9)


def unchanged_outcome(label: str, known: SourceFile) -> SourceOutcome:
    """What there is to say of a source that holds nothing new."""
    session = known.session
    return _unchanged(label, known.size, str(session.pk), session.title, session.entry_count)


def _unchanged(label: str, size: int, session_id: str, title: str, entries: int) -> SourceOutcome:
    return SourceOutcome(name=label, state=SourceState.UNCHANGED, session_id=session_id, title=title, entries_total=entries, bytes=size)


def compare(file: BinaryIO, size: int, stored: SourceFile | None) -> SourceState:
    """How a file stands to what is stored of its session: new, grown, unchanged (or an earlier state), rewritten.

    Proven by a hash over the whole shared part, never guessed from size or time.
    """
    if stored is None:
        return SourceState.NEW
    if stored.size <= size and prefix_hash(file, stored.size) == bytes(stored.content_hash or hashlib.sha256().digest()):
        return SourceState.UNCHANGED if stored.size == size and stored.is_complete else SourceState.GROWN
    if stored.is_complete and size < stored.size and prefix_hash(file, size) == _stored_prefix_hash(stored, size):
        return SourceState.UNCHANGED
    return SourceState.REWRITTEN


def _stored_prefix_hash(stored: SourceFile, size: int) -> bytes:
    digest = hashlib.sha256()
    for block in source_bytes(stored):
        digest.update(block[:size])
        size -= min(size, len(block))
        if not size:
            break
    return digest.digest()


def is_changed(source: SourceFile | None, session: Session) -> bool:
    """Whether a stored source is another by now than this row says; of none, whether the session has one."""
    if source is None:
        return prepared.exists(SourceFile, session_id=session.pk)
    now = prepared.find(SourceFile, ("size", "record_count"), id=source.pk)
    return now is None or tuple(now) != (source.size, source.record_count)


def when_still(stored: SourceFile, cancelled: Callable[[], bool]) -> SourceFile:
    """The source once nobody fills it any more: it is complete, or did not grow for `STILL_S` seconds, since its import was cut off."""
    until = time.monotonic() + STILL_S
    while not stored.is_complete and time.monotonic() < until and not cancelled():
        time.sleep(LOOK_S)
        before = stored.size, stored.record_count
        now = SourceFile.objects.filter(pk=stored.pk).select_related("session").first()
        if now is None:
            break
        stored = now
        if (stored.size, stored.record_count) != before:
            until = time.monotonic() + STILL_S
    return stored


def open_source_row(session: Session, path: str, state: SourceState, stored: SourceFile | None, reader: tuple[str, int]) -> SourceFile:
    """The row that the import fills: the stored one where the file only grew, else a new version, which is not stored yet."""
    name, version = reader
    if state is SourceState.GROWN and stored is not None:
        return stored
    number = stored.version + 1 if stored is not None else 1
    return SourceFile(session=session, path=path, version=number, reader=name, reader_version=version)


def cut_last_frame(source: SourceFile, file: BinaryIO) -> int:
    """Takes the last frame and its records back, since its last line may have been cut short. Returns where to go on.

    Entries stay: they are recognised when their rows are read again.
    """
    last = RecordFrame.objects.filter(source_file=source).order_by("-offset").first()
    if last is None:
        return 0
    digest = prefix_hash(file, last.offset)
    with transaction.atomic():
        Session.objects.select_for_update(of=("self",), no_key=True).get(pk=source.session_id)
        if is_changed(source, source.session):
            raise OvertakenError
        last.delete()
        Record.objects.filter(source_file=source, offset__gte=last.offset).delete()
        source.record_count = Record.objects.filter(source_file=source).count()
        source.size, source.content_hash, source.is_complete = last.offset, digest, False
        source.save(update_fields=["size", "content_hash", "record_count", "is_complete"])
    return last.offset


def keep_time(source: SourceFile, written_ns: int) -> None:
    """Stores the time at which the source was last written to before it was read, where it has another one by now."""
    if source.mtime_ns != written_ns:
        source.mtime_ns = written_ns
        SourceFile.objects.filter(pk=source.pk).update(mtime_ns=written_ns)


def path_of(path: Path) -> str:
    """A path as sources are stored: absolute, links not followed, without bytes that no text can hold."""
    return os.path.abspath(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace")[-1000:]  # noqa: PTH100
