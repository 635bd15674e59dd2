"""The step of an attempt that comes before ours where the session has a runner: the runner is asked first, and once.

That it is being asked is stored before anything is sent. Whatever happens to this process in between, the attempt then ends as
`unknown_outcome`, and nobody asks a second time by themselves.
"""

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import Literal

import structlog
from django.db import transaction
from django.db.models.functions import Now

from sessions_app.engine.steps import Ended, Stop, Stopped
from sessions_app.engine.terms import Lineage, Origin, Outcome, Scope, SkipReason, Status
from sessions_app.events import log
from sessions_app.events.types import EventType
from sessions_app.models import Compaction, EventResult, Runner, Session
from sessions_app.runners.base import COMPACT, CompactAnswer, Handling
from sessions_app.runners.errors import RunnerError, RunnerRefused, RunnerUnavailable, UnknownOutcome
from sessions_app.services.compactions import handled, lease, unknown
from sessions_app.services.compactions.keeper import Keeper
from sessions_app.services.compactions.lease import Claim, LeaseLost
from sessions_app.services.compactions.request import CONSOLE, CompactUnavailable, check_available
from sessions_app.services.compactions.step_events import WORKER
from sessions_app.services.runners import clients

logger = structlog.get_logger(__name__)

UNREACHABLE, REFUSED, UNAVAILABLE = "runner_unreachable", "runner_refused", "compact_unavailable"
"""Reasons of attempts that end as failed, beside `unknown_outcome`."""

REPORT_S = 900
"""How long a runner that took a compaction over may take to report its end."""

LOOK_S = 0.1


class Next(Enum):
    """What follows where the runner has not ended the attempt."""

    OURS = "ours"


OURS = Next.OURS
Forwarded = Ended | None | Literal[Next.OURS]
"""How the attempt ends; None where it has ended or is the runner's now; `OURS` where this console is to compact."""


def through_runner(held: Claim, compaction: Compaction, keeper: Keeper) -> Forwarded:
    """Asks the session's runner to compact, if it has one. Raises `LeaseLost`, and `Stopped` before anything is sent.

    200: the runner has done it. 202 with an operation: it will report. 204, or no runner: ours. Anything else ends the attempt.
    """
    session = compaction.session
    runner = session.runner
    if runner is None or compaction.through == CONSOLE:
        return OURS
    if (stop := keeper.should_stop()) is not None:
        raise Stopped(stop)  # nothing was sent yet
    _mark(held, runner)
    try:
        return _told_by(held, compaction, runner, keeper)
    except (LeaseLost, Stopped):
        raise
    except Exception:
        # From here on the runner may have been asked, so whatever broke on this side is no reason to say that nothing happened.
        logger.exception("forward_failed", compaction=str(held.compaction_id))
        return unknown.UNKNOWN


def _told_by(held: Claim, compaction: Compaction, runner: Runner, keeper: Keeper) -> Forwarded:
    """Sends it, and does what the answer says."""
    try:
        answer = asyncio.run(_asked(runner, compaction.session, keeper.should_stop))
    except RunnerError as error:
        return _failed(held, runner, error, keeper)
    clients.note(runner.pk)
    if answer.handling is Handling.CONSOLE:
        return _left_to_console(held, compaction, runner, answer)
    with transaction.atomic():
        Session.objects.select_for_update(no_key=True, of=("self",)).get(pk=held.session_id)
        _answered(held, runner, answer.status, operation_id=answer.operation_id or None)
        if answer.handling is Handling.PENDING:
            return handled.await_report(held, answer, REPORT_S)
        if answer.nothing_to_do:
            lease.write(held, lineage=Lineage.AGENT)
            return NOTHING_TO_DO
        handled.complete(held.compaction_id, token=held.token, columns=_columns(answer, runner, compaction))
    return None


NOTHING_TO_DO = Ended(
    status=Status.SKIPPED,
    outcome=Outcome.SKIPPED,
    reason=SkipReason.NOTHING_TO_FOLD,
    explanation="The runner says that there is nothing to compact.",
)


async def _asked(runner: Runner, session: Session, should_stop: Callable[[], Stop | None]) -> CompactAnswer:
    asking = asyncio.ensure_future(clients.client_of(runner).compact(clients.called(session)))
    return await _watched(asking, should_stop)


async def _watched(asking: "asyncio.Future[CompactAnswer]", should_stop: Callable[[], Stop | None]) -> CompactAnswer:
    """Its result; a stop closes the connection. What was sent by then may have been received. Raises `UnknownOutcome`."""
    while not asking.done():
        await asyncio.wait({asking}, timeout=LOOK_S)
        if not asking.done() and should_stop() is not None:
            asking.cancel()
            await asyncio.wait({asking})
            if asking.cancelled():
                raise UnknownOutcome("It was stopped while the runner was being asked.")
    return asking.result()


def _mark(held: Claim, runner: Runner) -> None:
    with transaction.atomic():
        lease.write(held, runner=runner, forwarded_at=Now())


def _failed(held: Claim, runner: Runner, error: RunnerError, keeper: Keeper) -> Ended | None:
    """How an attempt ends whose runner has not taken it. Nothing of ours runs in its place."""
    stop = keeper.should_stop()
    if stop is Stop.LEASE_LOST and not keeper.is_interrupted:
        return None  # somebody else has ended it, and said so
    if stop is None:
        clients.note(runner.pk, error)
    status = error.status if isinstance(error, RunnerRefused) else None
    with transaction.atomic():
        _answered(held, runner, status, error)
    if isinstance(error, RunnerUnavailable):
        why = f"{error} Nothing was changed. See that the runner runs, then try again."
        return Ended(status=Status.FAILED, outcome=Outcome.FAILED, reason=UNREACHABLE, explanation=why)
    if isinstance(error, UnknownOutcome):
        return unknown.STOPPED_WAITING if stop is Stop.CANCELLED else unknown.UNKNOWN
    why = f"{error} It compacted nothing, and neither did this console."
    return Ended(status=Status.FAILED, outcome=Outcome.FAILED, reason=REFUSED, explanation=why)


def _left_to_console(held: Claim, compaction: Compaction, runner: Runner, answer: CompactAnswer) -> Ended | Literal[Next.OURS]:
    with transaction.atomic():
        _answered(held, runner, answer.status)
    try:
        check_available(compaction.session, compaction)
    except CompactUnavailable as error:
        return Ended(status=Status.FAILED, outcome=Outcome.FAILED, reason=UNAVAILABLE, explanation=str(error))
    return OURS


def _answered(held: Claim, runner: Runner, status: int | None, error: RunnerError | None = None, operation_id: str | None = None) -> None:
    """Stores what came back, with its event. Call in a transaction. Raises `LeaseLost`."""
    lease.write(held, runner_answer=status, operation_id=operation_id)
    log.append(
        log.session_stream(held.session_id),
        EventType.RUNNER_FORWARDED,
        actor=WORKER,
        result=EventResult.FAILED if error else EventResult.ALLOWED,
        target=("compaction", str(held.compaction_id)),
        compaction_id=held.compaction_id,
        reason=str(error) if error else "",
        payload={"type": COMPACT, "runner": runner.name, "status": status, "delivered": error is None},
    )


def _columns(answer: CompactAnswer, runner: Runner, compaction: Compaction) -> dict[str, object]:
    """What the attempt's row says of a compaction that its runner carried out."""
    columns: dict[str, object] = {**handled.EXTERNAL, "lineage": Lineage.AGENT, "summariser": runner.name}
    for side, tokens in (("before", answer.tokens_before), ("after", answer.tokens_after)):
        if tokens is not None:
            reported = {"": tokens, "_origin": Origin.REPORTED, "_scope": Scope.WHOLE_REQUEST}
            columns |= {f"tokens_{side}{part}": value for part, value in reported.items()}
    asked = [name for name in ("instructions", "profile") if getattr(compaction, name)]
    asked += [name for name, given in (("boundary", compaction.boundary_index is not None), ("force", compaction.force)) if given]
    if asked:
        columns["warnings"] = [f"The runner compacted in its own way: {' and '.join(asked)} could not be passed on."]
    return columns | {"boundary_index": None}
