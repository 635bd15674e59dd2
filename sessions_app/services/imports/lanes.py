"""One session while it is being filled: its counters, and which entries of the source it already holds."""

import hashlib
from array import array
from collections.abc import Collection

import msgspec

from sessions_app.engine.counting import ESTIMATOR_VERSION, estimate_parts
from sessions_app.engine.entries import Usage, chain_prefix_hash
from sessions_app.engine.shapes import EntryShape
from sessions_app.engine.terms import Kind, PartKind, Role
from sessions_app.models import Session, SourceFile
from sessions_app.readers.base import ParsedEntry
from sessions_app.services.imports.bulk import id_value, json_value
from sessions_app.services.signal_columns import Known

ENTRY_FIELDS = (
    "session", "index", "source_id", "parent_source_id", "message_key", "role", "kind", "parts", "annex", "call_id",
    "more_call_ids", "tokens", "prefix_tokens", "prefix_hash", "usage", "model", "timestamp", "off_branch", "meta",
    "synthetic_time", "is_error", "source_file", "record_ordinal", "estimator_version",
)  # fmt: skip
_OFF_BRANCH = ENTRY_FIELDS.index("off_branch")
_USAGE = ENTRY_FIELDS.index("usage")
_ENCODER = msgspec.json.Encoder()


class Lane:
    """The writer's end of one session. `placed` maps the reader's ordinals to indexes of the session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.placed = array("L")
        self.rows: list[tuple[object, ...]] = []
        self.next_index = session.entry_count
        self.tokens = session.tokens_total
        self.head_hash = bytes(session.head_hash)
        self.failures = session.failure_count
        self.added = 0
        self.announced = session.entry_count  # entries below this index have been told to followers
        self.was_empty = not session.entry_count
        self.settled_from = 0  # entries from this index on were written with their place in the tree known
        self.known = Known() if session._state.adding else None
        self.first_time = self.last_time = self.model = ""
        self.late_usage: dict[int, Usage] = {}  # index → what a stored entry was counted for after it had been stored
        self._measured_to = -1  # the last stored entry with usage
        self._key = id_value(session.pk, Session)
        self._skip = 0  # so many entries of the source are stored already
        self._known: dict[str, int] = {}  # source id → index of entries that came from elsewhere
        self._known_places: dict[int | None, int] = {}  # the same for entries without an id, by record

    def resume(self, source: SourceFile) -> None:
        """Takes what the session holds of this source already; rows that it has from elsewhere are known by their ids."""
        stored = self.session.entries.filter(record_ordinal__isnull=False)
        measured = self.session.entries.filter(usage__isnull=False).order_by("-index").values_list("index", flat=True)
        self._measured_to = next(iter(measured[:1]), -1)
        if source.version == 1 and not stored.exclude(source_file=source).exists():
            self.placed = array("L", stored.order_by("index").values_list("index", flat=True).iterator(chunk_size=10_000))
            self._skip = len(self.placed)
            return
        self._known = dict(stored.exclude(source_id="").values_list("source_id", "index").iterator(chunk_size=10_000))
        self._known_places = dict(stored.filter(source_file=source, source_id="").values_list("record_ordinal", "index"))

    def take(self, parsed: ParsedEntry, source_file: object, record_ordinal: int) -> int:
        """Makes a row of an entry unless the session holds it. Returns the characters that it takes."""
        self._note(parsed)
        if self._skip:
            self._skip -= 1
            self._note_late(parsed, self.placed[len(self.placed) - self._skip - 1])
            return 0
        known = self._known.get(parsed.source_id) if parsed.source_id else self._known_places.get(record_ordinal)
        if known is not None:
            self.placed.append(known)
            self._note_late(parsed, known)
            return 0
        self.placed.append(self.next_index)
        return self._append(parsed, source_file, record_ordinal)

    def _note_late(self, parsed: ParsedEntry, index: int) -> None:
        """The count of a call may be written after the answer: an entry that was stored without it gets it now."""
        if parsed.usage is not None and index > self._measured_to:
            self.late_usage[index] = parsed.usage

    def _note(self, parsed: ParsedEntry) -> None:
        if at := parsed.own_time:
            self.first_time = self.first_time or at
            self.last_time = max(self.last_time, at)
        self.model = parsed.model or self.model

    def _append(self, parsed: ParsedEntry, source_file: object, record_ordinal: int) -> int:
        parts = _ENCODER.encode(parsed.parts)
        self.head_hash = chain_prefix_hash(self.head_hash, entry_digest(parsed, parts))
        tokens = estimate_parts(parsed.parts, parsed.blobs)
        call_ids = _call_ids(parsed)
        call_id, *more = call_ids or [""]
        is_error = any(part.is_error for part in parsed.parts)
        text = parts.decode()
        self.rows.append(
            (
                self._key, self.next_index, parsed.source_id, parsed.parent_source_id, parsed.message_key, parsed.role.value,
                parsed.kind.value, text, json_value(parsed.annex) if parsed.annex else "{}", call_id,
                json_value(more) if more else "[]", tokens, self.tokens, self.head_hash,
                parsed, parsed.model[:100], parsed.timestamp, False, parsed.meta,
                parsed.synthetic_time, is_error, source_file, record_ordinal, ESTIMATOR_VERSION,
            ),
        )  # fmt: skip
        if self.known is not None and not self.known.add(_shape(parsed, self.next_index, tokens, call_ids)):
            self.known = None
        self.next_index += 1
        self.added += 1
        self.failures += is_error
        if parsed.role is not Role.NOTICE:
            self.tokens += tokens
        return len(text)

    def take_rows(self, off_branch: Collection[int] = ()) -> list[tuple[object, ...]]:
        """The rows to insert, with the usage that each entry carries by now, and leaves none."""
        self.settled_from = self.next_index - len(self.rows)
        rows = []
        for index, row in enumerate(self.rows, self.settled_from):
            parsed = row[_USAGE]
            assert isinstance(parsed, ParsedEntry)
            usage = None if parsed.usage is None else json_value(parsed.usage)
            if usage and self.known is not None:
                self.known.measure(index, parsed.usage, parsed.timestamp)
            rows.append((*row[:_USAGE], usage, *row[_USAGE + 1 : _OFF_BRANCH], index in off_branch, *row[_OFF_BRANCH + 1 :]))
        self.rows = []
        return rows


def entry_digest(parsed: ParsedEntry, parts: bytes) -> bytes:
    """The same as `engine.entries.Entry.digest`, from parts that are encoded already."""
    head = _ENCODER.encode((parsed.role, parsed.kind, parsed.source_id))
    return hashlib.sha256(head[:-1] + b"," + parts + b"]").digest()


def _shape(parsed: ParsedEntry, index: int, tokens: int, call_ids: list[str]) -> EntryShape:
    return EntryShape(
        index=index,
        role=parsed.role,
        kind=parsed.kind,
        tokens=tokens,
        source_id=parsed.source_id,
        message_key=parsed.message_key,
        call_ids=tuple(call_ids),
        meta=parsed.meta,
    )


def _call_ids(parsed: ParsedEntry) -> list[str]:
    wanted = PartKind.CALL if parsed.kind is Kind.CALL else PartKind.RESULT
    if parsed.kind not in {Kind.CALL, Kind.RESULT}:
        return []
    return list(dict.fromkeys(part.call_id[:200] for part in parsed.parts if part.kind is wanted and part.call_id))
