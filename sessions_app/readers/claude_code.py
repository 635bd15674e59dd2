"""The reader of Claude Code's session files (JSON Lines): one pass, row by row, in the order of the file."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

from sessions_app.engine.terms import Kind, PartKind, Role
from sessions_app.readers.base import (
    AgentCheckpoint,
    ChildSession,
    ParsedEntry,
    ParseReport,
    Problem,
    ProblemKind,
    Record,
    SessionFacts,
    SourceIdentity,
    UsageCorrection,
)
from sessions_app.readers.claude_code_checkpoints import CheckpointCollector
from sessions_app.readers.claude_code_facts import AGENT, FactCollector
from sessions_app.readers.claude_code_identity import identify, is_claude_code
from sessions_app.readers.claude_code_lanes import Lanes
from sessions_app.readers.claude_code_origin import OriginCollector
from sessions_app.readers.claude_code_parts import PartBuilder, text_of
from sessions_app.readers.claude_code_rows import CHAIN_TYPES, entry_of, first_text, is_known, kind_of
from sessions_app.readers.claude_code_tree import Node, Tree
from sessions_app.readers.lines import Piece, iter_pieces
from sessions_app.readers.report import Place, Reporter, lost_kind
from sessions_app.readers.usage_once import UsageOnce

READER_VERSION = 1


class ClaudeCodeReader:
    """Reads `~/.claude/projects/…/<session>.jsonl` and sub-agents' `agent-<id>.jsonl`."""

    name = AGENT
    version = READER_VERSION

    def sniff(self, head: bytes) -> bool:
        """Whether the first bytes of a source look like one of these files. Never raises."""
        return is_claude_code(head)

    def read(self, source: BinaryIO, *, path: str = "", cancelled: Callable[[], bool] = lambda: False) -> "ClaudeCodeReading":
        """Starts one pass over a seekable source. `path` is its name, from which ids are taken where it tells one."""
        return ClaudeCodeReading(source, path, cancelled)


class ClaudeCodeReading:
    """One pass over one file. Iterate it to the end, then ask for the rest."""

    def __init__(self, source: BinaryIO, path: str, cancelled: Callable[[], bool]) -> None:
        self._source = source
        self._cancelled = cancelled
        self._identity = identify(source, path)
        self._tree = Tree()
        self._lanes = Lanes(self._identity)
        self._checkpoints = CheckpointCollector()
        self._facts = FactCollector()
        self._origin = OriginCollector(self._identity)
        self._reporter = Reporter(AGENT, READER_VERSION)
        self._tool_names: dict[str, str] = {}
        self._open_calls: dict[str, tuple[int, int]] = {}
        self._usage = UsageOnce()
        self._nameless: dict[str, tuple[tuple[int, int, int] | None, str]] = {}  # lane → (prompt, message) of its last row
        self._off_branch: dict[str, list[int]] = {}
        self._plans: list[AgentCheckpoint] = []
        self._is_done = False

    def __iter__(self) -> Iterator[Record]:
        line, offset = self._reporter.next_place
        for piece in iter_pieces(self._source, line=line, offset=offset, cancelled=self._cancelled):
            yield self._record(piece)

    def go_on(self, source: BinaryIO) -> None:
        """The next iteration yields what `source` holds: whole lines that were added behind those that were read."""
        self._source, self._is_done = source, False
        self._reporter.go_on()
        self._usage.go_on()

    def identity(self) -> SourceIdentity:
        """Which session this is; known before the first record."""
        return self._identity

    def mark_written(self) -> None:
        """Everything yielded so far is stored: later corrections of it are told by `usage_corrections`."""
        self._usage.mark_written()

    def usage_corrections(self) -> Iterable[UsageCorrection]:
        """Stored entries whose usage a later row of the same message replaces."""
        return self._usage.corrections()

    def _record(self, piece: Piece) -> Record:
        row, place = piece.value, Place(piece)
        entry = None
        if row is None:
            kind = lost_kind(piece)
        else:
            kind = kind_of(row)
            if not is_known(row):
                place.note(ProblemKind.UNKNOWN_TYPE, kind)
            entry = self._take(row, kind, place)
        return self._reporter.record(piece, kind, entry, place.problems)

    def _take(self, row: dict[str, Any], kind: str, place: Place) -> ParsedEntry | None:
        """The entry of a row; adds the row to tree, lanes and facts on the way."""
        uuid = text_of(row.get("uuid"))
        if uuid and uuid in self._tree:
            place.note(ProblemKind.DUPLICATE)
            return None
        session = text_of(row.get("sessionId"))
        if session and session != self._identity.session_id:
            place.note(ProblemKind.FOREIGN_SESSION, session[:80])
        self._facts.note(row, kind)
        said = row.get("type")
        if not isinstance(said, str) or said not in CHAIN_TYPES:
            return None
        self._origin.note(row, session)
        builder = PartBuilder(self._tool_names)
        entry = entry_of(row, builder)
        if entry is None and said in {"user", "assistant"}:
            place.note(ProblemKind.BAD_SHAPE, "no message content")
        for name in builder.unknown_blocks:
            place.note(ProblemKind.UNKNOWN_TYPE, f"block {name}")
        lane = self._lanes.lane_of(row, uuid, self._tree)
        ordinal = None
        if entry is not None:
            entry.blobs = builder.blobs
            ordinal = self._finish(entry, row, lane, place)
        self._add_to_tree(row, uuid, lane, entry, ordinal, place)
        return entry

    def _finish(self, entry: ParsedEntry, row: dict[str, Any], lane: str, place: Place) -> int:
        """Fills what the entry needs to know of its file; returns its ordinal within its lane."""
        entry.source_id = text_of(row.get("uuid"))[:200]
        entry.parent_source_id = text_of(row.get("parentUuid") or row.get("logicalParentUuid"))[:200]
        entry.child_key = lane
        self._set_message(entry)
        self._reporter.set_time(entry, text_of(row.get("timestamp")), place)
        ordinal = self._lanes.next_ordinal(lane, entry)
        self._origin.note_entry(entry)
        if entry.usage is not None:
            self._usage.bill(entry, ordinal, f"{entry.message_key}\n{text_of(row.get('requestId'))}")
        if entry.kind is Kind.COMPACTED:
            self._checkpoints.note_boundary(row, lane=lane, divider=ordinal, place=(place.line, place.offset))
        elif entry.kind is Kind.SUMMARY:
            self._checkpoints.note_summary(lane, ordinal, first_text(entry.parts))
        self._note_calls(entry, ordinal, place)
        if not lane:
            self._facts.note_entry(entry)
        return ordinal

    def _set_message(self, entry: ParsedEntry) -> None:
        """Groups answer rows that name no message: they are one when they follow each other on the same prompt."""
        if entry.role is not Role.ASSISTANT or entry.message_key:
            self._nameless.pop(entry.child_key, None)
        else:
            prompt = (entry.usage.input, entry.usage.cache_read, entry.usage.cache_write) if entry.usage else None
            before = self._nameless.get(entry.child_key)
            entry.message_key = before[1] if before is not None and prompt is not None and before[0] == prompt else entry.source_id
            self._nameless[entry.child_key] = (prompt, entry.message_key)
        entry.message_key = entry.message_key[:200]

    def _note_calls(self, entry: ParsedEntry, ordinal: int, place: Place) -> None:
        for part in entry.parts:
            if part.kind is PartKind.CALL and part.call_id:
                self._open_calls[part.call_id] = (place.line, place.offset)
            elif part.kind is PartKind.RESULT:
                if self._open_calls.pop(part.call_id, None) is None:
                    place.note(ProblemKind.ORPHAN_RESULT)
                self._checkpoints.note_result(entry.child_key, part.call_id, ordinal)

    def _add_to_tree(self, row: dict[str, Any], uuid: str, lane: str, entry: ParsedEntry | None, ordinal: int | None, place: Place) -> None:
        node = Node.BESIDE
        if entry is not None and row.get("type") in {"user", "assistant"}:
            node = Node.ANSWER if row["type"] == "assistant" else Node.RESULT if entry.kind is Kind.RESULT else Node.PROMPT
        self._tree.add(
            uuid or f"{place.line}:{place.offset}",
            text_of(row["parentUuid"]) if "parentUuid" in row else None,
            node=node,
            lane=lane,
            entry=ordinal,
            message=entry.message_key if entry is not None else "",
            place=(place.line, place.offset),
            logical_parent=text_of(row.get("logicalParentUuid")),
        )

    def finish(self) -> None:
        """Settles branches and plans once the file was read. Further calls do nothing."""
        if self._is_done:
            return
        self._is_done = True
        self._reporter.end()
        self._off_branch = self._tree.off_branch()
        self._checkpoints.problems.clear()
        self._plans = self._checkpoints.checkpoints(self._tree)
        open_calls = [Problem(kind=ProblemKind.UNANSWERED_CALL, line=line, offset=offset) for line, offset in self._open_calls.values()]
        self._reporter.note_problems([*self._tree.problems, *self._checkpoints.problems, *open_calls])
        self._reporter.report.checkpoints = len(self._plans)

    def facts(self) -> SessionFacts:
        facts = self._facts.facts()
        facts.source_session_id, facts.agent_id = self._identity.session_id, self._identity.agent_id
        if facts.agent_id:
            facts.parent_source_session_id = facts.source_session_id
        self._origin.tell(facts)
        return facts

    def child_sessions(self) -> list[ChildSession]:
        return self._lanes.children()

    def agent_calls(self) -> dict[str, str]:
        return self._lanes.agent_calls

    def checkpoints(self) -> list[AgentCheckpoint]:
        self.finish()
        return self._plans

    def off_branch(self) -> dict[str, list[int]]:
        self.finish()
        return self._off_branch

    def report(self) -> ParseReport:
        self.finish()
        return self._reporter.report
