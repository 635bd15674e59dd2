"""Running one attempt: claim, drive the engine, store what it says, and end in exactly one status."""

import uuid
from collections.abc import Callable, Generator, Sequence

import msgspec
import structlog
from django.db import transaction

from sessions_app.engine.policy import Policy
from sessions_app.engine.run import Task
from sessions_app.engine.run import run as engine_run
from sessions_app.engine.shapes import EntryShape
from sessions_app.engine.steps import ChunkSummarised, Commit, Ended, PhaseStarted, Planned, Result, Step, Stop, Stopped, Verified
from sessions_app.engine.terms import Outcome, Phase, Status, Trigger
from sessions_app.events.types import EventType
from sessions_app.models import Compaction, Session
from sessions_app.providers.registry import summarisers_for
from sessions_app.selectors import plans
from sessions_app.selectors.prefixes import prefix_hash_before
from sessions_app.services.compactions import drafts, lease
from sessions_app.services.compactions.commit import InForce, commit
from sessions_app.services.compactions.endings import CANCELLED, TIMED_OUT, WORKER_LOST, end
from sessions_app.services.compactions.keeper import Keeper
from sessions_app.services.compactions.lease import Claim, LeaseLost
from sessions_app.services.compactions.progress import Progress
from sessions_app.services.compactions.step_events import append_step

logger = structlog.get_logger(__name__)


def run_compaction(compaction_id: uuid.UUID, *, must_end: Callable[[], bool] = lambda: False) -> None:
    """Runs a requested attempt to its end. Does nothing when it can't be claimed: it runs, or it is over.

    `must_end` says that this process is about to end, and the attempt with it. Never raises for what goes wrong
    inside the attempt: that is its outcome, stored on its row.
    """
    held = _claim(compaction_id)
    if held is None:
        return
    try:
        compaction = Compaction.objects.select_related("session").get(pk=compaction_id)
        policy = msgspec.convert(compaction.policy["values"], Policy)
        progress = Progress(held, policy.heartbeat_s)
        with Keeper(held, progress.tick, must_end) as keeper:
            ended = _outcome(held, compaction, policy, progress, keeper)
    except Exception as error:
        logger.exception("compaction_failed", compaction=str(compaction_id))
        ended = _unforeseen(error)
    if ended is not None and not end(compaction_id, ended, token=held.token):
        logger.warning("compaction_not_ours_any_more", compaction=str(compaction_id), status=ended.status)


def _claim(compaction_id: uuid.UUID) -> Claim | None:
    with transaction.atomic():
        held = lease.claim(compaction_id)
        if held is not None:
            append_step(compaction_id, EventType.COMPACTION_TRIGGERED, status="started")
    return held


def _outcome(held: Claim, compaction: Compaction, policy: Policy, progress: Progress, keeper: Keeper) -> Ended | None:
    """How the attempt ends without a checkpoint; None when it is committed, or somebody else's."""
    in_force = InForce.of(compaction.session)
    try:
        shapes = plans.load_shapes(held.session_id)
        result = _drive(_steps(compaction, shapes, policy, keeper), held, policy, progress)
        progress.flush()
        if isinstance(result, Ended):
            return result
        if keeper.should_stop():
            return _stopped(keeper.should_stop(), keeper)
        off_branch = [shape.index for shape in shapes if shape.off_branch]
        finish = drafts.store if drafts.is_reviewed(compaction, policy) else commit
        return finish(held, result, in_force, off_branch)
    except Stopped as stopped:
        return _stopped(stopped.stop, keeper)
    except LeaseLost:
        return _stopped(Stop.LEASE_LOST, keeper)


def _unforeseen(error: Exception) -> Ended:
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


def _steps(compaction: Compaction, shapes: Sequence[EntryShape], policy: Policy, keeper: Keeper) -> Generator[Step, None, Result]:
    session: Session = compaction.session
    task = Task(
        shapes=shapes,
        load=lambda first, last: plans.load_entries(session.pk, first, last),
        chain=plans.load_chain(session),
        previous_summary=InForce.of(session).summary(),
        policy=policy,
        window=session.window,
        signal_tokens=session.signal_tokens or 0,
        summarisers=summarisers_for(policy),
        trigger=Trigger(compaction.trigger),
        instructions=compaction.instructions,
        force=compaction.force,
        boundary=compaction.boundary_index,
    )
    return engine_run(task, should_stop=keeper.should_stop)


def _drive(steps: Generator[Step, None, Result], held: Claim, policy: Policy, progress: Progress) -> Result:
    """Takes the engine's steps one by one and writes each down; returns what it ends with."""
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
                prefix_hash = prefix_hash_before(held.session_id, step.boundary_index)
                progress.plan(step, prefix_hash=prefix_hash, deadline_s=policy.total_timeout(step.chunk_count))
            case ChunkSummarised():
                progress.finish_chunk(step)
            case Verified():
                _store_verified(held, step, progress)


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
        append_step(held.compaction_id, EventType.COMPACTION_SUMMARY_VERIFIED, status="observed")
