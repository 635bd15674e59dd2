"""A source as a writer gets it, and the view that a file gives: both through the readers, without a store."""

import io
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from sessions_app.engine import counting, view
from sessions_app.engine.entries import Checkpoint, Entry, Segment, SyntheticMessage
from sessions_app.engine.messages import ViewMessage
from sessions_app.engine.terms import Lineage, Role, SegmentKind
from sessions_app.readers.base import AgentCheckpoint, Reader
from sessions_app.readers.claude_code import ClaudeCodeReader
from sessions_app.readers.codex import CodexReader
from sessions_app.writers.base import Continuation, Row, continuation_of
from sessions_app.writers.registry import writer_for

READERS: dict[str, Reader] = {"claude-code": ClaudeCodeReader(), "codex": CodexReader()}
BLOCK = "What was folded: the parser was split, the tests are green."
WRITTEN_AT = "2026-12-01T09:00:00.000Z"


@dataclass
class Source:
    """A file that was read: its rows, the entries of its session, and the agent's own compactions."""

    rows: list[Row]
    entries: list[Entry]
    checkpoints: list[AgentCheckpoint]

    @property
    def live(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.is_sendable and not entry.off_branch]

    def view(self, checkpoint: Checkpoint | None = None) -> tuple[ViewMessage, ...]:
        return view.build(self.entries, checkpoint)

    def agents_view(self) -> tuple[ViewMessage, ...]:
        """What the agent would send: the view of its newest compaction."""
        newest = self.checkpoints[-1]
        return self.view(Checkpoint(generation=1, lineage=Lineage.AGENT, segments=newest.segments, boundary_index=newest.boundary_index))


def read(data: bytes, agent: str, *, path: str = "session.jsonl") -> Source:
    """Reads a file as an import does; blobs are put back into their parts."""
    reading = READERS[agent].read(io.BytesIO(data), path=path)
    records = list(reading)
    off_branch = frozenset(reading.off_branch().get("", ()))
    rows, entries = [], []
    for record in records:
        told = record.entry if record.entry is not None and not record.entry.child_key else None
        index = len(entries) if told is not None else None
        rows.append(
            Row(
                raw=record.raw,
                word=record.kind,
                index=index,
                role=told.role if told else None,
                kind=told.kind if told else None,
                off_branch=index in off_branch,
            )
        )
        if told is not None:
            entries.append(
                Entry(
                    index=len(entries),
                    role=told.role,
                    kind=told.kind,
                    parts=tuple(
                        msgspec.structs.replace(part, text=told.blobs[part.blob][1].decode(), blob="", chars=0) if part.chars else part
                        for part in told.parts
                    ),
                    tokens=counting.estimate_parts(told.parts),
                    source_id=told.source_id,
                    message_key=told.message_key,
                    off_branch=index in off_branch,
                    meta=told.meta,
                )
            )
    return Source(rows, entries, reading.checkpoints())


def plan(boundary: int, carried: Iterable[int] = (), *, system_last: int | None = None, block: str = BLOCK) -> Checkpoint:
    """A checkpoint of ours, as a compaction leaves it."""
    return Checkpoint(
        generation=1,
        lineage=Lineage.CONSOLE,
        segments=(
            *([] if system_last is None else [Segment(kind=SegmentKind.RANGE, first=0, last=system_last)]),
            Segment(kind=SegmentKind.SYNTHETIC, payload=SyntheticMessage(role=Role.USER, text=block)),
            *(Segment(kind=SegmentKind.ENTRY, first=index) for index in carried),
            Segment(kind=SegmentKind.RANGE, first=boundary),
        ),
        boundary_index=boundary,
    )


def wanted(checkpoint: Checkpoint, session_id: str) -> Continuation:
    return continuation_of(checkpoint, session_id=session_id, written_at=WRITTEN_AT, tokens_before=50_000, tokens_after=9_000)


def written(source: Source, agent: str, checkpoint: Checkpoint, session_id: str = "") -> tuple[bytes, list[str]]:
    """The continuation as a file, and what could not be carried over."""
    writer = writer_for(agent)
    assert writer is not None
    writing = writer.write(lambda: source.rows, wanted(checkpoint, session_id or writer.new_session_id()))
    return b"".join(writing), writing.notes()


def said(messages: Iterable[ViewMessage]) -> list[tuple[str, list[tuple[object, ...]]]]:
    """What a model would read, message by message, for comparing."""
    return [
        (
            message.role.value,
            [(part.part.kind.value, part.part.text, part.part.call_id, part.glued, part.newline) for part in message.parts],
        )
        for message in messages
    ]
