"""The sweep: ends what its worker left behind, starts again what got lost, and lets waiting attempts run.

It may run in several processes at once: every change is a conditional one.
"""

import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Q
from django.db.models.functions import Coalesce, Now

from sessions_app import queue
from sessions_app.engine.terms import Status
from sessions_app.events import log
from sessions_app.events.actors import system_actor
from sessions_app.events.types import EventType
from sessions_app.models import BUSY_STATUSES, Compaction, ImportRun, ImportState, Lease, Session, SessionKind, SessionStatus
from sessions_app.services import forks, heartbeats, idempotency, memory_flush, policies, search_index
from sessions_app.services.compactions import drafts, lease
from sessions_app.services.compactions.endings import NEVER_IDLE, end, end_lost
from sessions_app.services.compactions.lease import database_time
from sessions_app.services.compactions.request import start_waiting
from sessions_app.services.imports.lost import settle_lost_imports
from sessions_app.services.sign_in_store import forget_ended
from sessions_app.services.throttle import forget_old_failures
from sessions_app.services.turns import sweeping as turns

logger = structlog.get_logger(__name__)
_Found = TypeVar("_Found")

SWEEPER = system_actor("sweeper")
EVERY_S = 10
UNCLAIMED_S = 30
IMPORT_UNCLAIMED_S = 120
"""Longer than for compactions: imports wait for each other as a matter of course."""

INDEX_S = 2
"""So long a round may fill the search index: with what came before there was one, or otherwise than by an import."""

SPREAD_S = 2
"""So long a round may renew sessions whose policy changed above them."""

ORPHAN_S = 6 * 3_600
"""An upload that nobody knows is removed when nobody wrote to it for so long: longer than the import of a member of an archive takes."""

ORPHAN_LOOK_S = 3_600
"""So often each process looks for such uploads, and with its first round."""

AHEAD_S = 15  # no clock of ours is that much ahead of the database's
JUMP_S = 5  # more than two clocks differ within a round
QUIET_S = 300
"""A session that is said to be at work, but wrote nothing for so long, is idle."""


@dataclass(frozen=True)
class SweepReport:
    """How many rows each kind of sweep changed."""

    set_right: int = 0
    lost: int = 0
    requeued: int = 0
    started: int = 0
    expired: int = 0
    imports_failed: int = 0
    imports_taken_up: int = 0
    imports_requeued: int = 0
    uploads_removed: int = 0
    forks_removed: int = 0
    idled: int = 0
    turns_lost: int = 0
    turns_requeued: int = 0
    drafts_ended: int = 0
    flushes_lost: int = 0
    repairs_queued: int = 0
    indexed: int = 0
    policies_spread: int = 0
    sign_ins_ended: int = 0
    failures_forgotten: int = 0
    idempotency_keys_forgotten: int = 0
    heartbeats_forgotten: int = 0

    def words(self) -> str:
        """The report in one line."""
        found = [f"{getattr(self, field.name)} {field.name.replace('_', ' ')}" for field in fields(self) if getattr(self, field.name)]
        return ", ".join(found) or "nothing to do"


QUEUING = frozenset({"started", "requeued", "imports_requeued", "imports_taken_up", "turns_requeued", "repairs_queued"})
"""Steps after which a worker has to take something from the queue."""


def sweep(*, at_start: bool = False, is_served: bool = True) -> SweepReport:
    """One round. `at_start`: the queue of this process is new, so that whatever waits must be queued again at once.

    `is_served`: a worker takes what this process queues. Where none does, as in a command beside `up`, nothing is queued or taken
    from those who have one: what waits would count as queued, and so wait for ever.
    A step that fails is logged and holds up no other one. Raises `django.db.Error` where the database is away.
    """
    unclaimed_s = 0 if at_start else UNCLAIMED_S
    is_steady = _CLOCK.is_steady()
    steps: dict[str, Callable[[], int]] = {
        "set_right": _set_right,
        "lost": _end_lost,
        "expired": _end_expired,
        "started": _start_waiting,
        "requeued": lambda: _requeue(unclaimed_s),
        "imports_requeued": lambda: _requeue_imports(0 if at_start else IMPORT_UNCLAIMED_S),
        "uploads_removed": lambda: _remove_orphans() if _LOOKS_FOR_ORPHANS.is_due() else 0,
        "idled": _idle_quiet_sessions,
        "turns_lost": lambda: turns.end_lost(SWEEPER),
        "turns_requeued": lambda: turns.requeue(unclaimed_s),
        "drafts_ended": lambda: drafts.end_stale(actor=SWEEPER),
        "flushes_lost": memory_flush.end_lost,
        "repairs_queued": memory_flush.requeue_repairs,
        "indexed": lambda: search_index.index_lagging(for_s=INDEX_S),
        "policies_spread": lambda: policies.spread(for_s=SPREAD_S),
        "sign_ins_ended": forget_ended,
        "failures_forgotten": forget_old_failures,
        "idempotency_keys_forgotten": idempotency.forget_old,
        "heartbeats_forgotten": heartbeats.forget_old,
    }
    if is_steady:
        steps["forks_removed"] = lambda: forks.remove_left(actor=SWEEPER)
    settles = is_steady and is_served
    taken_up, failed = _tried("imports_taken_up", lambda: settle_lost_imports(SWEEPER) if settles else (0, 0), (0, 0))
    counts = {name: _tried(name, step, 0) for name, step in steps.items() if is_served or name not in QUEUING}
    return SweepReport(imports_taken_up=taken_up, imports_failed=failed, **counts)


def _tried(name: str, step: Callable[[], _Found], otherwise: _Found) -> _Found:
    try:
        return step()
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        logger.exception("sweep_step_failed", step=name)
        return otherwise


class _Occasion:
    """What comes again after a while, in this process."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._last: float | None = None

    def is_due(self) -> bool:
        now = time.monotonic()
        if self._last is not None and now - self._last < self._every_s:
            return False
        self._last = now
        return True


class _Clock:
    """Whether the database's clock went on as time did since the last look. After a jump, whoever is at work first says so again."""

    def __init__(self) -> None:
        self._last: tuple[datetime, float] | None = None

    def is_steady(self) -> bool:
        now, monotonic = database_time(), time.monotonic()
        last, self._last = self._last, (now, monotonic)
        return last is None or abs((now - last[0]).total_seconds() - (monotonic - last[1])) < JUMP_S


_CLOCK = _Clock()
_LOOKS_FOR_ORPHANS = _Occasion(ORPHAN_LOOK_S)


def _set_right() -> int:
    """Brings back what a clock that was ahead put into the future: nobody would look at it until then. Returns the rows."""
    latest = Now() + timedelta(seconds=AHEAD_S)
    rows = Lease.objects.filter(expires_at__gt=latest + timedelta(seconds=lease.LEASE_S))
    count = rows.update(expires_at=Now() + timedelta(seconds=lease.LEASE_S))
    count += Compaction.objects.filter(status=Status.REQUESTED, heartbeat_at__gt=latest).update(heartbeat_at=Now())
    count += turns.set_right(AHEAD_S)
    return count + ImportRun.objects.filter(state=ImportState.RUNNING, heartbeat_at__gt=latest).update(heartbeat_at=Now())


def _end_lost() -> int:
    return sum(end_lost(compaction_id, actor=SWEEPER) for compaction_id in list(lease.lapsed().values_list("pk", flat=True)))


def _waiting() -> list[tuple[uuid.UUID, uuid.UUID]]:
    rows = Compaction.objects.filter(status=Status.WAITING_FOR_IDLE).exclude(session__status__in=BUSY_STATUSES)
    return list(rows.values_list("pk", "session_id"))


def _end_expired() -> int:
    rows = Compaction.objects.filter(status=Status.WAITING_FOR_IDLE, deadline_at__lte=Now())
    return sum(end(compaction_id, NEVER_IDLE, actor=SWEEPER) for compaction_id in list(rows.values_list("pk", flat=True)))


def _start_waiting() -> int:
    return sum(start_waiting(compaction_id, session_id, actor=SWEEPER) for compaction_id, session_id in _waiting())


def _requeue(unclaimed_s: int) -> int:
    """Queues requested attempts again that no worker has claimed; a task that comes twice does nothing the second time."""
    old = Q(status=Status.REQUESTED, heartbeat_at__lte=Now() - timedelta(seconds=unclaimed_s))
    count = 0
    for compaction_id in list(Compaction.objects.filter(old).values_list("pk", flat=True)):
        with transaction.atomic():
            if Compaction.objects.filter(old, pk=compaction_id).update(heartbeat_at=Now()):
                queue.enqueue(queue.RUN_COMPACTION, str(compaction_id))
                count += 1
    return count


def _requeue_imports(unclaimed_s: int) -> int:
    """The same for imports. A queued one has no heartbeat but the times at which it was queued again."""
    rows = ImportRun.objects.annotate(last_queued=Coalesce("heartbeat_at", "requested_at"))
    old = rows.filter(state=ImportState.QUEUED, last_queued__lte=Now() - timedelta(seconds=unclaimed_s))
    count = 0
    for run_id in list(old.values_list("pk", flat=True)):
        with transaction.atomic():
            if old.filter(pk=run_id).update(heartbeat_at=Now()):
                queue.enqueue(queue.IMPORT_SESSIONS, str(run_id))
                count += 1
    return count


def _remove_orphans() -> int:
    """Removes what a process that was killed left among the uploads. By its name: the folder may be called otherwise elsewhere."""
    folder = Path(settings.DATA_DIR) / "uploads"
    waiting = ImportRun.objects.filter(state__in=(ImportState.QUEUED, ImportState.RUNNING)).values_list("staged_path", flat=True)
    known = {Path(path).name for path in waiting}
    count = 0
    for file in folder.iterdir() if folder.is_dir() else ():
        with suppress(OSError):
            if file.name not in known and time.time() - file.stat().st_mtime > ORPHAN_S:
                file.unlink()
                count += 1
    return count


def _idle_quiet_sessions() -> int:
    past, future = Q(last_activity_at__lte=Now() - timedelta(seconds=QUIET_S)), Q(last_activity_at__gt=Now() + timedelta(seconds=QUIET_S))
    # A time that is still to come was written by a clock that was ahead. A turn of our own is no guess: its lease says whether it runs.
    quiet = Q(past | future, status=SessionStatus.WORKING) & ~Q(kind=SessionKind.INLINE)
    count = 0
    for session_id in list(Session.objects.filter(quiet).values_list("pk", flat=True)):
        with transaction.atomic():
            if not Session.objects.filter(quiet, pk=session_id).update(status=SessionStatus.IDLE):
                continue
            log.append(
                log.session_stream(session_id),
                EventType.SESSION_STATUS_CHANGED,
                actor=SWEEPER,
                target=("session", str(session_id)),
                before={"status": SessionStatus.WORKING.value},
                after={"status": SessionStatus.IDLE.value},
                reason="no activity",
            )
            count += 1
    return count
