"""Sources as they were, byte for byte."""

from collections.abc import Iterator

import zstandard

from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import RecordFrame, Session, SourceFile
from sessions_app.permissions import Action, require

FRAMES_AT_ONCE = 8


def source_bytes(source_file: SourceFile) -> Iterator[bytes]:
    """The stored bytes of a source, about 256 kB at a time. Joined they are exactly the file that was imported."""
    decompressor = zstandard.ZstdDecompressor()
    frames = RecordFrame.objects.filter(source_file=source_file).order_by("offset").values_list("offset", "data", "length")
    after = -1
    # Some at a time: a cursor that a slow download keeps open would keep the database from tidying up its log.
    while page := list(frames.filter(offset__gt=after)[:FRAMES_AT_ONCE]):
        for after, data, length in page:  # noqa: B007  the last one is where the next page begins
            yield decompressor.decompress(bytes(data), max_output_size=length)


def newest_source(session: Session) -> SourceFile | None:
    """The latest version of the file that a session was read from. A side chain's is its parent's."""
    own = session.source_files.order_by("-version", "-imported_at").first()
    if own is None and session.parent is not None:
        return newest_source(session.parent)
    return own


def export_session(*, actor: Actor, session: Session) -> tuple[SourceFile, Iterator[bytes]] | None:
    """The newest source and its bytes; writes down who took it. `None` when the session came from no file."""
    require(actor, Action.EXPORT, target=("session", str(session.pk)))
    source = newest_source(session)
    if source is None:
        return None
    log.append(
        log.access_stream(),
        EventType.SESSION_EXPORTED,
        actor=actor,
        target=("session", str(session.pk)),
        payload={"source_file": str(source.pk), "bytes": source.size},
    )
    return source, source_bytes(source)
