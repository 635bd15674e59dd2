"""Continuations of Codex's rollouts: the folded rows, a `compacted` row that replaces them, and the rows behind it."""

import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from secrets import randbits

import msgspec

from sessions_app.engine.terms import Kind, Role
from sessions_app.writers.base import CannotContinue, Continuation, Place, Row
from sessions_app.writers.json_rows import Fields, fields_of, line_of, raw_of, text_at, value_of

AGENT = "codex"
_ID_FIELDS = ("id", "session_id", "thread_id")
_TURN_STARTS = frozenset({"event_msg/task_started", "event_msg/turn_started"})
_BOUNDARIES = frozenset(
    {
        "compacted", "response_item/compaction", "response_item/compaction_summary", "response_item/context_compaction",
        "event_msg/context_compacted",
    },
)  # fmt: skip
_COUNTS = frozenset({"event_msg/token_count", "token_usage_record"})
_SURROUNDINGS = frozenset({Kind.REMINDER, Kind.ATTACHMENT})


class CodexWriter:
    """Writes `$CODEX_HOME/sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`."""

    agent = AGENT

    def new_session_id(self) -> str:
        """A UUID of version 7, as the agent makes them."""
        value = (time.time_ns() // 1_000_000) << 80 | randbits(80)
        value &= ~(0xF << 76) & ~(0x3 << 62)
        return str(uuid.UUID(int=value | 0x7 << 76 | 0x2 << 62))

    def source_id_of(self, raw: bytes) -> str:
        fields = fields_of(raw)
        payload = fields_of(fields.get("payload") or b"") if fields else None
        return text_at(payload, "id") if payload else ""

    def place_of(self, session_id: str, *, working_directory: str, at: datetime) -> Place:  # noqa: ARG002  places of others have a folder
        return Place(
            home="~/.codex",
            home_variable="CODEX_HOME",
            folder=f"sessions/{at:%Y/%m/%d}",
            name=f"rollout-{at:%Y-%m-%dT%H-%M-%S}-{session_id}.jsonl",
            resume=f"codex resume {session_id}",
            needs_directory=False,
        )

    def write(self, rows: Callable[[], Iterable[Row]], wanted: Continuation) -> "CodexWriting":
        return CodexWriting(rows, wanted)


class _Survey(msgspec.Struct):
    """What the first pass over the rows finds."""

    split: int | None = None  # number of the first row behind the boundary
    thread_id: str = ""
    items: dict[int, msgspec.Raw] = msgspec.field(default_factory=dict)  # entry → its item, of what stands beside the block
    surroundings: list[msgspec.Raw] = msgspec.field(default_factory=list)  # the agent's own instructions at the beginning
    writes_surroundings: bool = False  # the agent puts them in again whenever they are not there
    count: Fields | None = None  # the newest count of tokens
    rows: int = 0


class CodexWriting:
    """One pass. Rows keep their bytes; only ids of the session and the numbers of rows are rewritten."""

    def __init__(self, rows: Callable[[], Iterable[Row]], wanted: Continuation) -> None:
        self._rows = rows
        self._wanted = wanted
        self._ordinal: int | None = None  # of the newest row, in files that number them
        self._unreadable = self._dropped = 0
        self._writes_surroundings = self._has_old_counts = False

    def __iter__(self) -> Iterator[bytes]:
        found = self._survey()
        missing = [index for index in self._wanted.carried if index not in found.items]
        if missing:
            raise CannotContinue(f"Entry {missing[0]} is to stand behind the block, but the source has no row of it.")
        if not found.thread_id:
            raise CannotContinue("The source names no session of its own in its first rows, so no new one can be made of it.")
        for number, row in enumerate(self._rows()):
            if number == found.split:
                yield from self._added(found)
            line = self._line(row, found, is_kept=found.split is not None and number >= found.split)
            if line is not None:
                yield line
        if found.split is None:
            yield from self._added(found)

    def notes(self) -> list[str]:
        """What could not be carried over, a sentence each."""
        notes = []
        if self._unreadable:
            verb = "record can't be read and was" if self._unreadable == 1 else "records can't be read and were"
            notes.append(f"{self._unreadable:,} {verb} left out.")
        if self._dropped:
            verb = "row of the agent's own compactions was" if self._dropped == 1 else "rows of the agent's own compactions were"
            notes.append(f"{self._dropped:,} {verb} left out behind this boundary: the agent would begin there.")
        if self._has_old_counts:
            notes.append(
                "Token counts behind the boundary were left out: they were measured before this compaction, "
                "and by them the agent would compact again at once."
            )
        if self._writes_surroundings:
            notes.append("The agent writes its instructions and surroundings anew, behind what is kept.")
        return notes

    def _survey(self) -> _Survey:
        found, carried = _Survey(), frozenset(self._wanted.carried)
        turn: int | None = None  # the start of the turn that goes on, as long as nothing of it stands before the boundary
        for number, row in enumerate(self._rows()):
            found.rows += 1
            if row.word in _TURN_STARTS:
                turn = number
            elif row.word == "world_state":
                found.writes_surroundings = self._writes_surroundings = True
            elif row.word == "session_meta" and not found.thread_id:
                found.thread_id = self._thread_of(row)
            elif row.word == "event_msg/token_count":
                found.count = self._counted(row) or found.count
            if row.index is None:
                continue
            if row.index >= self._wanted.boundary:
                found.split = (number if turn is None else turn) if found.split is None else found.split
            else:
                turn = None
                self._note_item(row, found, is_carried=row.index in carried)
        return found

    def _note_item(self, row: Row, found: _Survey, *, is_carried: bool) -> None:
        if row.index is None or not row.word.startswith("response_item/"):
            return
        is_leading = any(first <= row.index <= last for first, last in self._wanted.leading)
        is_around = not row.off_branch and (row.role is Role.SYSTEM or row.kind in _SURROUNDINGS)
        if is_carried or is_leading or is_around:
            fields = fields_of(row.raw)
            if fields is not None and "payload" in fields:
                found.items[row.index] = fields["payload"]
                if is_around and not is_carried:
                    found.surroundings.append(fields["payload"])

    @staticmethod
    def _thread_of(row: Row) -> str:
        fields = fields_of(row.raw)
        payload = value_of(fields, "payload") if fields else None
        thread_id = payload.get("id") if isinstance(payload, dict) else None
        return thread_id if isinstance(thread_id, str) else ""

    @staticmethod
    def _counted(row: Row) -> Fields | None:
        fields = fields_of(row.raw)
        payload = value_of(fields, "payload") if fields else None
        info = payload.get("info") if isinstance(payload, dict) else None
        return fields if isinstance(info, dict) and isinstance(info.get("last_token_usage"), dict) else None

    def _added(self, found: _Survey) -> Iterator[bytes]:
        """The boundary, and behind it, as the agent does it, how large the context is now."""
        yield self._numbered(self._boundary(found))
        if found.count is not None:
            yield self._numbered(self._count(found.count))

    def _boundary(self, found: _Survey) -> Fields:
        wanted = self._wanted
        around = [] if found.writes_surroundings else found.surroundings
        block = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": wanted.block}]}
        history = [*around, raw_of(block), *(found.items[index] for index in wanted.carried)]
        return {
            "timestamp": raw_of(wanted.written_at),
            "type": raw_of("compacted"),
            "payload": raw_of({"message": wanted.block, "replacement_history": history}),
        }

    def _count(self, newest: Fields) -> Fields:
        """The newest count of tokens, of a context as small as it is now."""
        payload = value_of(newest, "payload")
        usage = payload["info"]["last_token_usage"]
        payload["info"]["last_token_usage"] = {name: 0 if isinstance(value, int) else value for name, value in usage.items()} | {
            "total_tokens": self._wanted.tokens_after
        }
        return newest | {"timestamp": raw_of(self._wanted.written_at), "payload": raw_of(payload)}

    def _line(self, row: Row, found: _Survey, *, is_kept: bool) -> bytes | None:
        fields = fields_of(row.raw)
        if fields is None:
            self._unreadable += bool(row.raw.strip(b" \t\r\n\0"))
            return None
        if is_kept and row.word in _COUNTS:
            self._has_old_counts = True
            return None
        payload = fields_of(fields.get("payload") or b"")
        if payload is not None:
            if is_kept and _is_boundary(row, fields, payload):
                self._dropped += 1
                return None
            if row.word == "session_meta" and "forked_from_id" not in payload:
                payload["forked_from_id"] = raw_of(found.thread_id)
                fields["payload"] = raw_of(payload)
            renamed = {name: raw_of(self._wanted.session_id) for name in _ID_FIELDS if value_of(payload, name) == found.thread_id}
            if renamed:
                fields["payload"] = raw_of(payload | renamed)
        return self._numbered(fields, was_numbered="ordinal" in fields)

    def _numbered(self, fields: Fields, *, was_numbered: bool | None = None) -> bytes:
        """The row with the next number, in files that have them."""
        if was_numbered or (was_numbered is None and self._ordinal is not None):
            self._ordinal = 0 if self._ordinal is None else self._ordinal + 1
            fields["ordinal"] = raw_of(self._ordinal)
        return line_of(fields)


def _is_boundary(row: Row, fields: Fields, payload: Fields) -> bool:
    """Whether a row is one of a compaction of the agent's own, or what it got when it asked for a summary."""
    if row.word in _BOUNDARIES:
        return True
    if row.word == "event_msg/item_completed":
        item = value_of(payload, "item")
        return isinstance(item, dict) and item.get("type") == "ContextCompaction"
    metadata = value_of(fields, "metadata") if row.word == "response_item/message" else None
    return isinstance(metadata, dict) and metadata.get("compaction_output") is True
