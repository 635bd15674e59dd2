"""Chat messages of our own making, and what the readers of them find."""

import io
import json
from pathlib import Path

from sessions_app.engine.entries import Entry
from sessions_app.engine.messages import ViewMessage
from sessions_app.engine.view import build
from sessions_app.readers.base import ParsedEntry, Record
from sessions_app.readers.chat_reading import ChatReading
from sessions_app.readers.detect import reader_for

DATA = Path(__file__).resolve().parents[1] / "data"
DAMAGE = [b"", b"{", b"]", b'"', b"\\", b"null", b"[[1]]", b"\x00", b"\xff", b'{"role":7}', b'{"type":[]}', b"\n"]
"""What may be written over a part of a file."""


def read(data: bytes | str | object, name: str = "chat.json") -> tuple[ChatReading, list[Record]]:
    """A finished reading of these bytes (or of this value as JSON) by the reader that claims them, and its records."""
    raw = data if isinstance(data, bytes) else (data if isinstance(data, str) else json.dumps(data)).encode()
    reader = reader_for(raw[: 1 << 18])
    assert reader is not None, "no reader claims it"
    reading = reader.read(io.BytesIO(raw), path=name)
    assert isinstance(reading, ChatReading)
    records = list(reading)
    assert b"".join(record.raw for record in records) == raw
    return reading, records


def sample(name: str) -> tuple[ChatReading, list[Record]]:
    return read((DATA / name).read_bytes(), name)


def entries(records: list[Record], lane: str = "") -> list[ParsedEntry]:
    return [record.entry for record in records if record.entry is not None and record.entry.child_key == lane]


def said(entry: ParsedEntry) -> list[tuple[str, str]]:
    """(kind, text) of each part."""
    return [(part.kind.value, part.text) for part in entry.parts]


def problems(reading: ChatReading) -> dict[str, int]:
    return {str(kind): count for kind, count in reading.report().by_problem.items()}


def view(found: list[ParsedEntry]) -> tuple[ViewMessage, ...]:
    """What a model would get of these entries."""
    return build(
        [
            Entry(
                index=index, role=entry.role, kind=entry.kind, parts=entry.parts, source_id=entry.source_id, message_key=entry.message_key
            )
            for index, entry in enumerate(found)
        ],
        None,
    )
