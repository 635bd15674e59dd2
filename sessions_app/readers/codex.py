"""The reader of Codex's rollouts (JSON Lines): one pass, row by row, in the order of the file."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

from sessions_app.engine.terms import Kind, Role
from sessions_app.readers.base import (
    AgentCheckpoint,
    ChildSession,
    ParsedEntry,
    ParseReport,
    ProblemKind,
    Record,
    SessionFacts,
    SourceIdentity,
    UsageCorrection,
)
from sessions_app.readers.claude_code_parts import text_of
from sessions_app.readers.codex_calls import Calls
from sessions_app.readers.codex_checkpoints import CheckpointCollector
from sessions_app.readers.codex_facts import AGENT, FactCollector, begins_turn, ends_turn
from sessions_app.readers.codex_identity import is_codex, origin_of
from sessions_app.readers.codex_parts import CodexParts, texts_of
from sessions_app.readers.codex_rows import (
    SUMMARY_ITEMS,
    base_instructions,
    entry_of,
    is_known,
    is_summary_output,
    kind_of,
    notice_of,
    payload_of,
    prompt_of,
    turn_of,
)
from sessions_app.readers.codex_turns import Inheritance, Turns
from sessions_app.readers.codex_usage import Billing
from sessions_app.readers.lines import Piece, iter_pieces
from sessions_app.readers.report import Place, Reporter, lost_kind

READER_VERSION = 1
MAX_HELD = 200  # records that wait for the count of their answer
MAX_HELD_BYTES = 4_000_000
_UNREADABLE = " The summary is its provider's own ciphertext, which can't be read here."


class CodexReader:
    """Reads `$CODEX_HOME/sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`."""

    name = AGENT
    version = READER_VERSION

    def sniff(self, head: bytes) -> bool:
        """Whether the first bytes of a source look like one of these files. Never raises."""
        return is_codex(head)

    def read(self, source: BinaryIO, *, path: str = "", cancelled: Callable[[], bool] = lambda: False) -> "CodexReading":
        """Starts one pass over a seekable source. `path` is its name: ids come from it, and a parent's file is looked for beside it."""
        return CodexReading(source, path, cancelled)


class CodexReading:
    """One pass over one file. Iterate it to the end, then ask for the rest."""

    def __init__(self, source: BinaryIO, path: str, cancelled: Callable[[], bool]) -> None:
        self._source = source
        self._cancelled = cancelled
        self._origin = origin_of(source, path)
        self._facts = FactCollector()
        self._checkpoints = CheckpointCollector()
        self._billing = Billing()
        self._turns = Turns()
        self._inheritance = Inheritance(self._origin, path)
        self._reporter = Reporter(AGENT, READER_VERSION)
        self._tool_names: dict[str, str] = {}
        self._calls = Calls()
        self._ordinal = 0
        self._answer_key = ""  # of the answer that goes on
        self._before: int | None = None  # size of the context when a summary was asked for
        self._has_meta = False
        self._is_done = False

    def __iter__(self) -> Iterator[Record]:
        # What an answer cost is written behind it: until then its records are held back.
        held: list[Record] = []
        size = 0
        line, offset = self._reporter.next_place
        for piece in iter_pieces(self._source, line=line, offset=offset, cancelled=self._cancelled):
            held.append(self._record(piece))
            size += len(piece.raw)
            if not self._billing.is_waiting or len(held) >= MAX_HELD or size >= MAX_HELD_BYTES:
                yield from held
                held, size = [], 0
        yield from held

    def go_on(self, source: BinaryIO) -> None:
        """The next iteration yields what `source` holds: whole lines that were added behind those that were read."""
        self._source, self._is_done = source, False
        self._reporter.go_on()
        self._billing.late.clear()

    def identity(self) -> SourceIdentity:
        """Which session this is; known before the first record."""
        return self._origin.identity

    def mark_written(self) -> None:
        """Everything yielded so far is stored: a count that comes for it later is told by `usage_corrections`."""
        self._billing.mark_written()

    def usage_corrections(self) -> Iterable[UsageCorrection]:
        """Stored entries that were counted after they had been stored."""
        return self._billing.late

    def _record(self, piece: Piece) -> Record:
        row, place = piece.value, Place(piece)
        entry = None
        if row is None:
            kind = lost_kind(piece)
        else:
            kind = kind_of(row)
            if not is_known(row):
                place.note(ProblemKind.UNKNOWN_TYPE, kind)
            parts = CodexParts(self._tool_names)
            entry = self._take(row, parts, place)
            for name in parts.unknown:
                place.note(ProblemKind.UNKNOWN_TYPE, f"content {name}")
        return self._reporter.record(piece, kind, entry, place.problems)

    def _take(self, row: dict[str, Any], parts: CodexParts, place: Place) -> ParsedEntry | None:
        """The entry of a row, with all that it needs to know of its file."""
        payload = payload_of(row)
        if "payload" not in row or not payload:
            place.note(ProblemKind.BAD_SHAPE, "no payload")
            return None
        self._inheritance.note_turn(turn_of(row))
        match row.get("type"):
            case "session_meta":
                entry = self._take_meta(payload, parts, place)
            case "turn_context":
                self._facts.note_context(payload)
                return None
            case "event_msg":
                entry = self._take_event(payload, parts)
            case "response_item":
                entry = self._take_item(row, payload, parts, place)
            case "compacted":
                entry = self._take_boundary(row, payload, parts)
            case _:
                return None
        if entry is not None:
            self._finish(entry, row, parts, place)
        return entry

    def _take_meta(self, meta: dict[str, Any], parts: CodexParts, place: Place) -> ParsedEntry | None:
        thread_id = text_of(meta.get("id"))[:100]
        if self._has_meta:
            if thread_id != self._origin.thread_id:
                place.note(ProblemKind.FOREIGN_SESSION, thread_id[:80])
                self._inheritance.note_copy(thread_id)
            return None
        self._has_meta = True
        self._facts.note_meta(meta)
        entry = base_instructions(meta, parts)
        if entry is not None:
            self._checkpoints.note_base(self._ordinal)
        return entry

    def _take_event(self, event: dict[str, Any], parts: CodexParts) -> ParsedEntry | None:
        kind = text_of(event.get("type"))
        self._facts.note_event(event)
        if begins_turn(kind) or ends_turn(kind):
            self._checkpoints.note_turn(is_end=ends_turn(kind))
            self._end_answer()
            if ends_turn(kind):
                self._billing.skip_answer()
        if kind == "token_count":
            self._take_count(event)
        elif kind == "collab_agent_spawn_end":
            self._calls.note_agent(text_of(event.get("new_thread_id")), text_of(event.get("call_id")))
        elif kind == "thread_rolled_back" and (start := self._turns.roll_back(event.get("num_turns"))) is not None:
            self._checkpoints.forget_from(start)
        match kind:
            case "user_message":
                return None if self._turns.is_told(text_of(event.get("message"))) else prompt_of(event, parts)
            case "context_compacted":
                return self._take_mark(parts)
            case "item_completed":
                return self._take_completed(event, parts)
        return notice_of(event, parts)

    def _take_completed(self, event: dict[str, Any], parts: CodexParts) -> ParsedEntry | None:
        item = event.get("item")
        if not isinstance(item, dict) or item.get("type") != "ContextCompaction":
            return None
        began, ended = event.get("started_at_ms"), event.get("completed_at_ms")
        if isinstance(began, int) and isinstance(ended, int) and 0 <= ended - began < 1 << 40:
            self._checkpoints.note_duration(ended - began)
        return self._take_mark(parts)

    def _take_mark(self, parts: CodexParts) -> ParsedEntry | None:
        """The boundary of a compaction of which no other row has told, else nothing."""
        if self._checkpoints.joins() is not None:
            return None
        self._checkpoints.note_mark(self._ordinal)
        return ParsedEntry(role=Role.NOTICE, kind=Kind.COMPACTED, parts=(parts.text("Context compacted", name="context_compacted"),))

    def _take_boundary(self, row: dict[str, Any], payload: dict[str, Any], parts: CodexParts) -> ParsedEntry | None:
        is_row = row.get("type") == "compacted"
        known = self._checkpoints.joins(is_row=is_row)
        divider = self._ordinal if known is None else known
        before = self._billing.context if self._before is None else self._before
        self._checkpoints.note_compacted(
            payload, divider=divider, is_row=is_row, timestamp=text_of(row.get("timestamp")), tokens_before=before
        )
        self._before = None
        self._end_answer()
        self._turns.note_said()
        if known is not None:
            return None
        text = "Context compacted." + ("" if text_of(payload.get("message")) else _UNREADABLE)
        entry = ParsedEntry(role=Role.NOTICE, kind=Kind.COMPACTED, parts=(parts.text(text, name="compacted"),))
        self._billing.settle(entry)
        return entry

    def _take_item(self, row: dict[str, Any], item: dict[str, Any], parts: CodexParts, place: Place) -> ParsedEntry | None:
        kind = item.get("type")
        if isinstance(kind, str) and kind in SUMMARY_ITEMS:
            return self._take_boundary(row, {"replacement_history": [item]}, parts)
        entry = entry_of(item, parts, place=f"line-{place.line}")
        if entry is None:
            if kind == "message":
                place.note(ProblemKind.BAD_SHAPE, "no message content")
            return None
        if is_summary_output(row):
            # Asked for by the agent, read by nobody: the boundary that follows holds it.
            self._before = self._billing.context
            entry.role, entry.kind = Role.NOTICE, Kind.SUMMARY
            self._end_answer()
            self._billing.note_answer(entry, self._ordinal)
            return entry
        if entry.role is Role.USER and not entry.meta and self._turns.is_repeated(next(iter(texts_of(item.get("content"))), "")):
            return None
        entry.source_id = text_of(item.get("id"))[:200]
        self._turns.place(entry)
        self._checkpoints.note_item(item, entry, self._ordinal)
        if entry.role is Role.ASSISTANT:
            entry.model = self._facts.model
            self._answer_key = self._answer_key or entry.source_id or f"answer-{self._ordinal}"
            entry.message_key = self._answer_key
            self._billing.note_answer(entry, self._ordinal)
        else:
            self._end_answer()
        self._calls.note(entry, place)
        return entry

    def _end_answer(self) -> None:
        self._answer_key = ""
        self._billing.end_answer()

    def _take_count(self, event: dict[str, Any]) -> None:
        info = event.get("info")
        self._billing.note_count(info, is_inherited=self._inheritance.is_inherited)
        last = info.get("last_token_usage") if isinstance(info, dict) else None
        if isinstance(last, dict) and last.get("input_tokens") == 0 and self._billing.context:
            self._checkpoints.note_after(self._billing.context)

    def _finish(self, entry: ParsedEntry, row: dict[str, Any], parts: CodexParts, place: Place) -> None:
        entry.blobs = parts.blobs
        self._reporter.set_time(entry, text_of(row.get("timestamp")), place)
        if self._inheritance.is_inherited:
            entry.annex = {**entry.annex, "inherited_from": self._inheritance.source}
            self._inheritance.count += 1
        self._turns.note(entry, self._ordinal)
        self._facts.note_entry(entry)
        self._ordinal += 1

    def facts(self) -> SessionFacts:
        facts = self._facts.facts(self._billing.window)
        facts.source_session_id, facts.agent_id = self._origin.identity.session_id, self._origin.identity.agent_id
        if facts.agent_id:
            facts.parent_source_session_id = facts.source_session_id
        else:
            facts.copied_from, facts.is_fork = self._inheritance.source, True
        facts.inherited = {"": self._inheritance.count} if self._inheritance.count else {}
        return facts

    def child_sessions(self) -> list[ChildSession]:
        """None: sub-agents have files of their own."""
        return []

    def agent_calls(self) -> dict[str, str]:
        return self._calls.agents

    def checkpoints(self) -> list[AgentCheckpoint]:
        return self._checkpoints.checkpoints

    def off_branch(self) -> dict[str, list[int]]:
        return {"": self._turns.off_branch} if self._turns.off_branch else {}

    def report(self) -> ParseReport:
        report = self._reporter.report
        if not self._is_done:
            self._is_done = True
            self._reporter.end()
            self._reporter.note_problems(self._calls.unanswered())
            report.checkpoints = len(self._checkpoints.checkpoints)
            report.notes += self._inheritance.notes()
        return report
