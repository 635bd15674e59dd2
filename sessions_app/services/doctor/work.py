"""What is under way in a session or said to be, its numbers, its place in the search index, and its events."""

import uuid
from collections.abc import Iterator
from datetime import timedelta

from django.db.models import Count, Max
from django.db.models.functions import Now

from sessions_app.engine.flush import ReceiptStatus
from sessions_app.engine.terms import OPEN_STATUSES, Lineage, Status
from sessions_app.events.log import session_stream
from sessions_app.events.types import EventType
from sessions_app.events.verify import verify_stream
from sessions_app.models import (
    Compaction,
    Entry,
    Event,
    ImportRun,
    ImportState,
    MemoryFlush,
    SearchBlock,
    Session,
    SessionKind,
    SessionStatus,
    Turn,
    TurnStatus,
)
from sessions_app.services import forks
from sessions_app.services.compactions import lease
from sessions_app.services.doctor.findings import MOST_NAMED, Check, Finding, named
from sessions_app.services.imports import doubtful_times
from sessions_app.services.imports.lost import SILENT_S
from sessions_app.services.turns import claims

TERMINAL = frozenset(status for status in Status if status.is_terminal)


def findings_of(session: Session) -> Iterator[Finding]:
    """What is wrong with everything but entries and views."""
    yield from _lost(session)
    if (stuck := stuck_status(session)) is not None:
        yield Finding(
            check=Check.STATUS_STUCK,
            what=f"It is said to be {session.status}{' by an attempt that is over' if session.running_id else ''}, and nothing runs.",
            meaning="A compaction that waits for its turn's end waits for ever, and pages show work that nobody does.",
            repair=f"Says that it is {stuck}.",
            facts={"status": session.status, "becomes": stuck},
        )
    untold = untold_ends(session)
    if untold:
        yield Finding(
            check=Check.END_UNTOLD,
            what=f"No event tells how {named([f'a{attempt}' for _, attempt in untold], one='attempt', many='attempts')} ended.",
            meaning="Who follows the session still sees it running, and the log has no end of it.",
            repair="Writes the event that is missing, as of now.",
            facts={"attempts": [attempt for _, attempt in untold][:MOST_NAMED], "count": len(untold)},
        )
    yield from _numbers(session)
    yield from _index(session)
    yield from _time(session)
    verdict = verify_stream(session_stream(session.pk))
    if verdict.broken_at is not None:
        yield Finding(
            check=Check.EVENTS_BROKEN,
            what=f"Its events are not as they were written: from event {verdict.broken_at:,} on, {verdict.reason}.",
            meaning="What the log says of this session can't be relied upon from there. Only a backup has what was there.",
            facts={"seq": verdict.broken_at, "reason": verdict.reason},
        )


def _time(session: Session) -> Iterator[Finding]:
    if doubtful_times.in_doubt().filter(pk=session.pk).exists():
        at = session.last_activity_at
        yield Finding(
            check=Check.TIME_DOUBTFUL,
            what=f"Its last activity is said to be on {at:%d} {at:%B} {at.year:04}, which can't be true.",
            meaning=f"It stands {'first' if at > session.created_at else 'last'} in every list that is in the order of time.",
            repair="Takes the latest time of its entries that can be true, or else that of its import; entries keep their own.",
            facts={"last_activity_at": at.isoformat()},
        )


def _lost(session: Session) -> Iterator[Finding]:
    attempts, turns, flushes = lost_attempts(session.pk), lost_turns(session.pk), lost_flushes(session.pk)
    for what, found in (("compaction", attempts), ("turn", turns), ("flush of facts into memory", flushes)):
        if found:
            yield Finding(
                check=Check.WORKER_LOST,
                what=f"A {what} is under way whose process is gone.",
                meaning="Until it is ended, nothing else of its kind begins in this session. A server that runs ends it within a minute.",
                repair="Ends it as failed, with that reason; it can be tried again.",
                facts={"kind": what.split()[0], "ids": [str(one) for one in found]},
            )


def lost_attempts(session_id: uuid.UUID) -> list[uuid.UUID]:
    return list(lease.lapsed().filter(session_id=session_id).values_list("pk", flat=True))


def lost_turns(session_id: uuid.UUID) -> list[uuid.UUID]:
    return list(claims.lapsed().filter(session_id=session_id).values_list("pk", flat=True))


def lost_flushes(session_id: uuid.UUID) -> list[uuid.UUID]:
    pending = MemoryFlush.objects.filter(session_id=session_id, status=ReceiptStatus.PENDING, expires_at__lte=Now())
    return list(pending.values_list("pk", flat=True))


def stuck_status(session: Session) -> SessionStatus | None:
    """The status that a session should have instead of its own; None where that is right."""
    open_attempt = Compaction.objects.filter(session_id=session.pk, status__in=OPEN_STATUSES).first()
    is_turning = Turn.objects.filter(session_id=session.pk, status=TurnStatus.RUNNING).exists()
    rests = SessionStatus.WORKING if is_turning else SessionStatus.IDLE
    if session.running_id and (open_attempt is None or open_attempt.pk != session.running_id):
        return SessionStatus(session.status) if open_attempt or session.status != SessionStatus.COMPACTING else rests
    if session.status == SessionStatus.COMPACTING and open_attempt is None:
        return rests
    if session.kind == SessionKind.INLINE and session.status == SessionStatus.WORKING and not is_turning and open_attempt is None:
        return SessionStatus.IDLE
    return None


def untold_ends(session: Session) -> list[tuple[uuid.UUID, int]]:
    """(id, number) of attempts that ended here without an event that says so; copies of a fork's origin have theirs there."""
    ended = Compaction.objects.filter(
        session_id=session.pk, lineage=Lineage.CONSOLE, status__in=TERMINAL, requested_at__gte=session.created_at
    )
    wanted = dict(ended.order_by("attempt").values_list("pk", "attempt"))
    if not wanted:
        return []
    types = (EventType.COMPACTION_TRIGGERED, EventType.COMPACTION_PERSISTED)
    told = Event.objects.filter(stream=session_stream(session.pk), type__in=types, compaction_id__isnull=False)
    for compaction_id, payload in told.values_list("compaction_id", "payload").iterator(chunk_size=500):
        if isinstance(payload, dict) and payload.get("status") in TERMINAL and compaction_id is not None:
            wanted.pop(compaction_id, None)
    return list(wanted.items())


def true_numbers(session_id: uuid.UUID) -> dict[str, int]:
    """The numbers of a session that its compactions make true; those that are only counted up may be higher."""
    found = Compaction.objects.filter(session_id=session_id).aggregate(
        last_generation=Max("generation"), last_attempt=Max("attempt"), compaction_count=Count("generation")
    )
    return {name: value or 0 for name, value in found.items()}


def numbers_behind(session: Session) -> dict[str, int]:
    """Those of its numbers that are wrong, with what they should be."""
    true = true_numbers(session.pk)
    behind = {name: true[name] for name in ("last_generation", "last_attempt") if getattr(session, name) < true[name]}
    return behind | ({"compaction_count": true["compaction_count"]} if session.compaction_count != true["compaction_count"] else {})


def _numbers(session: Session) -> Iterator[Finding]:
    behind = numbers_behind(session)
    if not behind:
        return
    words = ", ".join(f"{name.replace('_', ' ')} {getattr(session, name):,} for {value:,}" for name, value in behind.items())
    blocks = behind.keys() & {"last_generation", "last_attempt"}
    yield Finding(
        check=Check.NUMBERS_BEHIND,
        what=f"Its numbers are not those of its compactions: {words}.",
        meaning="Every further compaction fails, since its number is taken." if blocks else "Lists show a wrong number.",
        repair="Sets them to what the compactions say.",
        facts={"kept": {name: getattr(session, name) for name in behind}, "should_be": behind},
    )


def index_gap(session_id: uuid.UUID) -> tuple[int, int] | None:
    """The first (from, to) of its entries at which the ledger of the search index is not a chain without gaps; None where it is one."""
    newest = Entry.objects.filter(session_id=session_id).aggregate(newest=Max("index"))["newest"]
    expected = 0
    blocks = SearchBlock.objects.filter(session_id=session_id).order_by("first_index").values_list("first_index", "last_index")
    for first, last in blocks.iterator(chunk_size=1_000):
        if first != expected or last < first or newest is None or last > newest:
            return (min(first, expected), max(last, expected))
        expected = last + 1
    return None


def _index(session: Session) -> Iterator[Finding]:
    gap = index_gap(session.pk)
    if gap is not None:
        yield Finding(
            check=Check.INDEX_GAP,
            what=f"The search index of this session has a gap, or says something twice, around entries {gap[0]:,} to {gap[1]:,}.",
            meaning="A search may not find what stands there, and never will by itself.",
            repair="Takes the session out of the index and fills it anew.",
            facts={"first": gap[0], "last": gap[1]},
        )


def unfinished(session: Session) -> Iterator[Finding]:
    """Of a session that nobody sees, since it never became whole: why, and what can be done. Nothing while it may be under way."""
    if forks.is_fork(session):
        if forks.is_left(session):
            yield Finding(
                check=Check.FORK_UNFINISHED,
                what="A fork whose process is gone: it is hidden, and holds a part of the entries of its origin.",
                meaning="Nobody sees it, and it takes up space. A server that runs removes it by itself.",
                repair="Removes it; the origin has all that it holds.",
                facts={"origin": str(session.parent_id) if session.parent_id else None},
            )
        return
    running = ImportRun.objects.filter(state=ImportState.RUNNING, heartbeat_at__gt=Now() - timedelta(seconds=SILENT_S))
    if running.exists():
        return
    source = session.source_files.order_by("-version", "-imported_at").values_list("path", flat=True).first()
    again = f"Import {source} again" if source and not source.startswith("upload:") else "Import its file again"
    yield Finding(
        check=Check.IMPORT_UNFINISHED,
        what=f"Its import did not end: {session.entry_count:,} entries are stored, and hidden.",
        meaning=f"No list shows it. {again}: that goes on where this one ended.",
        facts={"source": source, "entries": session.entry_count},
    )
