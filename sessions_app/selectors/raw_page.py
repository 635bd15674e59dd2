"""A session's source as it was: single records, lists of them, and what reading it found."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import zstandard
from django.db.models import QuerySet

from sessions_app.models import Entry, Record, RecordFrame, Session, SourceFile

PAGE_ROWS = 100
FRAMES_AT_ONCE = 8


@dataclass(frozen=True)
class RawRecord:
    """One record, byte-exact. `text` is for showing: what is not UTF-8 is replaced there, and only there."""

    ordinal: int
    line: int
    offset: int
    length: int
    kind: str
    data: bytes
    path: str

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True)
class RecordRow:
    """One record in a list. `entry_index` is `None` for what is no entry."""

    ordinal: int
    line: int
    offset: int
    length: int
    kind: str
    entry_index: int | None


@dataclass(frozen=True)
class RecordPage:
    """A page of records, from `first` on. `next_ordinal` and `previous_ordinal` are `None` at the ends."""

    source: SourceFile | None
    rows: tuple[RecordRow, ...]
    first: int
    previous_ordinal: int | None
    next_ordinal: int | None
    total: int


def record_of(session: Session, index: int) -> RawRecord | None:
    """The record that an entry was made of; `None` for entries of this console and for records that are gone.

    Three rows are read, one of them a frame of about 256 kB, however long the session is.
    """
    entry = Entry.objects.filter(session=session, index=index).values("source_file_id", "record_ordinal").first()
    if entry is None or entry["source_file_id"] is None or entry["record_ordinal"] is None:
        return None
    return record_at(entry["source_file_id"], entry["record_ordinal"])


def record_at(source_file_id: uuid.UUID, ordinal: int) -> RawRecord | None:
    """One record of a source, with its bytes."""
    record = Record.objects.select_related("source_file").filter(source_file_id=source_file_id, ordinal=ordinal).first()
    if record is None:
        return None
    frame = RecordFrame.objects.filter(source_file_id=source_file_id, offset__lte=record.offset).order_by("-offset").first()
    if frame is None or record.offset + record.length > frame.offset + frame.length:
        return None
    data = zstandard.ZstdDecompressor().decompress(bytes(frame.data), max_output_size=frame.length)
    start = record.offset - frame.offset
    return RawRecord(
        ordinal=record.ordinal,
        line=record.line,
        offset=record.offset,
        length=record.length,
        kind=record.kind,
        data=data[start : start + record.length],
        path=record.source_file.path,
    )


def source_of(session: Session) -> SourceFile | None:
    """The newest version of the session's source; of a side chain, its parent's."""
    own = session.source_files.order_by("-version", "-imported_at").first()
    return source_of(session.parent) if own is None and session.parent is not None else own


def source_bytes(source_file: SourceFile) -> Iterator[bytes]:
    """The stored bytes of a source, about 256 kB at a time. Joined they are exactly the file that was imported."""
    decompressor = zstandard.ZstdDecompressor()
    frames = RecordFrame.objects.filter(source_file=source_file).order_by("offset").values_list("offset", "data", "length")
    after = -1
    # Some at a time: a cursor that a slow download keeps open would keep the database from tidying up its log.
    while page := list(frames.filter(offset__gt=after)[:FRAMES_AT_ONCE]):
        for after, data, length in page:  # noqa: B007  the last one is where the next page begins
            yield decompressor.decompress(bytes(data), max_output_size=length)


def records(session: Session, *, first: int = 0, kind: str = "") -> RecordPage:
    """A page of the records of a session's source, also of those that are no entry, optionally of one kind only."""
    source = source_of(session)
    if source is None:
        return RecordPage(None, (), 0, None, None, 0)
    of_source = Record.objects.filter(source_file=source)
    if kind:
        of_source = of_source.filter(kind=kind)
    found = list(of_source.filter(ordinal__gte=max(0, first)).order_by("ordinal")[: PAGE_ROWS + 1])
    shown, rest = found[:PAGE_ROWS], found[PAGE_ROWS:]
    places = _entry_places(session, source, shown)
    rows = tuple(RecordRow(row.ordinal, row.line, row.offset, row.length, row.kind, places.get(row.ordinal)) for row in shown)
    total = source.report.get("by_kind", {}).get(kind, 0) if kind else source.record_count
    return RecordPage(source, rows, first, _previous(of_source, first), rest[0].ordinal if rest else None, total)


def _previous(of_source: QuerySet[Record], first: int) -> int | None:
    before = list(of_source.filter(ordinal__lt=first).order_by("-ordinal").values_list("ordinal", flat=True)[:PAGE_ROWS])
    return before[-1] if before else None


def _entry_places(session: Session, source: SourceFile, shown: list[Record]) -> dict[int, int]:
    """Record ordinal → entry index, for the records of one page. Entries stand in the order of their records."""
    if not shown:
        return {}
    ordinals = {record.ordinal for record in shown}
    entries = Entry.objects.filter(session=session, source_file=source, record_ordinal__range=(min(ordinals), max(ordinals)))
    return {place: index for place, index in entries.values_list("record_ordinal", "index") if place in ordinals}


@dataclass(frozen=True)
class ReportPage:
    """What reading the source found, ready to be shown. Counts are complete; `problems` holds the first few hundred."""

    source: SourceFile
    versions: int
    kinds: tuple[tuple[str, int], ...]  # most frequent first
    problem_counts: tuple[tuple[str, int], ...]
    problems: tuple[dict[str, Any], ...]  # kind, line, offset, detail
    notes: tuple[str, ...]
    records: int
    entries: int
    duplicates: int
    side_chain_entries: int


def parse_report(session: Session) -> ReportPage | None:
    """The parse report of a session's newest source, or `None` when it came from no file."""
    source = source_of(session)
    if source is None:
        return None
    report = source.report
    return ReportPage(
        source=source,
        versions=source.version,
        kinds=_by_count(report.get("by_kind", {})),
        problem_counts=_by_count(report.get("by_problem", {})),
        problems=tuple(report.get("problems", ())),
        notes=tuple(report.get("notes", ())),
        records=report.get("records", source.record_count),
        entries=report.get("entries", 0),
        duplicates=report.get("duplicates", 0),
        side_chain_entries=report.get("side_chain_entries", 0),
    )


def _by_count(counts: dict[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
