"""Writes what a reader yields, in transactions so short that nobody else waits for them."""

import time
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

import zstandard
from django.db import transaction

from sessions_app import prepared
from sessions_app.engine.entries import Part
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import Blob, Entry, Record, RecordFrame, Session, SourceFile
from sessions_app.readers.base import ParsedEntry, SourceReading
from sessions_app.readers.base import Record as ParsedRecord
from sessions_app.services.imports.bulk import BulkInsert, id_value
from sessions_app.services.imports.frames import Framer
from sessions_app.services.imports.lanes import ENTRY_FIELDS, Lane
from sessions_app.services.imports.outcomes import OvertakenError
from sessions_app.services.imports.sources import is_changed
from sessions_app.services.write_turns import write_turn

BATCH_BYTES = 1_000_000
BATCH_ROWS = 1_000
EVENT_INTERVAL = 0.25  # seconds between two `entries.appended` of one session
MAX_KIND = 80
_RECORDS = BulkInsert(Record, ("source_file", "ordinal", "line", "offset", "length", "kind"))
_FRAMES = BulkInsert(RecordFrame, ("source_file", "offset", "length", "data"))
_BLOBS = BulkInsert(Blob, ("sha256", "media_type", "size", "width", "height", "compressed", "data"), ignore_existing=True)
_ENTRIES = BulkInsert(Entry, ENTRY_FIELDS)


class SourceWriter:
    """Turns the records of one source into rows. One transaction per batch, about 20 ms of writing each.

    `open_lane` gives the lane of a child key ("" is the session itself). `follows`: the version of the source that a new one comes after.
    """

    def __init__(
        self,
        *,
        actor: Actor,
        source: SourceFile,
        reading: SourceReading,
        open_lane: Callable[[str], Lane],
        framer: Framer,
        follows: SourceFile | None = None,
    ) -> None:
        self.source = source
        self._follows = follows
        self.lanes: dict[str, Lane] = {}
        self.bytes_seen = 0
        self._actor = actor
        self._reading = reading
        self._open_lane = open_lane
        self._framer = framer
        self._source_key = id_value(source.pk, SourceFile)
        self._ordinal = 0
        self._stored_records = source.record_count
        self._records: list[tuple[object, ...]] = []
        self._frames: list[tuple[object, ...]] = []
        self._blobs: dict[str, tuple[object, ...]] = {}
        self._entries: list[tuple[object, ...]] = []
        self._followed: list[Lane] = []
        self._is_held = False
        self._batch_bytes = 0
        self._next_event = 0.0
        self._compressor = zstandard.ZstdCompressor(level=3)

    def add(self, record: ParsedRecord) -> bool:
        """Takes one record. True when a batch was written."""
        self._framer.add(record.raw, record.offset)
        self.bytes_seen += record.length
        if self._ordinal >= self._stored_records:
            self._records.append((self._source_key, self._ordinal, record.line, record.offset, record.length, record.kind[:MAX_KIND]))
        if record.entry is not None:
            self._add_entry(record.entry)
        self._ordinal += 1
        self._batch_bytes += record.length
        if self._framer.is_full:
            self._close_frame()
        if self._batch_bytes >= BATCH_BYTES or len(self._records) >= BATCH_ROWS:
            self.flush()
            return True
        return False

    def lane(self, child_key: str) -> Lane:
        """The lane of a side chain, opened when it is first asked for."""
        lane = self.lanes.get(child_key)
        if lane is None:
            lane = self.lanes[child_key] = self._open_lane(child_key)
        return lane

    def _add_entry(self, entry: ParsedEntry) -> None:
        written = self.lane(entry.child_key).take(entry, self._source_key, self._ordinal)
        if not written:
            self._reading.mark_written()  # it is stored: what the reader corrects from now on has to be corrected there
            return
        for digest, (media_type, data) in entry.blobs.items():
            if digest not in self._blobs:
                self._blobs[digest] = self._blob(digest, media_type, data, entry.parts)
                self._batch_bytes += len(data)

    def _blob(self, digest: str, media_type: str, data: bytes, parts: tuple[Part, ...]) -> tuple[object, ...]:
        shown = next((part for part in parts if part.blob == digest), None)
        is_text = media_type.startswith("text/")
        stored = self._compressor.compress(data) if is_text else data
        width, height = (shown.width, shown.height) if shown else (0, 0)
        return (digest, media_type, len(data), width, height, is_text, stored)

    def _close_frame(self) -> None:
        frame = self._framer.close()
        if frame is not None:
            self._frames.append((self._source_key, *frame))

    @property
    def has_written(self) -> bool:
        """Whether something of the source is stored: before, or by this import."""
        return not self.source._state.adding

    def flush(self, *, is_last: bool = False, off_branch: Mapping[str, Collection[int]] = MappingProxyType({})) -> None:
        """Writes everything taken so far in one transaction. `off_branch`: per child key, indexes that are known to stand there."""
        self.hold(off_branch)
        self.store(is_last=is_last)

    def hold(self, off_branch: Mapping[str, Collection[int]] = MappingProxyType({})) -> None:
        """Makes rows of everything taken so far, which wait for `store`."""
        self._batch_bytes = 0
        if self._ordinal < self._stored_records:
            return  # still among what is stored
        self._close_frame()
        self.lane("")
        self._entries += [row for key, lane in self.lanes.items() for row in lane.take_rows(off_branch.get(key, ()))]
        self._followed = [lane for lane in self.lanes.values() if lane.session.is_complete]
        self._is_held = True

    def store(self, *, is_last: bool = False, savepoint: bool = True) -> None:
        """Writes what is held, in one transaction. `savepoint`: whether the caller's, if it has one, survives a failure."""
        if not self._is_held:
            return
        with write_turn(), transaction.atomic(savepoint=savepoint):
            self.hold_still()
            for lane in self.lanes.values():
                self._save_counters(lane)
            prepared.save(self.source, size=self.bytes_seen, record_count=self._ordinal, content_hash=self._framer.hash.digest())
            # Before what hangs on it: of a key that comes later, SQLite would look through all rows that might have waited for it.
            self._insert_new()
            # In one order everywhere: two imports that share blobs would wait for each other crosswise.
            _BLOBS.insert([self._blobs[digest] for digest in sorted(self._blobs)])
            _FRAMES.insert(self._frames)
            _RECORDS.insert(self._records)
            _ENTRIES.insert(self._entries)
            self._announce(is_last=is_last)
        self._records, self._frames, self._blobs, self._entries, self._is_held = [], [], {}, [], False
        self._reading.mark_written()

    def hold_still(self) -> None:
        """Locks what the import goes on from until the caller's transaction ends. Raises `OvertakenError` where it is another by now.

        Two that import files of one session at the same time would both add what neither saw.
        """
        main = self.lane("").session
        if main._state.adding:
            return  # its key is unique: of two that make it, one is refused
        grown = {lane.session.pk: lane.session for lane in self.lanes.values() if lane.next_index != lane.session.entry_count}
        stored = {main.pk: main} | {pk: session for pk, session in grown.items() if not session._state.adding}
        rows = Session.objects.select_for_update(of=("self",), no_key=True).filter(pk__in=stored).order_by("pk")
        now = {pk: (count, bytes(head)) for pk, count, head in rows.values_list("pk", "entry_count", "head_hash")}
        if any(now.get(pk) != (session.entry_count, bytes(session.head_hash)) for pk, session in stored.items() if pk in grown):
            raise OvertakenError
        if is_changed(self._follows if self.source._state.adding else self.source, main):
            raise OvertakenError

    def _insert_new(self) -> None:
        """Inserts new sessions and the source, with all that is known of them by now."""
        # The session itself comes first: its side chains and the source hang on it.
        for instance in (self.lane("").session, *(lane.session for lane in self.lanes.values()), self.source):
            if instance._state.adding:
                prepared.insert(instance)

    def _save_counters(self, lane: Lane) -> None:
        if lane.next_index != lane.session.entry_count:
            prepared.save(
                lane.session, entry_count=lane.next_index, tokens_total=lane.tokens, head_hash=lane.head_hash, failure_count=lane.failures
            )

    def _announce(self, *, is_last: bool) -> None:
        """Tells followers what was appended, at most once per `EVENT_INTERVAL`, and always at the end.

        Nobody can follow a session that is imported for the first time: `session.imported` tells of it as a whole.
        """
        now = time.monotonic()
        if now < self._next_event and not is_last:
            return
        self._next_event = now + EVENT_INTERVAL
        for lane in self._followed:
            if lane.announced < lane.next_index:
                log.append(
                    log.session_stream(lane.session.pk),
                    EventType.ENTRIES_APPENDED,
                    actor=self._actor,
                    target=("session", str(lane.session.pk)),
                    payload={"first": lane.announced, "last": lane.next_index - 1, "count": lane.next_index - lane.announced},
                )
                lane.announced = lane.next_index
