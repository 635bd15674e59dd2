"""Continuations of Claude Code's sessions: the folded rows, a boundary, the block as its summary, and the rows behind it."""

import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

import msgspec

from sessions_app.writers.base import CannotContinue, Continuation, Place, Row
from sessions_app.writers.json_rows import Fields, fields_of, line_of, raw_of, text_at, value_of

AGENT = "claude-code"
_CHAIN = re.compile(r"(?:user|assistant|system|progress|attachment)\b")
_NOT_IN_FOLDERS = re.compile(r"[^a-zA-Z0-9]")
_BOUNDARIES = frozenset({"system/compact_boundary", "system/microcompact_boundary"})
_REPEATED = ("userType", "entrypoint", "cwd", "version", "gitBranch", "slug")
_NO_USAGE = {"input_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 0}


class ClaudeCodeWriter:
    """Writes `~/.claude/projects/<folder>/<session>.jsonl`."""

    agent = AGENT

    def new_session_id(self) -> str:
        return str(uuid.uuid4())

    def source_id_of(self, raw: bytes) -> str:
        fields = fields_of(raw)
        return text_at(fields, "uuid") if fields else ""

    def place_of(self, session_id: str, *, working_directory: str, at: datetime) -> Place:  # noqa: ARG002  places of others have a date
        """The agent names the folder of a project by its path; of very long ones it cuts the name and adds a hash of its own."""
        return Place(
            home="~/.claude",
            home_variable="CLAUDE_CONFIG_DIR",
            folder=f"projects/{_NOT_IN_FOLDERS.sub('-', working_directory)}",
            name=f"{session_id}.jsonl",
            resume=f"claude --resume {session_id}",
            needs_directory=True,
        )

    def write(self, rows: Callable[[], Iterable[Row]], wanted: Continuation) -> "ClaudeCodeWriting":
        return ClaudeCodeWriting(rows, wanted)


class _Survey(msgspec.Struct):
    """What the first pass over the rows finds."""

    split: int | None = None  # number of the first row behind the boundary
    kept: set[str] = msgspec.field(default_factory=set)  # ids of the chain's rows behind it
    carried: dict[int, Row] = msgspec.field(default_factory=dict)
    last_folded: str = ""
    repeated: Fields = msgspec.field(default_factory=dict)


class ClaudeCodeWriting:
    """One pass. Rows keep their ids and bytes; the id of the session, links over the boundary and old counts are rewritten."""

    def __init__(self, rows: Callable[[], Iterable[Row]], wanted: Continuation) -> None:
        self._rows = rows
        self._wanted = wanted
        self._session_id = raw_of(wanted.session_id)
        self._boundary_id = _row_id(wanted, "boundary")
        self._summary_id = _row_id(wanted, "summary")
        self._last = self._summary_id  # the newest row of the chain behind the boundary
        self._unreadable = self._dropped = 0
        self._has_old_counts = False

    def __iter__(self) -> Iterator[bytes]:
        found = self._survey()
        missing = [index for index in self._wanted.carried if index not in found.carried]
        if missing:
            raise CannotContinue(f"Entry {missing[0]} is to stand behind the block, but the source has no row of it.")
        for number, row in enumerate(self._rows()):
            if number == found.split:
                yield from self._boundary(found)
            line = self._line(row, found, is_kept=found.split is not None and number >= found.split)
            if line is not None:
                yield line
        if found.split is None:
            yield from self._boundary(found)

    def notes(self) -> list[str]:
        """What could not be carried over, a sentence each."""
        notes = []
        if self._unreadable:
            notes.append(f"{_counted(self._unreadable, 'record')} of the source can't be read and {_verb(self._unreadable)} left out.")
        if self._dropped:
            notes.append(
                f"{_counted(self._dropped, 'boundary', 'boundaries')} of the agent's own, behind this one, {_verb(self._dropped)} left "
                "out: the agent would begin there."
            )
        if self._has_old_counts:
            notes.append(
                "The token counts of the kept answers were set to zero: they were measured before this compaction, "
                "and by them the agent would compact again at once."
            )
        notes.append("Saved states of files (for /rewind) and transcripts of sub-agents stay with the original session.")
        return notes

    def _survey(self) -> _Survey:
        found, carried = _Survey(), frozenset(self._wanted.carried)
        folded: set[str] = set()
        for number, row in enumerate(self._rows()):
            if not _CHAIN.match(row.word):
                continue
            fields = fields_of(row.raw)
            if fields is None:
                continue
            row_id = text_at(fields, "uuid")
            if found.split is None and row.index is not None and row.index >= self._wanted.boundary:
                found.split = number
            if row.index is not None and row.index in carried:
                found.carried[row.index] = row
            if found.split is None:
                folded.add(row_id)
                found.last_folded = row_id if row.index is not None and not row.off_branch else found.last_folded
            elif row_id not in folded and row.word not in _BOUNDARIES:
                found.kept.add(row_id)
            if "version" in fields and value_of(fields, "isSidechain") is not True:
                found.repeated = {name: fields[name] for name in _REPEATED if name in fields}
        return found

    def _boundary(self, found: _Survey) -> Iterator[bytes]:
        wanted = self._wanted
        metadata = {
            "trigger": "manual",
            "preTokens": wanted.tokens_before,
            "postTokens": wanted.tokens_after,
        }
        yield self._new_row(
            found,
            parentUuid=None,
            logicalParentUuid=found.last_folded or None,
            isSidechain=False,
            type="system",
            subtype="compact_boundary",
            content="Conversation compacted",
            isMeta=False,
            level="info",
            compactMetadata=metadata,
            uuid=self._boundary_id,
        )
        yield self._new_row(
            found,
            parentUuid=self._boundary_id,
            isSidechain=False,
            type="user",
            message={"role": "user", "content": wanted.block},
            isVisibleInTranscriptOnly=True,
            isCompactSummary=True,
            uuid=self._summary_id,
        )
        yield from self._repeated(found)

    def _repeated(self, found: _Survey) -> Iterator[bytes]:
        """What is carried, once more behind the block.

        The agent can keep rows of before a boundary by naming their ids, but in large files it does not look for them.
        """
        ids: dict[object, msgspec.Raw] = {}
        for index in self._wanted.carried:
            row = found.carried[index]
            fields = fields_of(row.raw) or {}
            row_id = _row_id(self._wanted, f"entry {index}")
            ids[text_at(fields, "uuid")] = raw_of(row_id)
            fields |= {"uuid": raw_of(row_id), "parentUuid": raw_of(self._last), "sessionId": self._session_id}
            if caller := ids.get(text_at(fields, "sourceToolAssistantUUID")):
                fields["sourceToolAssistantUUID"] = caller
            self._forget_count(row, fields)
            self._last = row_id
            yield line_of(fields)

    def _new_row(self, found: _Survey, **values: object) -> bytes:
        fields = {name: raw_of(value) for name, value in values.items()}
        return line_of(fields | {"timestamp": raw_of(self._wanted.written_at)} | found.repeated | {"sessionId": self._session_id})

    def _line(self, row: Row, found: _Survey, *, is_kept: bool) -> bytes | None:
        fields = fields_of(row.raw)
        if fields is None:
            self._unreadable += bool(row.raw.strip(b" \t\r\n\0"))
            return None
        if "sessionId" in fields:
            fields["sessionId"] = self._session_id
        if is_kept and _CHAIN.match(row.word) and value_of(fields, "isSidechain") is not True:
            if row.word in _BOUNDARIES:
                self._dropped += 1
                return None
            self._link(row, fields, found)
        return line_of(fields)

    def _link(self, row: Row, fields: Fields, found: _Survey) -> None:
        """Hangs a row that would lead past the boundary on the newest one behind it, and takes its old count away."""
        row_id = text_at(fields, "uuid")
        if row.off_branch or row_id not in found.kept:
            return  # it leads where it led: away from what is kept
        if text_at(fields, "parentUuid") not in found.kept:
            fields["parentUuid"] = raw_of(self._last)
        if row.index is not None:
            self._last = row_id
        self._forget_count(row, fields)

    def _forget_count(self, row: Row, fields: Fields) -> None:
        if row.word == "assistant" and (message := fields_of(fields.get("message") or b"")) is not None:
            usage = value_of(message, "usage")
            if isinstance(usage, dict) and any(usage.get(name) for name in _NO_USAGE):
                message["usage"] = raw_of(usage | _NO_USAGE)
                fields["message"] = raw_of(message)
                self._has_old_counts = True


def _row_id(wanted: Continuation, name: str) -> str:
    """Ids of the rows that are added: the same whenever the same continuation is written."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{wanted.session_id} {name}"))


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _verb(number: int) -> str:
    return "was" if number == 1 else "were"
