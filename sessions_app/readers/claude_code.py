"""The reader of Claude Code's session files (JSON Lines): one pass, row by row, in the order of the file."""

import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from sessions_app.engine.terms import Kind, PartKind, Role
from sessions_app.readers.base import (
    MAX_LISTED_PROBLEMS,
    AgentCheckpoint,
    ChildSession,
    ParsedEntry,
    ParseReport,
    Problem,
    ProblemKind,
    Record,
    SessionFacts,
    SourceIdentity,
)
from sessions_app.readers.claude_code_checkpoints import CheckpointCollector
from sessions_app.readers.claude_code_facts import AGENT, FactCollector
from sessions_app.readers.claude_code_identity import identify, is_claude_code
from sessions_app.readers.claude_code_lanes import Lanes
from sessions_app.readers.claude_code_parts import PartBuilder, text_of
from sessions_app.readers.claude_code_rows import CHAIN_TYPES, entry_of, first_text, is_known, kind_of
from sessions_app.readers.claude_code_tree import Node, Tree
from sessions_app.readers.lines import Piece, iter_pieces

READER_VERSION = 1
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_ZONED = re.compile(r"(?:Z|[+-]\d\d:?\d\d)$")
_LISTED_ONCE = frozenset({ProblemKind.UNKNOWN_TYPE, ProblemKind.FOREIGN_SESSION, ProblemKind.NAIVE_TIME, ProblemKind.BAD_SHAPE})
_LOST_KINDS = (ProblemKind.TOO_LONG, ProblemKind.NOT_AN_OBJECT, ProblemKind.TRUNCATED, ProblemKind.UNREADABLE, ProblemKind.NUL_BYTES)


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
        self._report = ParseReport(reader=AGENT, reader_version=READER_VERSION)
        self._tool_names: dict[str, str] = {}
        self._open_calls: dict[str, tuple[int, int]] = {}
        self._billed: dict[str, tuple[int, str, int]] = {}  # message → (output, lane, ordinal) of the row that carries its usage
        self._unwritten: dict[tuple[str, int], ParsedEntry] = {}
        self._superseded: list[tuple[str, int]] = []
        self._listed_kinds: set[tuple[ProblemKind, str]] = set()
        self._nameless: dict[str, tuple[tuple[int, int, int] | None, str]] = {}  # lane → (prompt, message) of its last row
        self._last_time = ""
        self._off_branch: dict[str, list[int]] = {}
        self._plans: list[AgentCheckpoint] = []
        self._is_done = False

    def __iter__(self) -> Iterator[Record]:
        for piece in iter_pieces(self._source, cancelled=self._cancelled):
            yield self._record(piece)

    def identity(self) -> SourceIdentity:
        """Which session this is; known before the first record."""
        return self._identity

    def mark_written(self) -> None:
        """Everything yielded so far is stored: later corrections of it are listed by `superseded_usage`."""
        self._unwritten.clear()

    def superseded_usage(self) -> list[tuple[str, int]]:
        """(child key, ordinal) of stored entries whose usage a later row of the same message replaces."""
        return self._superseded

    def _record(self, piece: Piece) -> Record:
        row = piece.value
        place = (piece.line, piece.offset)
        problems = [Problem(kind=kind, line=piece.line, offset=piece.offset) for kind in piece.problems]
        entry = None
        if row is None:
            kind = next((kind.value for kind in _LOST_KINDS if kind in piece.problems), "blank")
        else:
            kind = kind_of(row)
            if not is_known(row):
                problems.append(Problem(kind=ProblemKind.UNKNOWN_TYPE, line=piece.line, offset=piece.offset, detail=kind))
            entry = self._take(row, kind, place, problems)
        self._count(piece, kind, entry)
        self._note_problems(problems)
        return Record(
            line=piece.line, offset=piece.offset, length=len(piece.raw), kind=kind, raw=piece.raw, entry=entry, problems=tuple(problems)
        )

    def _take(self, row: dict[str, Any], kind: str, place: tuple[int, int], problems: list[Problem]) -> ParsedEntry | None:
        """The entry of a row; adds the row to tree, lanes and facts on the way."""
        line, offset = place
        uuid = text_of(row.get("uuid"))
        if uuid and uuid in self._tree:
            problems.append(Problem(kind=ProblemKind.DUPLICATE, line=line, offset=offset))
            self._report.duplicates += 1
            return None
        session = text_of(row.get("sessionId"))
        if session and session != self._identity.session_id:
            problems.append(Problem(kind=ProblemKind.FOREIGN_SESSION, line=line, offset=offset, detail=session[:80]))
        self._facts.note(row, kind)
        said = row.get("type")
        if not isinstance(said, str) or said not in CHAIN_TYPES:
            return None
        builder = PartBuilder(self._tool_names)
        entry = entry_of(row, builder)
        if entry is None and row.get("type") in {"user", "assistant"}:
            problems.append(Problem(kind=ProblemKind.BAD_SHAPE, line=line, offset=offset, detail="no message content"))
        problems.extend(
            Problem(kind=ProblemKind.UNKNOWN_TYPE, line=line, offset=offset, detail=f"block {name}") for name in builder.unknown_blocks
        )
        lane = self._lanes.lane_of(row, uuid, self._tree)
        ordinal = None
        if entry is not None:
            entry.blobs = builder.blobs
            ordinal = self._finish(entry, row, lane, place, problems)
        self._add_to_tree(row, uuid, lane, entry, ordinal, place)
        return entry

    def _finish(self, entry: ParsedEntry, row: dict[str, Any], lane: str, place: tuple[int, int], problems: list[Problem]) -> int:
        """Fills what the entry needs to know of its file; returns its ordinal within its lane."""
        entry.source_id = text_of(row.get("uuid"))[:200]
        entry.parent_source_id = text_of(row.get("parentUuid") or row.get("logicalParentUuid"))[:200]
        entry.child_key = lane
        self._set_message(entry)
        self._set_time(entry, text_of(row.get("timestamp")), place, problems)
        ordinal = self._lanes.next_ordinal(lane, entry)
        if entry.usage is not None:
            self._bill(entry, f"{entry.message_key}\n{text_of(row.get('requestId'))}", ordinal)
        if entry.kind is Kind.COMPACTED:
            self._checkpoints.note_boundary(row, lane=lane, divider=ordinal, place=place)
        elif entry.kind is Kind.SUMMARY:
            self._checkpoints.note_summary(lane, ordinal, first_text(entry.parts))
        self._note_calls(entry, ordinal, place, problems)
        if not lane:
            self._facts.note_entry(entry)
        return ordinal

    def _set_time(self, entry: ParsedEntry, told: str, place: tuple[int, int], problems: list[Problem]) -> None:
        if _TIME.match(told):
            if not _ZONED.search(told[10:]):
                problems.append(Problem(kind=ProblemKind.NAIVE_TIME, line=place[0], offset=place[1]))
            entry.timestamp = self._last_time = told[:40]
        else:
            entry.timestamp, entry.synthetic_time = self._last_time, True

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

    def _bill(self, entry: ParsedEntry, message: str, ordinal: int) -> None:
        """Leaves the usage of a message on one row: the one with the largest output, the last of equals."""
        assert entry.usage is not None
        known = self._billed.get(message)
        if known is not None and known[0] > entry.usage.output:
            entry.usage = None
            return
        if known is not None:
            _, lane, before = known
            if earlier := self._unwritten.get((lane, before)):
                earlier.usage = None
            else:
                self._superseded.append((lane, before))
        self._billed[message] = (entry.usage.output, entry.child_key, ordinal)
        self._unwritten[entry.child_key, ordinal] = entry

    def _note_calls(self, entry: ParsedEntry, ordinal: int, place: tuple[int, int], problems: list[Problem]) -> None:
        for part in entry.parts:
            if part.kind is PartKind.CALL and part.call_id:
                self._open_calls[part.call_id] = place
            elif part.kind is PartKind.RESULT:
                if self._open_calls.pop(part.call_id, None) is None:
                    problems.append(Problem(kind=ProblemKind.ORPHAN_RESULT, line=place[0], offset=place[1]))
                self._checkpoints.note_result(entry.child_key, part.call_id, ordinal)

    def _add_to_tree(
        self, row: dict[str, Any], uuid: str, lane: str, entry: ParsedEntry | None, ordinal: int | None, place: tuple[int, int]
    ) -> None:
        node = Node.BESIDE
        if entry is not None and row.get("type") in {"user", "assistant"}:
            node = Node.ANSWER if row["type"] == "assistant" else Node.RESULT if entry.kind is Kind.RESULT else Node.PROMPT
        self._tree.add(
            uuid or f"{place[0]}:{place[1]}",
            text_of(row["parentUuid"]) if "parentUuid" in row else None,
            node=node,
            lane=lane,
            entry=ordinal,
            message=entry.message_key if entry is not None else "",
            place=place,
            logical_parent=text_of(row.get("logicalParentUuid")),
        )

    def _count(self, piece: Piece, kind: str, entry: ParsedEntry | None) -> None:
        report = self._report
        report.bytes_read += len(piece.raw)
        report.lines = piece.line
        report.records += 1
        report.by_kind[kind] = report.by_kind.get(kind, 0) + 1
        if entry is not None:
            report.entries += 1
            report.side_chain_entries += bool(entry.child_key)

    def _note_problems(self, problems: list[Problem]) -> None:
        """Counts every problem; lists each, but those of one kind and detail that come in masses only once."""
        report = self._report
        for problem in problems:
            report.by_problem[problem.kind] = report.by_problem.get(problem.kind, 0) + 1
            if problem.kind in _LISTED_ONCE:
                if (problem.kind, problem.detail) in self._listed_kinds:
                    continue
                self._listed_kinds.add((problem.kind, problem.detail))
            if len(report.problems) < MAX_LISTED_PROBLEMS:
                report.problems.append(problem)

    def finish(self) -> None:
        """Settles branches and plans once the file was read. Further calls do nothing."""
        if self._is_done:
            return
        self._is_done = True
        self._off_branch = self._tree.off_branch()
        self._plans = self._checkpoints.checkpoints(self._tree)
        open_calls = [Problem(kind=ProblemKind.UNANSWERED_CALL, line=line, offset=offset) for line, offset in self._open_calls.values()]
        self._note_problems([*self._tree.problems, *self._checkpoints.problems, *open_calls])
        self._report.checkpoints = len(self._plans)

    def facts(self) -> SessionFacts:
        facts = self._facts.facts()
        facts.source_session_id, facts.agent_id = self._identity.session_id, self._identity.agent_id
        if facts.agent_id:
            facts.parent_source_session_id = facts.source_session_id
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
        return self._report
