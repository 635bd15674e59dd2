"""Running one attempt: claim, drive the engine, store what it says, and end in exactly one status."""

import uuid
from collections.abc import Callable, Generator
from datetime import timedelta
from typing import NamedTuple

import msgspec
import structlog
from django.db import DatabaseError, transaction
from django.db.models.functions import Now

from sessions_app.engine.attempt import run as engine_run
from sessions_app.engine.policy import Policy
from sessions_app.engine.steps import ChunkSummarised, Commit, Ended, PhaseStarted, Planned, Result, Step, Stop, Stopped, Verified
from sessions_app.engine.terms import Outcome, Phase, SkipReason, Status
from sessions_app.events.types import EventType
from sessions_app.models import Compaction
from sessions_app.selectors import plans
from sessions_app.selectors.prefixes import prefix_hash_before
from sessions_app.services.compactions import drafts, emergencies, forwards, lease
from sessions_app.services.compactions.commit import InForce, commit
from sessions_app.services.compactions.endings import CANCELLED, TIMED_OUT, WORKER_LOST, end
from sessions_app.services.compactions.keeper import Keeper
from sessions_app.services.compactions.lease import Claim, LeaseLost
from sessions_app.services.compactions.progress import Progress
from sessions_app.services.compactions.recount import count_view
from sessions_app.services.compactions.step_events import OBSERVED, STARTED, append_step
from sessions_app.services.compactions.task import task_of
from sessions_app.services.memory_beside import FlushBeside

logger = structlog.get_logger(__name__)

RESCUE_S = 60
"""How long a view for the turn of a failed attempt is looked for."""


def run_compaction(compaction_id: uuid.UUID, *, must_end: Callable[[], bool] = lambda: False) -> Commit | None:
    """Runs a requested attempt to its end. Does nothing when it can't be claimed: it runs, or it is over.

    `must_end` says that this process is about to end, and the attempt with it. Never raises for what goes wrong
    inside the attempt: that is its outcome, stored on its row. Where an attempt fails whose turn can't go on with the view
    as it is, a trimmed view is returned for that one request; nothing of it is stored.
    """
    held = _claim(compaction_id)
    if held is None:
        return None
    try:
        compaction = Compaction.objects.select_related("session").get(pk=compaction_id)
        policy = msgspec.convert(compaction.policy["values"], Policy)
        progress = Progress(held, policy.heartbeat_s)
        with Keeper(held, progress.tick, must_end) as keeper:
            ended = _outcome(held, compaction, policy, progress, keeper)
    except Exception as error:
        logger.exception("compaction_failed", compaction=str(compaction_id))
        ended = _unforeseen(error)
    if ended is None:
        return None
    trimmed = _rescued(held, must_end) if emergencies.may_rescue(ended) else None
    if trimmed is not None and emergencies.end_with(compaction_id, ended, trimmed, token=held.token):
        return trimmed
    # Skipped for an unsafe receipt, an attempt has cost a flush, and the next turn would ask for another: that is a failure to rest from.
    counts_as = Outcome.FAILED if ended.reason == SkipReason.UNSAFE_FLUSH_RECEIPT else None
    if not end(compaction_id, ended, token=held.token, counts_as=counts_as):
        logger.warning("compaction_not_ours_any_more", compaction=str(compaction_id), status=ended.status)
    return None


def _rescued(held: Claim, must_end: Callable[[], bool]) -> Commit | None:
    """What the turn of a failed attempt is served from, if that is found in time. A cancel or the end of the process ends the search."""
    try:
        lease.write(held, deadline_at=Now() + timedelta(seconds=RESCUE_S))
        with Keeper(held, lambda: None, must_end) as keeper:
            return emergencies.rescue(held.compaction_id, keeper.should_stop)
    except (LeaseLost, DatabaseError):
        return None  # whoever ended it meanwhile, or the sweep, has the last word


def _claim(compaction_id: uuid.UUID) -> Claim | None:
    with transaction.atomic():
        held = lease.claim(compaction_id)
        if held is not None:
            append_step(compaction_id, EventType.COMPACTION_TRIGGERED, status=STARTED)
    return held


class _Running(NamedTuple):
    """An attempt that is being run."""

    held: Claim
    compaction: Compaction
    policy: Policy
    progress: Progress
    keeper: Keeper
    flush: FlushBeside


def _outcome(held: Claim, compaction: Compaction, policy: Policy, progress: Progress, keeper: Keeper) -> Ended | None:
    """How the attempt ends without a checkpoint; None when it is committed, or somebody else's."""
    with FlushBeside(compaction, policy) as flush:
        try:
            ended = _attempt(_Running(held, compaction, policy, progress, keeper, flush))
        except Stopped as stopped:
            ended = _stopped(stopped.stop, keeper)
        except LeaseLost:
            ended = _stopped(Stop.LEASE_LOST, keeper)
        if ended is not None and ended.outcome is Outcome.CANCELLED:
            flush.cancel()
        return ended


def _attempt(running: _Running) -> Ended | None:
    """The same; raises `Stopped` and `LeaseLost`."""
    held, compaction, policy, keeper = running.held, running.compaction, running.policy, running.keeper
    if (answered := forwards.through_runner(held, compaction, keeper)) is not forwards.OURS:
        return answered
    in_force = InForce.of(compaction.session)
    shapes = count_view(held, compaction.session, plans.load_shapes(held.session_id), policy, keeper.should_stop)
    result = _drive(engine_run(task_of(compaction, shapes, policy), should_stop=keeper.should_stop), running)
    running.progress.flush()
    if isinstance(result, Ended):
        return result
    running.flush.offer(result)
    if (stop := keeper.should_stop()) is not None:
        ended = _stopped(stop, keeper)
    else:
        finish = drafts.store if drafts.is_reviewed(compaction, policy) else commit
        ended = finish(held, result, in_force, [shape.index for shape in shapes if shape.off_branch])
    # What was tried was paid for, also where nothing of it is used.
    return msgspec.structs.replace(ended, rungs=result.rungs, tried=result.tried) if ended else None


def _unforeseen(error: Exception) -> Ended:
    if isinstance(error, plans.BrokenPlan):
        return Ended(status=Status.FAILED, outcome=Outcome.FAILED, reason=error.reason, explanation=str(error))
    return Ended(
        status=Status.FAILED,
        outcome=Outcome.FAILED,
        reason=type(error).__name__,
        explanation=f"It failed on something unforeseen ({type(error).__name__}; the log says where). Nothing was changed. Try again.",
    )


def _stopped(stop: Stop | None, keeper: Keeper) -> Ended | None:
    if stop is Stop.LEASE_LOST:
        return WORKER_LOST if keeper.is_interrupted else None
    return TIMED_OUT if stop is Stop.TIMED_OUT else CANCELLED


def _drive(steps: Generator[Step, None, Result], running: _Running) -> Result:
    """Takes the engine's steps one by one and writes each down; returns what it ends with. The flush begins with the first plan."""
    progress, flush, is_planned = running.progress, running.flush, False
    progress.start_phase(Phase.PLAN)
    while True:
        try:
            step = next(steps)
        except StopIteration as finished:
            result: Commit | Ended = finished.value
            return result
        match step:
            case PhaseStarted():
                progress.start_phase(step.phase)
            case Planned():
                prefix_hash = prefix_hash_before(running.held.session_id, step.boundary_index)
                progress.plan(step, prefix_hash=prefix_hash, deadline_s=running.policy.total_timeout(step.chunk_count))
                if not is_planned:
                    is_planned = True
                    flush.begin(step, prefix_hash)
                    if (refused := flush.refusal(running.keeper.should_stop)) is not None:
                        return refused
            case ChunkSummarised():
                progress.finish_chunk(step)
            case Verified():
                _store_verified(running.held, step, progress)


def _store_verified(held: Claim, verified: Verified, progress: Progress) -> None:
    progress.flush()
    with transaction.atomic():
        lease.write(
            held,
            phase=Phase.VERIFY,
            tokens_after=verified.tokens_after,
            warnings=list(verified.warnings),
            coverage_status=verified.coverage_status,
        )
        append_step(held.compaction_id, EventType.COMPACTION_SUMMARY_VERIFIED, status=OBSERVED, source=verified.source)
