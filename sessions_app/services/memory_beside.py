"""The flush beside an attempt: a thread of its own, which the attempt waits for under `block` alone, and for so long at most."""

import atexit
import os
import threading
import time
from types import TracebackType
from typing import Self

import msgspec
import structlog
from django.db import connection

from sessions_app.engine.flush import Receipt, is_acceptable, safety_of, status_of
from sessions_app.engine.policy import Policy
from sessions_app.engine.state import MechanicalState
from sessions_app.engine.steps import Commit, Ended, Planned, ShouldStop, Stop, Stopped
from sessions_app.engine.terms import FlushMode, Outcome, SkipReason, Status
from sessions_app.models import Compaction
from sessions_app.services import memory_flush
from sessions_app.services.memory_extraction import FlushTask
from sessions_app.services.memory_flush import FlushClaim, carry_out

logger = structlog.get_logger(__name__)

LOOK_S = 0.1
HAND_OVER_S = 20.0
"""So long a flush waits for what its attempt reads anyway; then it reads by itself."""

LAST_S = 2.0
"""How long the end of the process waits for flushes."""

_running: set["_FlushThread"] = set()
_changed = threading.Condition()


class FlushBeside:
    """The flush of one attempt. Nothing that goes wrong in it is raised here; where the policy wants none, all of this does nothing."""

    def __init__(self, compaction: Compaction, policy: Policy) -> None:
        self._compaction = compaction
        self._policy = policy
        self._span: tuple[int, bytes] | None = None  # the last entry that leaves the view, and the hash up to it
        self._task: FlushTask | None = None
        self._thread: _FlushThread | None = None
        self._has_failed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._thread is not None:
            self._thread.offer(None)

    def begin(self, planned: Planned, prefix_hash: bytes) -> None:
        """Starts it, once the plan says which entries leave the view."""
        if not memory_flush.is_enabled(self._policy) or not planned.entries_folded:
            return
        self._span = (planned.boundary_index - 1, prefix_hash)
        try:
            if not self._start() and self._task is not None and not self._is_awaited:
                memory_flush.drop(self._task)
        except Exception:
            logger.exception("memory_flush_not_begun", compaction=str(self._compaction.pk))
            self._has_failed = True

    def refusal(self, should_stop: ShouldStop) -> Ended | None:
        """Under `block`, how the attempt ends where no acceptable receipt comes in time; None where it may go on. Raises `Stopped`."""
        if not self._is_awaited:
            return None
        receipt = None
        try:
            receipt = None if self._has_failed else self._wait(should_stop)
        except Stopped:
            raise
        except Exception:
            logger.exception("memory_flush_not_begun", compaction=str(self._compaction.pk))
            self._has_failed = True
        if not self._has_failed and (self._task is None or is_acceptable(receipt)):
            return None
        what = "no receipt came in time" if receipt is None else status_of(receipt).replace("_", " ")
        words = (
            f"Its policy compacts only once what is worth keeping is safe in the project's memory, and it is not: {what}. Nothing was "
            "changed. Repair the flush on the page Memory and compact again, wait longer, or set “Keep facts in memory” to protect."
        )
        logger.info("memory_flush_blocks", compaction=str(self._compaction.pk), safety=safety_of(receipt))
        return Ended(status=Status.SKIPPED, outcome=Outcome.SKIPPED, reason=SkipReason.UNSAFE_FLUSH_RECEIPT, explanation=words)

    def offer(self, made: Commit) -> None:
        """Hands over what the attempt knows of the entries, so that they are not read twice."""
        if self._thread is not None and made.mechanical_state:
            self._thread.offer(made.mechanical_state)

    def cancel(self) -> None:
        """Calls it off: nothing leaves the view, so nothing has to be kept now."""
        if self._thread is not None:
            self._thread.cancel()

    @property
    def _is_awaited(self) -> bool:
        return memory_flush.is_enabled(self._policy) and self._policy.flush_mode is FlushMode.BLOCK

    def _start(self) -> bool:
        """Begins it, unless nothing has to be kept (then there is no task), or another one of the session is under way."""
        self._task = self._due()
        held = memory_flush.begin(self._task) if self._task else None
        if held is None:
            self._task = self._due()  # another one may have covered it meanwhile
            return False
        self._thread = _FlushThread(held)
        if self._is_awaited:
            self._thread.offer(None)  # the attempt waits for it, and so will know nothing before
        start(self._thread)
        return True

    def _due(self) -> FlushTask | None:
        assert self._span is not None
        last, prefix_hash = self._span
        return memory_flush.task_of(self._compaction, self._policy, last=last, prefix_hash=prefix_hash)

    def _wait(self, should_stop: ShouldStop) -> Receipt | None:
        """The receipt, or None where it does not come in time. One that is under way already is let end first."""
        until = time.monotonic() + self._policy.flush_timeout_s
        while self._task is not None:
            if (stop := should_stop()) is not None:
                raise Stopped(stop)
            if self._thread is not None and self._thread.ended.wait(LOOK_S):
                return self._thread.receipt
            if time.monotonic() >= until:
                return memory_flush.drop(self._task) if self._thread is None else None
            if self._thread is None and not self._start():
                time.sleep(LOOK_S)
        return None


class _FlushThread(threading.Thread):
    """Carries one flush out. A daemon: one that a process takes along with it is found by the sweep, and repaired."""

    def __init__(self, held: FlushClaim) -> None:
        super().__init__(name=f"memory-{held.task.compaction_id}", daemon=True)
        self.receipt: Receipt | None = None
        self.ended = threading.Event()
        self.held = held
        self._offered: dict[str, object] | None = None
        self._has_offer = threading.Event()
        self._is_cancelled = threading.Event()
        self._until = time.monotonic() + held.task.policy.flush_background_timeout_s

    def offer(self, state: dict[str, object] | None) -> None:
        """What the attempt knows; None: it will know nothing. The first word counts."""
        if not self._has_offer.is_set():
            self._offered = state
            self._has_offer.set()

    def cancel(self) -> None:
        self._is_cancelled.set()
        self._has_offer.set()

    def run(self) -> None:
        try:
            self.receipt = carry_out(self.held, self._state, self._should_stop)
        except Exception:
            logger.exception("memory_flush_lost", compaction=str(self.held.task.compaction_id))
        finally:
            connection.close()
            self.ended.set()
            with _changed:
                _running.discard(self)
                _changed.notify_all()

    def _state(self) -> MechanicalState | None:
        self._has_offer.wait(min(HAND_OVER_S, self.held.task.policy.flush_background_timeout_s / 2))
        return msgspec.convert(self._offered, MechanicalState) if self._offered else None

    def _should_stop(self) -> Stop | None:
        if self._is_cancelled.is_set():
            return Stop.CANCELLED
        return Stop.TIMED_OUT if time.monotonic() >= self._until else None


def start(thread: _FlushThread) -> None:
    """Lets it run."""
    with _changed:
        _running.add(thread)
    thread.start()


def wait_for_all(timeout_s: float = 10.0) -> bool:
    """Waits until no flush of this process runs any more. False: that took too long."""
    with _changed:
        return _changed.wait_for(lambda: not _running, timeout_s)


def _start_anew() -> None:
    """After a fork: threads do not come along, and the lock may be held by one of them."""
    global _running, _changed
    _running, _changed = set(), threading.Condition()


def end_with_process() -> None:
    """Lets flushes end; what has not ended by then is given up, so that the next sweep need not wait for its time to be over."""
    if wait_for_all(LAST_S):
        return
    with _changed:
        left = [thread.held for thread in _running]
    try:
        memory_flush.give_up(left)
    except Exception:
        logger.exception("memory_flush_not_given_up")
    finally:
        connection.close()


os.register_at_fork(after_in_child=_start_anew)
atexit.register(end_with_process)
