"""The thread beside what a worker runs: keeps its lease, and learns of cancel, deadline and shutdown."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Self

import structlog
from django.db import DatabaseError, InterfaceError, connection
from django.db.models import BooleanField, ExpressionWrapper, Q
from django.db.models.functions import Now

from sessions_app.engine.steps import Stop
from sessions_app.models import Compaction
from sessions_app.services.compactions import lease
from sessions_app.services.compactions.lease import Claim

logger = structlog.get_logger(__name__)

POLL_S = 0.25
"""How often the row is asked: cancel and deadline must take effect within a second."""

_running: set["KeeperThread"] = set()
_running_lock = threading.Lock()


class KeeperThread(ABC):
    """Holds a claim while its work runs; `should_stop` is what that asks.

    `on_tick` runs in the keeper's thread at every look, so that progress appears while the work itself is silent.
    `must_end` says that this process is about to end: what was claimed as the end began has no keeper yet which
    `interrupt_all` could find.
    """

    def __init__(self, name: str, on_tick: Callable[[], None], must_end: Callable[[], bool]) -> None:
        self.is_interrupted = False
        self._name = name
        self._on_tick = on_tick
        self._must_end = must_end
        self._stop: Stop | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._keep, name=f"keeper-{name}", daemon=True)

    @abstractmethod
    def give_up(self) -> None:
        """Lets the lease lapse now."""

    @abstractmethod
    def _renew(self) -> bool:
        """Prolongs the lease; False when it is lost."""

    @abstractmethod
    def _look(self) -> Stop | None:
        """Whether the row says to stop."""

    def __enter__(self) -> Self:
        with _running_lock:
            _running.add(self)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._closing.set()
        self._thread.join()
        with _running_lock:
            _running.discard(self)

    def should_stop(self) -> Stop | None:
        if self._stop is None and self._must_end():
            self.interrupt()
        return self._stop

    def interrupt(self) -> None:
        """Stops the attempt because this process is about to end."""
        self.is_interrupted = True
        self._stop = self._stop or Stop.LEASE_LOST

    def _keep(self) -> None:
        renewed = time.monotonic()
        try:
            while not self._closing.wait(POLL_S):
                try:
                    self._stop = self._stop or self._look()
                    if time.monotonic() - renewed >= lease.RENEW_S:
                        renewed = time.monotonic()
                        if not self._renew():
                            self._stop = self._stop or Stop.LEASE_LOST
                    self._on_tick()
                except lease.LeaseLost:
                    self._stop = self._stop or Stop.LEASE_LOST
                except Exception as failure:
                    # Whatever it is: a keeper that is gone would leave its attempt deaf to cancel and deadline. The next
                    # look, on a new connection, may succeed; if none does, the lease lapses, and with it the right to write.
                    is_expected = isinstance(failure, DatabaseError | InterfaceError)
                    logger.warning(
                        "keeper_failed",
                        work=self._name,
                        error=type(failure).__name__,
                        exc_info=not is_expected,
                    )
                    connection.close()
        finally:
            connection.close()


class Keeper(KeeperThread):
    """Holds the claim of an attempt while it runs."""

    def __init__(self, held: Claim, on_tick: Callable[[], None], must_end: Callable[[], bool]) -> None:
        super().__init__(str(held.compaction_id), on_tick, must_end)
        self.held = held

    def give_up(self) -> None:
        lease.give_up(self.held)

    def _renew(self) -> bool:
        return lease.renew(self.held)

    def _look(self) -> Stop | None:
        rows = Compaction.objects.filter(pk=self.held.compaction_id, lease_token=self.held.token)
        late = ExpressionWrapper(Q(deadline_at__lte=Now()), output_field=BooleanField())
        row = rows.annotate(is_late=late).values_list("cancel_requested", "is_late").first()
        if row is None:
            return Stop.LEASE_LOST
        cancelled, is_late = row
        if cancelled:
            return Stop.CANCELLED
        return Stop.TIMED_OUT if is_late else None


def interrupt_all(grace_s: float) -> None:
    """Stops everything that keepers of this process stand beside, and waits up to `grace_s` seconds for their ends.

    What has not ended by then loses its lease, so that the sweep of the next start ends it at once.
    """
    with _running_lock:
        keepers = list(_running)
    for keeper in keepers:
        keeper.interrupt()
    until = time.monotonic() + grace_s
    while _running and time.monotonic() < until:
        time.sleep(0.02)
    with _running_lock:
        left = list(_running)
    for keeper in left:
        keeper.give_up()
