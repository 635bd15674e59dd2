"""What a running attempt writes down as it goes: columns and events, at most four a second, never losing the last."""

import threading
import time
from enum import StrEnum

from django.db import transaction
from django.db.models.functions import Now

from sessions_app.engine.steps import ChunkSummarised, Planned
from sessions_app.engine.terms import Phase
from sessions_app.events.types import EventType
from sessions_app.models import Compaction
from sessions_app.services.compactions import lease
from sessions_app.services.compactions.lease import Claim
from sessions_app.services.compactions.step_events import append_heartbeat, append_step

MIN_GAP_S = 0.25


class _Note(StrEnum):
    """What is waiting to be told. A finished chunk outranks the start of a phase: it says more."""

    PHASE = "phase"
    CHUNK = "chunk"


class Progress:
    """Shared by the attempt's thread and its keeper: both tell, one at a time.

    Every method raises `LeaseLost` when the attempt is not this worker's any more.
    """

    def __init__(self, held: Claim, heartbeat_s: float) -> None:
        self._held = held
        self._heartbeat_s = heartbeat_s
        self._lock = threading.Lock()
        self._started = self._told = time.monotonic()
        self._phase = Phase.LEASE
        self._chunk: ChunkSummarised | None = None
        self._waiting: _Note | None = None

    def start_phase(self, phase: Phase) -> None:
        with self._lock:
            self._phase = phase
            self._waiting = self._waiting or _Note.PHASE
            self._tell_if_due()

    def plan(self, planned: Planned, *, prefix_hash: bytes, deadline_s: int) -> None:
        """Stores what the attempt is going to do, before the first call."""
        with self._lock:
            lease.write(
                self._held,
                boundary_index=planned.boundary_index,
                boundary_source_id=planned.boundary_source_id,
                prefix_hash=prefix_hash,
                entries_folded=planned.entries_folded,
                entries_kept=planned.entries_kept,
                tokens_before=planned.tokens_before,
                chunk_count=planned.chunk_count,
                deadline_at=lease.from_start(deadline_s),
            )

    def finish_chunk(self, chunk: ChunkSummarised) -> None:
        with self._lock:
            self._chunk = chunk
            self._waiting = _Note.CHUNK
            self._tell_if_due()

    def tick(self) -> None:
        """Tells what waits, or that the attempt is alive. For the keeper."""
        with self._lock:
            if self._waiting is None and time.monotonic() - self._told >= self._heartbeat_s:
                self._waiting = _Note.PHASE
            self._tell_if_due()

    def flush(self) -> None:
        """Tells a finished chunk that still waits: the step that follows must not overtake it."""
        with self._lock:
            if self._waiting is _Note.CHUNK:
                self._tell()
            self._waiting = None

    def _tell_if_due(self) -> None:
        if self._waiting is not None and time.monotonic() - self._told >= MIN_GAP_S:
            self._tell()

    def _tell(self) -> None:
        chunk = self._chunk
        counts = {"chunk_index": chunk.chunk_index, "chunk_count": chunk.chunk_count} if chunk else {}
        with transaction.atomic():
            lease.write(self._held, phase=self._phase, heartbeat_at=Now(), **counts)
            if chunk is not None and self._waiting is _Note.CHUNK:
                append_step(self._held.compaction_id, EventType.COMPACTION_CHUNK_SUMMARIZED, status="observed", source=chunk.source)
            else:
                compaction = Compaction.objects.get(pk=self._held.compaction_id)
                append_heartbeat(compaction, self._phase, time.monotonic() - self._started)
        self._waiting = None
        self._told = time.monotonic()
