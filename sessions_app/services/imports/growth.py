"""What was added to a source whose import is kept open: it goes on where that one ended, whatever the length of the file."""

from collections.abc import Mapping
from typing import BinaryIO, Protocol, cast

import msgspec
from django.db import IntegrityError, transaction
from django.db.models import Sum

from sessions_app import prepared
from sessions_app.engine.terms import Role
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import Entry, Session, SourceFile
from sessions_app.readers.base import AgentCheckpoint, SourceReading
from sessions_app.services import signals
from sessions_app.services.imports.checkpoints import store_checkpoints
from sessions_app.services.imports.finish import (
    complete_child,
    complete_main,
    complete_source,
    link,
    settle_branch,
    settle_usage,
    tell_imported,
)
from sessions_app.services.imports.identity import project_of
from sessions_app.services.imports.lanes import Lane
from sessions_app.services.imports.outcomes import OvertakenError, SourceOutcome, SourceState
from sessions_app.services.imports.sources import tail_hash
from sessions_app.services.imports.whole_lines import UpTo
from sessions_app.services.imports.writer import SourceWriter
from sessions_app.services.signal_columns import fills

_ENCODER = msgspec.json.Encoder(order="deterministic")
_ROW = ("status", "title", "model", "working_directory")


class GrowingReading(SourceReading, Protocol):
    """A reading that can go on with whole lines which were added behind what it read; all it told of the end is told anew then."""

    def go_on(self, source: BinaryIO) -> None: ...


class OpenSource:
    """A source that is imported up to `end`, with all that its reader and writer know. One thread at a time may use it.

    It trusts what it knows as long as nobody else wrote to its sessions and the last 64 kB of the file are what they were.
    """

    def __init__(self, *, actor: Actor, reading: GrowingReading, writer: SourceWriter) -> None:
        self._actor, self._reading, self._writer = actor, reading, writer
        self._off = _copied(reading.off_branch())
        self._plans = _ENCODER.encode(reading.checkpoints())
        self._links = self._linked()

    @property
    def end(self) -> int:
        """Bytes of the file that are taken in."""
        return self._writer.bytes_seen

    @property
    def record_count(self) -> int:
        return self._writer.source.record_count

    def go_on(self, file: BinaryIO, until: int, label: str) -> SourceOutcome | None:
        """Takes in the whole lines between `end` and `until`. `None`: something else changed, the file has to be imported as a whole.

        After `None` or an error this must not be used again.
        """
        if not self._is_current(file):
            return None
        for lane in self._writer.lanes.values():
            # The store is asked from now on: what this console did to the session meanwhile is known there alone.
            lane.known, lane.added, lane.was_empty = None, 0, False
        file.seek(self.end)
        self._reading.go_on(cast("BinaryIO", UpTo(file, until)))
        try:
            for record in self._reading:
                self._writer.add(record)
            with transaction.atomic():
                self._settle(file)
        except (IntegrityError, OvertakenError):
            return None  # a compaction wrote its divider, or another import was at the same session
        return self._outcome(label)

    def _is_current(self, file: BinaryIO) -> bool:
        source = self._writer.source
        stored = prepared.find(SourceFile, ("size", "record_count", "is_complete"), id=source.pk)
        if stored is None or (stored[0], stored[1], bool(stored[2])) != (self.end, source.record_count, True):
            return False
        lanes = {lane.session.pk: lane for lane in self._writer.lanes.values()}
        heads = Session.objects.filter(pk__in=list(lanes)).values_list("pk", "entry_count", "head_hash")
        known = {(pk, lane.next_index, lane.head_hash) for pk, lane in lanes.items()}
        if {(pk, count, bytes(head)) for pk, count, head in heads} != known:
            return False
        return tail_hash(file, self.end) == bytes(source.tail_hash)

    def _settle(self, file: BinaryIO) -> None:
        """Everything that the new rows changed, in one transaction: followers see it whole."""
        writer, reading = self._writer, self._reading
        main, facts, report = writer.lane(""), reading.facts(), reading.report()
        before = prepared.find(Session, _ROW, id=main.session.pk) if not main.session._state.adding else None
        is_plain = self._settle_rows()
        for child in reading.child_sessions():
            lane = writer.lanes[child.key]
            if lane.added:
                was_complete = lane.session.is_complete
                complete_child(lane, child.title, child.call_id)
                _signal(lane, is_plain=is_plain and was_complete)
                if not was_complete:
                    tell_imported(self._actor, lane)
        if before is None or facts.cwd[:500] != before[3]:
            main.session.project_id = project_of(facts.cwd)
        complete_main(main, facts, report)
        complete_source(writer.source, file, report, reading.agent_calls(), [])
        if main.added or not is_plain or (before is not None and main.session.model != before[2]):
            _signal(main, is_plain=is_plain and before is not None and main.session.model == before[2])
        if (links := self._linked()) != self._links:
            self._links = links
            link(main.session, reading, writer.source.path)
        self._tell(main, before)

    def _settle_rows(self) -> bool:
        """Writes the rows. False: branches, usage or compactions changed as well, so that sums have to be made anew."""
        writer, reading = self._writer, self._reading
        ordinals = _copied(reading.off_branch())
        off = {key: {lane.placed[ordinal] for ordinal in ordinals.get(key, ())} for key, lane in writer.lanes.items()}
        writer.flush(is_last=True, off_branch=off)
        is_plain = ordinals == self._off and not any(lane.late_usage for lane in writer.lanes.values())
        if ordinals != self._off:
            for key, lane in writer.lanes.items():
                settle_branch(lane, off[key])
            self._off = ordinals
        settle_usage(writer, reading)
        found = reading.checkpoints()
        if (plans := _ENCODER.encode(found)) != self._plans or (not is_plain and found):
            self._plans, is_plain = plans, False
            by_lane: dict[str, list[AgentCheckpoint]] = {}
            for checkpoint in found:
                by_lane.setdefault(checkpoint.child_key, []).append(checkpoint)
            for key, checkpoints in by_lane.items():
                store_checkpoints(writer.lanes[key], checkpoints, off[key])
        return is_plain

    def _tell(self, main: Lane, before: tuple[object, ...] | None) -> None:
        """Writes what else followers have to hear: new entries were told of with their rows."""
        session = main.session
        if before is not None and before[0] != session.status:
            log.append(
                log.session_stream(session.pk),
                EventType.SESSION_STATUS_CHANGED,
                actor=self._actor,
                target=("session", str(session.pk)),
                before={"status": str(before[0])},
                after={"status": str(session.status)},
                reason="its file went on",
            )
        elif not main.added and before is not None and before[1] != session.title:
            tell_imported(self._actor, main, self._reading.report())

    def _linked(self) -> tuple[int, int]:
        return len(self._reading.agent_calls()), len(self._reading.child_sessions())

    def _outcome(self, label: str) -> SourceOutcome:
        main, report = self._writer.lane(""), self._reading.report()
        return SourceOutcome(
            name=label,
            state=SourceState.GROWN,
            session_id=str(main.session.pk),
            title=main.session.title,
            entries=sum(lane.added for lane in self._writer.lanes.values()),
            entries_total=main.next_index,
            bytes=report.bytes_read,
            problems=sum(report.by_problem.values()),
            checkpoints=report.checkpoints,
            children=self._links[1],
            duplicates=report.duplicates,
        )


def _signal(lane: Lane, *, is_plain: bool) -> None:
    """Brings the session's signal up to date: of entries that were merely added only they are summed."""
    if not is_plain:
        signals.refresh(lane.session.pk)
        return
    rows = Entry.objects.filter(session_id=lane.session.pk, index__gte=lane.next_index - lane.added, off_branch=False)
    added = rows.exclude(role=Role.NOTICE).order_by().values_list("role", "kind").annotate(Sum("tokens"))
    signals.refresh(lane.session.pk, added=fills(added))


def _copied(off_branch: Mapping[str, list[int]]) -> dict[str, tuple[int, ...]]:
    """A copy: a reading may go on to fill its lists."""
    return {key: tuple(ordinals) for key, ordinals in off_branch.items() if ordinals}
