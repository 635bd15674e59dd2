"""Claude Code's own compactions as view plans: what the agent sent after each, in its order."""

from typing import Any

import msgspec

from sessions_app.engine.entries import Segment
from sessions_app.engine.terms import SegmentKind, Trigger
from sessions_app.readers.base import AgentCheckpoint, Problem, ProblemKind
from sessions_app.readers.claude_code_parts import text_of
from sessions_app.readers.claude_code_tree import Tree
from sessions_app.readers.compact import NONE, CompactMap

_TRIGGERS = {"manual": Trigger.MANUAL, "auto": Trigger.THRESHOLD}
_SHOWN_METADATA = ("cumulativeDroppedTokens", "messagesSummarized", "tokensSaved", "userContext", "precomputed")


class Boundary(msgspec.Struct, kw_only=True):
    """A boundary row, as it was read. `divider` is the ordinal of its entry within its lane."""

    lane: str
    divider: int
    uuid: str
    metadata: dict[str, Any]
    timestamp: str
    place: tuple[int, int]
    is_partial: bool  # a microcompaction: results were cleared, nothing was summarised
    summary: str = ""
    summary_entry: int | None = None


class CheckpointCollector:
    """Fed with boundaries and summaries while the file is read; makes the plans when it has been read."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._boundaries: list[Boundary] = []
        self._results = CompactMap()  # (lane, call id) → ordinal of the result

    def note_boundary(self, row: dict[str, Any], *, lane: str, divider: int, place: tuple[int, int]) -> None:
        """Takes a `compact_boundary` or `microcompact_boundary` row."""
        is_partial = row.get("subtype") == "microcompact_boundary"
        metadata = row.get("microcompactMetadata" if is_partial else "compactMetadata") or row.get("compact_metadata")
        self._boundaries.append(
            Boundary(
                lane=lane,
                divider=divider,
                uuid=text_of(row.get("uuid")),
                metadata=metadata if isinstance(metadata, dict) else {},
                timestamp=text_of(row.get("timestamp")),
                place=place,
                is_partial=is_partial,
            ),
        )

    def note_summary(self, lane: str, ordinal: int, text: str) -> None:
        """Takes the summary entry that follows a boundary."""
        for boundary in reversed(self._boundaries):
            if boundary.lane == lane and not boundary.is_partial:
                if boundary.summary_entry is None:
                    boundary.summary, boundary.summary_entry = text, ordinal
                return

    def note_result(self, lane: str, call_id: str, ordinal: int) -> None:
        """Remembers where a call's result stands, should a microcompaction clear it."""
        self._results.set((lane, call_id), ordinal)

    def checkpoints(self, tree: Tree) -> list[AgentCheckpoint]:
        """One checkpoint for each boundary, in file order."""
        found: list[AgentCheckpoint] = []
        in_force: dict[str, AgentCheckpoint] = {}
        for boundary in self._boundaries:
            previous = in_force.get(boundary.lane)
            checkpoint = self._partial(boundary, previous, tree) if boundary.is_partial else self._whole(boundary, tree)
            in_force[boundary.lane] = checkpoint
            found.append(checkpoint)
        return found

    def _whole(self, boundary: Boundary, tree: Tree) -> AgentCheckpoint:
        first = boundary.divider + 1
        anchor, preserved = self._preserved(boundary, tree)
        if not preserved:
            return _checkpoint(boundary, boundary_index=first, segments=(_open_range(first),))
        segments = [Segment(kind=SegmentKind.RANGE, first=first, last=anchor)] if anchor >= first else []
        segments += [Segment(kind=SegmentKind.ENTRY, first=ordinal) for ordinal in preserved]
        rest = max(anchor + 1, first)
        return _checkpoint(boundary, boundary_index=rest, segments=(*segments, _open_range(rest)))

    def _preserved(self, boundary: Boundary, tree: Tree) -> tuple[int, list[int]]:
        """(ordinal of the row behind which they stand, ordinals of the kept rows that lie before the boundary)."""
        messages = boundary.metadata.get("preservedMessages")
        segment = boundary.metadata.get("preservedSegment")
        named = messages if isinstance(messages, dict) else segment if isinstance(segment, dict) else {}
        uuids = named.get("uuids") or named.get("allUuids")
        anchor = tree.entry_of(text_of(named.get("anchorUuid")), boundary.lane)
        if anchor is None:
            anchor = boundary.divider if boundary.summary_entry is None else boundary.summary_entry
        if not isinstance(uuids, list):
            between = tree.entries_between(text_of(named.get("headUuid")), text_of(named.get("tailUuid")), boundary.lane)
            return anchor, [ordinal for ordinal in between if ordinal < boundary.divider]
        kept: list[int] = []
        for uuid in dict.fromkeys(text_of(uuid) for uuid in uuids):
            ordinal = tree.entry_of(uuid, boundary.lane)
            if ordinal is not None and ordinal < boundary.divider:
                kept.append(ordinal)
            elif uuid not in tree:
                line, offset = boundary.place
                detail = "a preserved row is not there"
                self.problems.append(Problem(kind=ProblemKind.DEAD_BOUNDARY, line=line, offset=offset, detail=detail))
        return anchor, kept

    def _partial(self, boundary: Boundary, previous: AgentCheckpoint | None, tree: Tree) -> AgentCheckpoint:
        calls = boundary.metadata.get("compactedToolIds")
        called = calls if isinstance(calls, list) else ()
        cleared: set[int | None] = {self._results.get((boundary.lane, text_of(call))) for call in called}
        attachments = boundary.metadata.get("clearedAttachmentUUIDs")
        if isinstance(attachments, list):
            cleared |= {tree.entry_of(text_of(uuid), boundary.lane) for uuid in attachments}
        known = {ordinal for ordinal in cleared if ordinal is not None and ordinal != NONE} | set(previous.cleared if previous else ())
        return _checkpoint(
            boundary,
            boundary_index=previous.boundary_index if previous else 0,
            segments=previous.segments if previous else (_open_range(0),),
            cleared=tuple(sorted(known)),
        )


def _open_range(first: int) -> Segment:
    return Segment(kind=SegmentKind.RANGE, first=first)


def _checkpoint(
    boundary: Boundary,
    *,
    boundary_index: int,
    segments: tuple[Segment, ...],
    cleared: tuple[int, ...] = (),
) -> AgentCheckpoint:
    metadata = boundary.metadata
    detail: dict[str, object] = {name: metadata[name] for name in _SHOWN_METADATA if isinstance(metadata.get(name), int | str)}
    detail |= {"source_id": boundary.uuid, "timestamp": boundary.timestamp, "partial": boundary.is_partial}
    return AgentCheckpoint(
        child_key=boundary.lane,
        divider_index=boundary.divider,
        boundary_index=boundary_index,
        segments=segments,
        cleared=cleared,
        trigger=_TRIGGERS.get(text_of(metadata.get("trigger")), Trigger.EXTERNAL),
        summary=boundary.summary,
        tokens_before=_count(metadata.get("preTokens")),
        tokens_after=_count(metadata.get("postTokens")),
        duration_ms=_count(metadata.get("durationMs")),
        detail=detail,
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 1 << 40 else None
