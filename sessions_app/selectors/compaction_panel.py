"""The panel of a session's running compaction, or of the one that ended a short while ago."""

import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from django.db.models import F, Q

from sessions_app.engine.policy import Policy
from sessions_app.engine.terms import OPEN_STATUSES, Lineage, Outcome, Phase, Status
from sessions_app.models import Compaction
from sessions_app.selectors.history import duration_s
from sessions_app.selectors.retention import RetentionReport, report_of
from sessions_app.selectors.session_page import current_chunk, percent_done

SHOWN_AFTER_END = timedelta(hours=1)
PHASES = tuple(Phase)
SIGNS_MISSED = 2.5
"""A sign of life may come late; when the second in a row is due and not there, something is wrong."""

GOOD = frozenset({Outcome.COMMITTED, Outcome.TRIMMED})
NEUTRAL = frozenset({Outcome.SKIPPED, Outcome.CANCELLED})
DOUBTFUL = frozenset({Outcome.STALE, Outcome.EMERGENCY})


@dataclass(frozen=True)
class PhaseStep:
    """One phase. `state`: done, now or to come."""

    name: str
    state: str
    note: str = ""

    @property
    def words(self) -> str:
        """What stands under a phase that has no note."""
        return {"done": "done", "now": "under way"}.get(self.state, self.state)


@dataclass(frozen=True)
class CompactionPanel:
    """An attempt as its panel shows it; nothing depends on who looks."""

    session_id: uuid.UUID
    id: uuid.UUID
    attempt: int
    generation: int | None
    is_open: bool
    is_waiting: bool
    is_cancelling: bool
    status: str
    phase: str
    steps: tuple[PhaseStep, ...]
    chunk_index: int
    current_chunk: int
    chunk_count: int
    progress: int
    since: datetime
    until: datetime | None
    trigger: str
    requested_by: str
    outcome: str
    tone: str
    reason: str
    explanation: str
    tokens_before: int | None
    before_scope: str
    before_origin: str
    tokens_after: int | None
    after_scope: str
    after_origin: str
    scopes_match: bool
    duration_s: float | None
    entries_folded: int
    entries_kept: int
    summariser: str
    summary_source: str
    warnings: tuple[str, ...]
    last_sign_at: datetime | None = None  # of the worker that runs it
    silent_after_s: float = 0  # so long after it none is a bad sign
    is_in_force: bool = True
    revert_to: int = 0  # the generation that was in force before; 0 for the whole history
    report: RetentionReport | None = None
    waits_for: str = ""  # what the session's runner owes: its answer, or the report of an operation

    @property
    def is_draft(self) -> bool:
        """Whether it waits for somebody to commit or discard it."""
        return self.status == Status.DRAFTED

    @property
    def is_silent(self) -> bool:
        """Whether its worker, which tells now and then that it is there, has not done so for long."""
        return self.last_sign_at is not None and (datetime.now(UTC) - self.last_sign_at).total_seconds() > self.silent_after_s

    @property
    def limit_s(self) -> float | None:
        """How long the attempt may take in all, in seconds."""
        return (self.until - self.since).total_seconds() if self.until else None


_OURS = Q(lineage=Lineage.CONSOLE) | Q(forwarded_at__isnull=False)
"""Attempts that were asked for here, also those that a runner carried out."""


def panel(session_id: uuid.UUID | str) -> CompactionPanel | None:
    """The open attempt of a session, else the last that ended within the hour; one query over one session's attempts."""
    attempts = Compaction.objects.filter(_OURS, session_id=session_id).defer("summary", "policy", "mechanical_state")
    attempts = attempts.select_related("parent").defer("parent__summary", "parent__policy", "parent__mechanical_state", "parent__retention")
    attempts = attempts.annotate(in_force=F("session__active_console_id"), heartbeat_s=F("policy__values__heartbeat_s"))
    last = attempts.order_by("-attempt").first()
    if last is None:
        return None
    is_over = not last.is_open and last.status != Status.DRAFTED
    if is_over and (last.finished_at is None or last.finished_at < datetime.now(UTC) - SHOWN_AFTER_END):
        return None
    return replace(panel_of(last), is_in_force=last.in_force == last.pk, report=report_of(last))


def panel_of(compaction: Compaction) -> CompactionPanel:
    """The panel of one attempt; no query."""
    return CompactionPanel(
        session_id=compaction.session_id,
        id=compaction.pk,
        revert_to=(compaction.parent.generation or 0) if compaction.parent else 0,
        attempt=compaction.attempt,
        generation=compaction.generation,
        is_open=compaction.is_open,
        is_waiting=compaction.status == Status.WAITING_FOR_IDLE,
        is_cancelling=compaction.is_open and compaction.cancel_requested,
        status=compaction.status,
        phase=compaction.phase,
        steps=_steps(compaction),
        chunk_index=compaction.chunk_index,
        current_chunk=current_chunk(compaction),
        chunk_count=compaction.chunk_count,
        progress=percent_done(compaction),
        since=compaction.started_at or compaction.requested_at,
        until=compaction.deadline_at,
        trigger=compaction.trigger,
        requested_by=compaction.requested_by,
        outcome=compaction.outcome,
        tone=tone_of(compaction.outcome),
        reason=compaction.reason,
        explanation=compaction.explanation,
        tokens_before=compaction.tokens_before,
        before_scope=compaction.tokens_before_scope,
        before_origin=compaction.tokens_before_origin,
        tokens_after=compaction.tokens_after,
        after_scope=compaction.tokens_after_scope,
        after_origin=compaction.tokens_after_origin,
        scopes_match=bool(compaction.tokens_before_scope) and compaction.tokens_before_scope == compaction.tokens_after_scope,
        duration_s=duration_s(compaction),
        entries_folded=compaction.entries_folded,
        entries_kept=compaction.entries_kept,
        summariser=compaction.summariser,
        summary_source=compaction.summary_source,
        warnings=tuple(str(warning) for warning in compaction.warnings),
        waits_for=_waits_for(compaction),
        last_sign_at=compaction.heartbeat_at if compaction.status == Status.RUNNING and not compaction.operation_id else None,
        silent_after_s=SIGNS_MISSED * (getattr(compaction, "heartbeat_s", None) or Policy().heartbeat_s),
    )


def _waits_for(compaction: Compaction) -> str:
    if compaction.status != Status.RUNNING or compaction.forwarded_at is None:
        return ""
    if compaction.operation_id:
        return "report"
    return "answer" if compaction.runner_answer is None else ""


def tone_of(outcome: str) -> str:
    """`good`, `bad`, `warn`, or empty for what is neither success nor error."""
    if outcome in GOOD:
        return "good"
    if outcome in NEUTRAL or not outcome:
        return ""
    return "warn" if outcome in DOUBTFUL else "bad"


def _steps(compaction: Compaction) -> tuple[PhaseStep, ...]:
    now = PHASES.index(Phase(compaction.phase)) if compaction.phase else -1
    if compaction.status in OPEN_STATUSES and compaction.status != Status.RUNNING:
        now = -1
    notes = {
        Phase.LEASE: "taken" if now >= 0 else "",
        Phase.PLAN: _plan_note(compaction),
        Phase.SUMMARISE: _chunk_note(compaction),
    }
    return tuple(
        PhaseStep(
            name=phase.value.capitalize(),
            state="done" if place < now else "now" if place == now else "to come",
            note=notes.get(phase, "") if place <= now else "",
        )
        for place, phase in enumerate(PHASES)
    )


def _plan_note(compaction: Compaction) -> str:
    if compaction.boundary_index is None or not compaction.entries_folded:
        return ""
    return f"boundary {compaction.boundary_index:,}, {compaction.entries_folded:,} entries"


def _chunk_note(compaction: Compaction) -> str:
    if not compaction.chunk_count:
        return ""
    return f"chunk {current_chunk(compaction)} of {compaction.chunk_count}"
