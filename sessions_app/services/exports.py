"""What leaves the console: a source as it was, a continuation for its agent, and the entries as text or JSON."""

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import IO, Self

from sessions_app.engine.terms import Lineage
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import Session, SourceFile
from sessions_app.permissions import Action, require
from sessions_app.selectors import plans
from sessions_app.selectors.continuation import offer_of, source_rows
from sessions_app.selectors.raw_page import source_bytes, source_of
from sessions_app.writers import transcript
from sessions_app.writers.base import CannotContinue, Place, Writing, continuation_of
from sessions_app.writers.registry import writer_for

MEMORY_BYTES = 8_000_000
"""A continuation up to this size is held in memory until it is sent; a larger one in a temporary file."""

CHUNK_BYTES = 1 << 18


class ExportKind(StrEnum):
    """What a session can leave the console as."""

    ORIGINAL = "original"
    CONTINUATION = "continuation"
    JSONL = "jsonl"
    MARKDOWN = "markdown"


@dataclass(frozen=True)
class ContinuationFile:
    """A new session of an agent's own, written out. Read `chunks` once; they are `size` bytes.

    As a context it is closed also where they are not read.
    """

    session_id: str  # the new one, as its agent knows it
    generation: int
    size: int
    sha256: str
    place: Place
    working_directory: str
    notes: tuple[str, ...]  # what could not be carried over
    file: IO[bytes]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def chunks(self) -> Iterator[bytes]:
        with closing(self.file):
            while chunk := self.file.read(CHUNK_BYTES):
                yield chunk


def export_original(*, actor: Actor, session: Session) -> tuple[SourceFile, Iterator[bytes]] | None:
    """The newest source and its bytes; writes down who took it. `None` when the session came from no file."""
    require(actor, Action.EXPORT, target=("session", str(session.pk)))
    source = source_of(session)
    if source is None:
        return None
    _note(actor, session, ExportKind.ORIGINAL, source_file=str(source.pk), bytes=source.size)
    return source, source_bytes(source)


def export_continuation(*, actor: Actor, session: Session, at: datetime | None = None) -> ContinuationFile:
    """A new session file in the agent's own format, whose boundary is that of the checkpoint in force.

    The agent resumes it and sends the block, what is carried, and everything from the boundary on. Nothing of the
    original is changed. `at` (now, in the zone that names the agent's folders) is when it is written. Raises
    `CannotContinue`, with a sentence for people, where there is none to be had.
    """
    require(actor, Action.EXPORT, target=("session", str(session.pk)))
    offer, source, writer = offer_of(session), source_of(session), writer_for(session.agent)
    if not offer.is_possible or source is None or writer is None or offer.generation is None:
        raise CannotContinue(offer.reason or "This session can't be continued.")
    checkpoint = plans.load_chain(session, Lineage.CONSOLE)[-1]
    at = at or datetime.now().astimezone()
    session_id = writer.new_session_id()
    wanted = continuation_of(
        checkpoint,
        session_id=session_id,
        written_at=f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z",
        tokens_before=offer.tokens_before or 0,
        tokens_after=plans.view_tokens(session, checkpoint),
    )
    count = source.record_count
    writing = writer.write(lambda: source_rows(session, source, writer, records=count), wanted)
    file, size, sha256 = _spooled(writing)
    _note(
        actor, session, ExportKind.CONTINUATION,
        generation=offer.generation, continued_as=session_id, bytes=size, sha256=sha256,
    )  # fmt: skip
    return ContinuationFile(
        session_id=session_id,
        generation=offer.generation,
        size=size,
        sha256=sha256,
        place=writer.place_of(session_id, working_directory=session.working_directory, at=at),
        working_directory=session.working_directory,
        notes=tuple(writing.notes()),
        file=file,
    )


def export_entries(*, actor: Actor, session: Session, kind: ExportKind) -> Iterator[bytes]:
    """The canonical entries, all in order, as JSON Lines or as Markdown to read; a few at a time."""
    require(actor, Action.EXPORT, target=("session", str(session.pk)))
    _note(actor, session, kind)
    entries = plans.load_entries(session.pk, whole=True, for_people=True)
    return transcript.as_markdown(session.title, entries) if kind is ExportKind.MARKDOWN else transcript.as_json_lines(entries)


def name_of(session: Session, kind: ExportKind) -> str:
    """A name for a file of the entries."""
    return f"session-{session.pk.hex[-8:]}.{'md' if kind is ExportKind.MARKDOWN else 'jsonl'}"


def _note(actor: Actor, session: Session, kind: ExportKind, **facts: object) -> None:
    log.append(
        log.access_stream(),
        EventType.SESSION_EXPORTED,
        actor=actor,
        target=("session", str(session.pk)),
        payload={"kind": kind.value, **facts},
    )


def _spooled(lines: Writing) -> tuple[IO[bytes], int, str]:
    """All lines in a file that is gone when it is closed, their size, and their sha256."""
    file = tempfile.SpooledTemporaryFile(max_size=MEMORY_BYTES)  # noqa: SIM115  who sends it closes it
    digest, size = hashlib.sha256(), 0
    try:
        for line in lines:
            file.write(line)
            digest.update(line)
            size += len(line)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return file, size, digest.hexdigest()
