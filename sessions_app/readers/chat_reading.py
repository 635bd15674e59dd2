"""One pass over a file of chat messages, whatever their maker: entries, ids, pairing, sessions of their own, the report."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Protocol

import msgspec

from sessions_app.engine.entries import Usage
from sessions_app.engine.terms import Role
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
from sessions_app.readers.chat_conversation import Conversation, card_of, card_result_of
from sessions_app.readers.chat_detect import ROLES, identify, message_of
from sessions_app.readers.chat_halves import halves
from sessions_app.readers.chat_report import ReportKeeper
from sessions_app.readers.chat_stretches import HEAD_BYTES, Envelope, Stretch, is_collection, iter_stretches, rest_of_envelope
from sessions_app.readers.claude_code_parts import text_of
from sessions_app.readers.json_scan import Place
from sessions_app.readers.lines import Piece
from sessions_app.readers.report import lost_kind
from sessions_app.readers.times import TIME_IN_DOUBT
from sessions_app.readers.usage_once import UsageOnce


class Heard(msgspec.Struct, kw_only=True):
    """What a message says, before it has its place in a conversation."""

    entry: ParsedEntry | None
    unknown_blocks: list[str] = []
    summary: str | None = None  # of a compaction that this message holds: the model sees nothing from before it
    tokens_before: int | None = None
    failed_compactions: int = 0


class ChatForm(Protocol):
    """What sets one maker's messages apart from another's."""

    name: str
    version: int
    system_key: str  # where the system prompt stands beside the messages; empty if it never does

    def hear(self, value: dict[str, Any], tool_names: dict[str, str]) -> Heard: ...
    def usage(self, told: Any) -> Usage | None: ...


class ChatReading:
    """One pass over one file. Iterate it to the end, then ask for the rest.

    Of several conversations each is a session of its own; the file's session then holds a card for each.
    """

    def __init__(self, form: ChatForm, source: BinaryIO, path: str, cancelled: Callable[[], bool]) -> None:
        source.seek(0)
        head = source.read(HEAD_BYTES)
        self._form = form
        self._source = source
        self._cancelled = cancelled
        self._identity = identify(head, path)
        self._is_collection = is_collection(source, path)
        self._keeper = ReportKeeper(form.name, form.version)
        self._main = Conversation("")
        self._now = self._main  # the conversation under way
        self._children: list[Conversation] = []
        self._plans: list[AgentCheckpoint] = []
        self._usage = UsageOnce()
        self._is_done = False

    def __iter__(self) -> Iterator[Record]:
        for stretch in iter_stretches(self._source, cancelled=self._cancelled):
            if stretch.place is Place.HEAD:
                yield from self._begin(stretch)
            elif stretch.place is Place.TAIL:
                yield from self._end(stretch)
            elif stretch.place is Place.ITEM and (both := halves(stretch.piece)):
                yield self._item(both[0])
                yield self._item(both[1], "/text")
            elif stretch.place is Place.ITEM:
                yield self._item(stretch.piece)
            else:
                yield self._keeper.keep(stretch.piece, "envelope", None)

    def _begin(self, stretch: Stretch) -> Iterator[Record]:
        """The first bytes of a conversation: in two records where they hold a card and a system prompt."""
        piece = stretch.piece
        envelope = piece.value or {}
        if stretch.conversation > 1 or self._is_collection:
            self._now = Conversation(f"conversation-{stretch.conversation}")
        self._note_envelope(envelope)
        system = self._system_of(envelope, piece)
        card = card_of(self._now.key) if self._now.key else None
        if card is not None and system is not None:
            brace = piece.raw.index(b"{") + 1
            first = piece._replace(raw=piece.raw[:brace], problems=())
            lines = first.raw.count(b"\n")
            yield self._keeper.keep(first, "envelope", self._take_card(card))
            piece = piece._replace(raw=piece.raw[brace:], offset=piece.offset + brace, line=piece.line + lines)
            card = None
        if system is None:
            yield self._keeper.keep(piece, "envelope", card and self._take_card(card))
            return
        problems: list[Problem] = []
        entry = self._place(self._form.hear(system, {}), system, piece, problems)
        yield self._keeper.keep(piece, "envelope", entry, problems)

    def _system_of(self, envelope: Envelope, head: Piece) -> dict[str, Any] | None:
        """The system prompt as a message. It may stand behind the messages, and is sent before them all the same."""
        key = self._form.system_key
        if not key or head.value is None:
            return None
        content = envelope.get(key) or rest_of_envelope(self._source, head).get(key)
        return {"role": "system", "content": content} if content else None

    def _end(self, stretch: Stretch) -> Iterator[Record]:
        """The last bytes of a conversation: in two records where they hold an answer and a card."""
        piece = stretch.piece
        envelope = piece.value or {}
        self._note_envelope(envelope)
        answer = self._now.answer
        if isinstance(answer, dict) and message_of(answer).get("role") == "assistant":
            problems: list[Problem] = []
            entry = self._place(self._form.hear(answer, self._now.tool_names), answer, piece, problems)
            brace = piece.raw.rindex(b"}") if self._now.key else len(piece.raw)
            yield self._keeper.keep(piece._replace(raw=piece.raw[:brace]), "assistant", entry, problems)
            piece = piece._replace(
                raw=piece.raw[brace:], offset=piece.offset + brace, line=piece.line + piece.raw.count(b"\n", 0, brace), problems=()
            )
        else:
            self._bill_last(envelope)
        if piece.raw:
            yield self._keeper.keep(piece, "envelope", self._take_card(card_result_of(self._now)) if self._now.key else None)
        self._close()

    def _close(self) -> None:
        """Leaves the conversation under way; what comes next belongs to the file's session."""
        unanswered = self._now.close()
        self._keeper.note_problems([Problem(kind=ProblemKind.UNANSWERED_CALL, line=line, offset=offset) for line, offset in unanswered])
        self._now = self._main

    def _note_envelope(self, envelope: Envelope) -> None:
        self._now.model = text_of(envelope.get("model"))[:100] or self._now.model
        self._now.answer = envelope.get("response", self._now.answer)
        tools = envelope.get("tools")
        self._keeper.tools += len(tools) if isinstance(tools, list) else 0

    def _take_card(self, entry: ParsedEntry) -> ParsedEntry:
        self._main.next_ordinal()
        return entry

    def _item(self, piece: Piece, suffix: str = "") -> Record:
        value = piece.value
        if value is None:
            return self._keeper.keep(piece, lost_kind(piece), None)
        message = message_of(value)
        kind = text_of(message.get("role"))[:80] or "(no role)"
        problems: list[Problem] = []
        entry = None
        if kind not in ROLES:
            problems.append(Problem(kind=ProblemKind.UNKNOWN_TYPE, line=piece.line, offset=piece.offset, detail=kind))
        else:
            heard = self._form.hear(value, self._now.tool_names)
            self._keeper.failed_compactions += heard.failed_compactions
            if heard.entry is None:
                problems.append(Problem(kind=ProblemKind.BAD_SHAPE, line=piece.line, offset=piece.offset, detail="no message content"))
            entry = self._place(heard, value, piece, problems)
        return self._keeper.keep(piece, kind + suffix, entry, problems)

    def _place(self, heard: Heard, value: dict[str, Any], piece: Piece, problems: list[Problem]) -> ParsedEntry | None:
        """Gives an entry its place in the conversation under way: ids, time, usage, plan."""
        problems += [
            Problem(kind=ProblemKind.UNKNOWN_TYPE, line=piece.line, offset=piece.offset, detail=f"block {name}")
            for name in heard.unknown_blocks
        ]
        entry = heard.entry
        if entry is None:
            return None
        now = self._now
        message = message_of(value)
        if not now.identify(entry, value):
            problems.append(Problem(kind=ProblemKind.DUPLICATE, line=piece.line, offset=piece.offset))
            return None
        self._keeper.without_id += text_of(value.get("uuid")) != entry.source_id
        self._keeper.without_time += now.set_time(entry, value, self._keeper.clock)
        if TIME_IN_DOUBT in entry.annex:
            problems.append(Problem(kind=ProblemKind.TIME_IN_DOUBT, line=piece.line, offset=piece.offset, detail=entry.timestamp[:4]))
        if now.key and not now.entries:
            self._children.append(now)
        orphans = now.pair(entry, (piece.line, piece.offset))
        problems += [Problem(kind=ProblemKind.ORPHAN_RESULT, line=piece.line, offset=piece.offset)] * orphans
        ordinal = now.add(entry, text_of(message.get("model") or value.get("model"))[:100])
        if entry.role is Role.ASSISTANT:
            self._bill(entry, ordinal, self._form.usage(message.get("usage") or value.get("usage")))
        if heard.summary is not None:
            self._plans.append(now.checkpoint(entry, ordinal, heard.summary, heard.tokens_before))
        return entry

    def _bill(self, entry: ParsedEntry, ordinal: int, usage: Usage | None) -> None:
        self._now.last_answer = ordinal
        self._now.is_last_billed = False
        if usage is None:
            self._usage.remember(entry, ordinal)
            return
        entry.usage = usage
        # Only a message with an id of its own can come again.
        self._usage.bill(entry, ordinal, f"{entry.child_key}\n{entry.message_key}" if entry.message_key != entry.source_id else "")
        self._now.is_last_billed = entry.usage is not None

    def _bill_last(self, envelope: Envelope) -> None:
        """The usage that stands beside the messages is that of the last answer."""
        usage = self._form.usage(envelope.get("usage"))
        if usage is not None and self._now.last_answer >= 0 and not self._now.is_last_billed:
            self._usage.bill_late(self._now.key, self._now.last_answer, usage)

    def finish(self) -> None:
        """Settles what is known once the file was read. Further calls do nothing."""
        if self._is_done:
            return
        self._is_done = True
        if self._now is not self._main:
            self._close()  # its end is missing
        self._close()
        self._keeper.conversations = len(self._children)
        self._keeper.finish(len(self._plans))

    def identity(self) -> SourceIdentity:
        """Which session this is; known before the first record."""
        return self._identity

    def mark_written(self) -> None:
        """Everything yielded so far is stored: later corrections of it are told by `usage_corrections`."""
        self._usage.mark_written()

    def usage_corrections(self) -> Iterable[UsageCorrection]:
        """Stored entries whose usage a later one of the same message replaces, or which was told after them."""
        return self._usage.corrections()

    def facts(self) -> SessionFacts:
        main = self._main
        return SessionFacts(
            agent=self._form.name,
            source_session_id=self._identity.session_id,
            title=main.title,
            title_source="first-prompt" if main.title else "",
            model=main.model,
            started=main.started,
            last_activity=main.last_activity,
            open_turn=main.is_open,
        )

    def child_sessions(self) -> list[ChildSession]:
        return [child.as_child() for child in self._children]

    def agent_calls(self) -> dict[str, str]:
        return {child.key: child.key for child in self._children}

    def checkpoints(self) -> list[AgentCheckpoint]:
        self.finish()
        return self._plans

    def off_branch(self) -> dict[str, list[int]]:
        self.finish()
        return {}

    def report(self) -> ParseReport:
        self.finish()
        return self._keeper.report
