"""The end of an import: what is known for certain only when a file was read to its last byte."""

import contextlib
import os
from array import array
from datetime import UTC, datetime, timedelta
from typing import BinaryIO

import msgspec
from django.db import transaction

from sessions_app import prepared
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import Entry, Session, SessionStatus, SourceFile
from sessions_app.readers.base import AgentCheckpoint, ParseReport, SessionFacts, SourceReading
from sessions_app.readers.times import can_be, parse_time
from sessions_app.services import signals
from sessions_app.services.compactions import rewinds
from sessions_app.services.imports import origins
from sessions_app.services.imports.checkpoints import store_checkpoints
from sessions_app.services.imports.identity import call_that_started, link_children, project_of
from sessions_app.services.imports.lanes import Lane
from sessions_app.services.imports.sources import tail_hash
from sessions_app.services.imports.writer import SourceWriter
from sessions_app.services.write_turns import write_turn

CHUNK = 500
FEW = 20
"""Side chains and checkpoints of a short source, which one transaction stores."""

STILL_WORKING = timedelta(minutes=5)


def finish(*, actor: Actor, writer: SourceWriter, reading: SourceReading, file: BinaryIO, notes: list[str]) -> None:
    """Settles branches, usage and checkpoints, completes the sessions and their source, and writes the events."""
    is_short = is_whole(writer, reading)
    # A short source comes in whole: one transaction takes less time than several.
    with write_turn() if is_short else contextlib.nullcontext(), transaction.atomic() if is_short else contextlib.nullcontext():
        _settle(writer, reading, holds=is_short)
        main, report = writer.lane(""), reading.report()
        main.session.project_id = project_of(reading.facts().cwd)
        for child in reading.child_sessions():
            # Else one transaction each: a file may hold hundreds, and nobody should wait for all of them.
            with write_turn(), transaction.atomic(savepoint=not is_short):
                lane = writer.lanes[child.key]
                complete_child(lane, child.title, child.call_id)
                _signal(lane)
                tell_imported(actor, lane)
        with write_turn(), transaction.atomic(savepoint=not is_short):
            writer.hold_still()
            complete_main(main, reading.facts(), report)
            complete_source(writer.source, file, report, reading.agent_calls(), notes)
            _signal(main)
            writer.store(is_last=True, savepoint=not is_short)
            tell_imported(actor, main, report)
            link(main.session, reading, writer.source.path)
            origins.settle(writer.lanes, reading.facts(), is_sub_agent=bool(reading.identity().agent_id))


def is_whole(writer: SourceWriter, reading: SourceReading) -> bool:
    """Whether nothing of a source that was read is stored yet, and one transaction can take it in."""
    is_known = all(lane.known is not None for lane in writer.lanes.values())  # else the store is asked, so it must have the sessions
    return is_known and not writer.has_written and len(reading.child_sessions()) + len(reading.checkpoints()) <= FEW


def _settle(writer: SourceWriter, reading: SourceReading, *, holds: bool) -> None:
    """Makes the last rows, and stores them unless the caller `holds` them; settles branches, usage and checkpoints."""
    checkpoints: dict[str, list[AgentCheckpoint]] = {}
    for checkpoint in reading.checkpoints():
        checkpoints.setdefault(checkpoint.child_key, []).append(checkpoint)
    ordinals = reading.off_branch()
    writer.lane("")
    off = {key: {lane.placed[ordinal] for ordinal in ordinals.get(key, ())} for key, lane in writer.lanes.items()}
    writer.hold(off)
    if not holds or checkpoints:
        writer.store(is_last=True)
    for key, lane in writer.lanes.items():
        settle_branch(lane, off[key])
    settle_usage(writer, reading)
    for key, lane in writer.lanes.items():
        store_checkpoints(lane, checkpoints.get(key, []), off[key])
        if key in checkpoints:
            lane.known = None  # its view is no longer its history


def _signal(lane: Lane) -> None:
    """Keeps on the session's row what its pages read there: from what was just read, or else from the store."""
    if lane.known is not None:
        signals.store(lane.session, lane.known)
    else:
        signals.refresh(lane.session.pk)


def settle_branch(lane: Lane, wanted: set[int]) -> None:
    """Moves `off_branch` to where the tree of the source has it now, a few hundred rows at a time."""
    if lane.known is not None:
        lane.known.off_branch = wanted
    stored = {index for index in wanted if index >= lane.settled_from}
    if not lane.was_empty:
        stored = set(Entry.objects.filter(session=lane.session, off_branch=True).values_list("index", flat=True))
    for value, indexes in ((True, sorted(wanted - stored)), (False, sorted(stored - wanted))):
        for start in range(0, len(indexes), CHUNK):
            Entry.objects.filter(session=lane.session, index__in=indexes[start : start + CHUNK]).update(off_branch=value)
    if not lane.was_empty:
        rewinds.note(lane.session.pk, wanted ^ stored)


def settle_usage(writer: SourceWriter, reading: SourceReading) -> None:
    """Takes the usage from rows of a message of which a later row tells more; gives it to those that were counted late."""
    superseded: dict[str, array[int]] = {}
    for correction in reading.usage_corrections():
        lane = writer.lanes[correction.child_key]
        index = lane.placed[correction.ordinal]
        if correction.usage is not None:
            lane.late_usage[index] = correction.usage
        else:
            superseded.setdefault(correction.child_key, array("L")).append(index)
            if lane.known is not None:
                lane.known.measure(index, None, "")
    for key, indexes in superseded.items():
        for start in range(0, len(indexes), CHUNK):
            chunk = indexes[start : start + CHUNK]
            Entry.objects.filter(session=writer.lanes[key].session, index__in=chunk, usage__isnull=False).update(usage=None)
    for lane in writer.lanes.values():
        for index, usage in lane.late_usage.items():
            Entry.objects.filter(session=lane.session, index=index, usage__isnull=True).update(usage=msgspec.to_builtins(usage))
        if lane.late_usage:
            lane.known = None  # its signal is another one
            lane.late_usage = {}


def complete_main(lane: Lane, facts: SessionFacts, report: ParseReport) -> None:
    """Puts what a source says about its session as a whole on the session's row."""
    last = parse_time(facts.last_activity or lane.last_time)
    # Read again: a compaction may have begun or ended since the import opened the session.
    session = lane.session if lane.known is not None else Session.objects.select_for_update(no_key=True).get(pk=lane.session.pk)
    values: dict[str, object] = {
        "project_id": lane.session.project_id,
        "agent_version": facts.version,
        "model": facts.model[:100],
        "window_reported": facts.window,
        "working_directory": facts.cwd[:500],
        "branch": facts.branch[:200],
        "status": _status(session, last, is_open=facts.open_turn),
        "is_complete": True,
        "started_at": parse_time(facts.started or lane.first_time),
        "warning_count": sum(report.by_problem.values()),
        **_activity(lane, last),
    }
    if facts.title:
        values["title"], values["title_source"] = facts.title[:300], facts.title_source[:20]
    prepared.save(lane.session, **values)


def complete_child(lane: Lane, title: str, call_id: str) -> None:
    """The same for a side chain."""
    session, parent = lane.session, lane.session.parent
    last = parse_time(lane.last_time)
    values: dict[str, object] = {
        "is_complete": True,
        "model": lane.model[:100],
        "started_at": parse_time(lane.first_time),
        "project_id": parent.project_id if parent else None,
        **_activity(lane, last),
    }
    if title:
        values["title"], values["title_source"] = title[:300], "call"
    if call_id:
        values["parent_call_id"] = call_id[:200]
    prepared.save(session, **values)


def _activity(lane: Lane, last: datetime | None) -> dict[str, object]:
    """When a session was last active, by which lists are in order: as its source tells it. Where it tells no time, or none that
    can be true, it is that of the import."""
    now = datetime.now(UTC)
    if last is not None:
        return {"last_activity_at": last}
    return {"last_activity_at": now} if lane.added or not can_be(lane.session.last_activity_at, now) else {}


def _status(session: Session, last: datetime | None, *, is_open: bool) -> str:
    """`working` while the file's turn is open and young; what this console does to a session is left alone."""
    if session.status == SessionStatus.COMPACTING:
        return session.status
    is_young = last is not None and datetime.now(UTC) - last < STILL_WORKING
    return SessionStatus.WORKING if is_open and is_young else SessionStatus.IDLE


def complete_source(source: SourceFile, file: BinaryIO, report: ParseReport, agent_calls: dict[str, str], notes: list[str]) -> None:
    """Says up to where the source is stored, and what reading it found."""
    status = os.fstat(file.fileno())
    report.notes = [*report.notes, *notes]
    told = msgspec.to_builtins(report)
    told["agent_calls"] = agent_calls
    prepared.save(
        source,
        path=source.path,
        mtime_ns=status.st_mtime_ns,
        tail_hash=tail_hash(file, report.bytes_read),
        report=told,
        is_complete=True,
        imported_at=datetime.now(UTC),
    )


def link(session: Session, reading: SourceReading, path: str) -> None:
    """Ties a session to its sub-agents, and to the call that started it, as far as they are known."""
    link_children(session, reading.agent_calls())
    identity = reading.identity()
    if identity.agent_id and (started := call_that_started(session, identity, path)):
        link_children(started[0], {identity.agent_id: started[1]})


def tell_imported(actor: Actor, lane: Lane, report: ParseReport | None = None) -> None:
    """Writes the event that a session was taken in, or what is new of it."""
    payload: dict[str, object] = {"entries_added": lane.added, "entries": lane.next_index}
    if report is not None:
        payload |= {"problems": sum(report.by_problem.values()), "duplicates": report.duplicates, "bytes": report.bytes_read}
        payload["checkpoints"] = report.checkpoints
    log.append(
        log.session_stream(lane.session.pk),
        EventType.SESSION_IMPORTED,
        actor=actor,
        target=("session", str(lane.session.pk)),
        payload=payload,
    )
