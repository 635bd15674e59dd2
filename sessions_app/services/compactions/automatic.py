"""Compactions that nobody asked for: each trigger is evaluated, its verdict kept, and acted upon in the caller's thread."""

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec
from django.db import IntegrityError, transaction

from sessions_app.engine import triggers
from sessions_app.engine.entries import Checkpoint
from sessions_app.engine.policy import window_for
from sessions_app.engine.signal import Signal
from sessions_app.engine.steps import Commit
from sessions_app.engine.terms import OPEN_STATUSES, Lineage, Origin, Outcome, Scope, Status, Trigger
from sessions_app.engine.triggers import Route, TierResult, Verdict
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import Compaction, Session, SessionKind
from sessions_app.selectors import plans
from sessions_app.services import evaluations, signals
from sessions_app.services.compactions import breakers, emergencies, futility
from sessions_app.services.compactions.endings import end_lost
from sessions_app.services.compactions.request import SessionBusy, policy_snapshot, request, start_waiting
from sessions_app.services.compactions.revert import CompactionUnderWay
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.compactions.tiers import capacity_of

JOIN_LOOK_S = 0.1
OPTIONS = (
    "Compact it by hand, switch automatic compaction on in its policy, leave entries out of the view, "
    "or choose a model with a larger window; then send the message again."
)


class NotOurs(Exception):
    """What was asked for is the agent's to decide: the console does not hold this session's context."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What an evaluation came to. `view`: the plan for this one request, where no durable one came about.

    `refusal` is set where what was asked for can't go on, and says what a person can do.
    """

    verdict: Verdict
    compaction: Compaction | None = None
    view: Checkpoint | None = None
    refusal: str = ""
    result: TierResult | None = None  # of a change of tier

    @property
    def made_room(self) -> bool:
        """Whether the next request is served from a smaller view."""
        return self.view is not None or (self.compaction is not None and self.compaction.status == Status.COMPLETED)


def before_turn(*, session: Session, actor: Actor, turn_id: uuid.UUID | None, must_end: Callable[[], bool] = lambda: False) -> Decision:
    """Evaluates threshold and preflight before a request of a turn, and compacts where that is due.

    A compaction that waits for the turn's end is let through first: this is as good a moment.
    """
    _let_open_attempt_end(session, actor, must_end)
    policy = plans.effective_policy(session).policy
    verdict = triggers.before_turn(
        signal=signal_of(session),
        policy=policy,
        window=session.window,
        circuit_open=breakers.is_open(session),
        attempted=_has_attempted(session, turn_id),
        draft_waits=Compaction.objects.filter(session_id=session.pk, status=Status.DRAFTED).exists(),
    )
    if verdict.fires and (earlier := futility.earlier_failure(session, verdict)):
        verdict = triggers.in_vain(verdict, earlier)
    return _decide(session, actor, verdict, turn_id, must_end=must_end)


def recover_overflow(
    *, session: Session, actor: Actor, turn_id: uuid.UUID | None, must_end: Callable[[], bool] = lambda: False
) -> Decision:
    """Makes room after a provider refused a request as too long: once a turn, and by no model.

    Where `made_room` is False the turn has to end, and `refusal` says why and what a person can do.
    """
    joined = _let_open_attempt_end(session, actor, must_end)
    policy = plans.effective_policy(session).policy
    verdict = triggers.overflow(
        signal=signal_of(session),
        policy=policy,
        window=session.window,
        circuit_open=breakers.is_open(session),
        attempted=_has_attempted(session, turn_id, Trigger.OVERFLOW),
    )
    if joined is not None and joined.status == Status.COMPLETED and verdict.fires:
        evaluations.store(session.pk, verdict)
        return Decision(verdict=verdict, compaction=joined)
    decision = _decide(session, actor, verdict, turn_id, must_end=must_end)
    if decision.made_room:
        return decision
    why = decision.compaction.explanation if decision.compaction else verdict.explanation
    refusal = f"The provider refused the request as too long. {why} {OPTIONS}"
    return Decision(verdict=verdict, compaction=decision.compaction, refusal=refusal)


def switch_model(
    *,
    session: Session,
    actor: Actor,
    model: str,
    provider: str = "",
    window: int | None = None,
    must_end: Callable[[], bool] = lambda: False,
) -> Decision:
    """Lets a session go over to another model, and compacts its view first where the new one could not hold it.

    `window`: tokens, where somebody knows better than the table of models. The old model is left only when the view fits
    the new one by its trigger; else nothing is switched, and `refusal` says why. Raises `SessionBusy` while a turn is
    open, `CompactionUnderWay` while a compaction is, and `NotOurs` where the agent chooses its model itself.
    """
    signals.refresh(session.pk)  # the decision is about the view as it is now
    session.refresh_from_db()
    _check_switch(session)
    new_window = window or window_for(model)
    verdict = triggers.model_switch(
        view_tokens=session.signal_tokens or 0,
        origin=signal_of(session).origin,
        new_window=new_window,
        policy=plans.effective_policy(session).policy,
        circuit_open=breakers.is_open(session),
    )
    evaluations.store(session.pk, verdict)
    decision = _attempt(session, actor, verdict, None, must_end) if verdict.fires else Decision(verdict=verdict)
    does_fit = verdict.reason is triggers.Reason.VIEW_FITS or (decision.made_room and (session.signal_tokens or 0) < verdict.limit)
    if not does_fit:
        why = decision.compaction.explanation if decision.compaction else verdict.explanation
        refusal = (
            f"The session stays with {session.model or 'its model'}: its view of {session.signal_tokens or 0:,} tokens "
            f"does not fit {model}, which takes {verdict.limit:,}. {why} Compact it by hand, or choose a model with a larger window."
        )
        return replace(decision, refusal=refusal)
    _store_model(session, actor, model, provider, window)
    return decision


def route(
    *,
    session: Session,
    actor: Actor,
    turn_id: uuid.UUID | None,
    report: Route,
    history_tokens: int | None = None,
    active_index: int | None = None,
    must_end: Callable[[], bool] = lambda: False,
) -> Decision:
    """Answers a router that may have moved the session up to the highest tier of models; `Decision.result` is the answer.

    `history_tokens`: what the routed request leaves for history; by default the session's window. `active_index`: the
    entry that the turn answers, by default the last message of a person; it and everything after it is protected.
    """
    session.refresh_from_db()
    policy = plans.effective_policy(session).policy
    capacity, protected_messages = capacity_of(
        session, window=session.window if history_tokens is None else history_tokens, active=active_index
    )
    capacity = msgspec.structs.replace(
        capacity, attempted_this_turn=_has_attempted(session, turn_id), circuit_open=breakers.is_open(session)
    )
    result, verdict = triggers.tier_upgrade(report, capacity, policy)
    if result is TierResult.NOT_APPLICABLE:
        return Decision(verdict=verdict, result=result)
    decision = _decide(session, actor, verdict, turn_id, must_end=must_end, protected_messages=protected_messages)
    return replace(decision, result=result or _tier_result(decision.compaction))


def _tier_result(compaction: Compaction | None) -> TierResult:
    """What a change of tier came to: only what broke has failed. A rejected summary, a skip or a lost race are handled."""
    broke = compaction is not None and (
        compaction.outcome in {Outcome.FAILED, Outcome.TIMED_OUT} or compaction.reason == emergencies.COMPACT_FAILED
    )
    return TierResult.COMPACT_FAILED if broke else TierResult.HANDLED


def _check_switch(session: Session) -> None:
    if session.kind != SessionKind.INLINE:
        raise NotOurs("The agent of this session chooses its model itself. Nothing was changed.")
    if session.is_busy:
        raise SessionBusy("A turn of this session is open. Nothing was changed. Wait for its end, then choose the model.")
    if Compaction.objects.filter(session_id=session.pk, status__in=OPEN_STATUSES).exists():
        raise CompactionUnderWay("A compaction of this session is under way. Nothing was changed. Cancel it, or wait for its end.")


def _store_model(session: Session, actor: Actor, model: str, provider: str, window: int | None) -> None:
    with transaction.atomic():
        current = Session.objects.select_for_update(no_key=True).get(pk=session.pk)
        before = {"model": current.model, "provider": current.provider, "window_override": current.window_override}
        after = {"model": model, "provider": provider or current.provider, "window_override": window}
        Session.objects.filter(pk=session.pk).update(**after)
        log.append(
            log.session_stream(session.pk),
            EventType.SESSION_MODEL_CHANGED,
            actor=actor,
            target=("session", str(session.pk)),
            before=before,
            after=after,
        )
        signals.refresh(session.pk)
    session.refresh_from_db()


def signal_of(session: Session) -> Signal:
    """The signal as the session's row keeps it."""
    return Signal(
        tokens=session.signal_tokens or 0,
        origin=Origin(session.signal_origin or Origin.ESTIMATED),
        scope=Scope(session.signal_scope or Scope.VIEW),
        measured=session.signal_measured,
        measured_at=session.signal_measured_at,
        appended=session.signal_appended,
    )


def _decide(
    session: Session,
    actor: Actor,
    verdict: Verdict,
    turn_id: uuid.UUID | None,
    *,
    must_end: Callable[[], bool],
    protected_messages: int = 0,
) -> Decision:
    """Keeps the verdict, and does what it says."""
    evaluations.store(session.pk, verdict)
    if verdict.circuit_open:
        return _serve_emergency(session, actor, verdict, turn_id, protected_messages)
    if not verdict.fires:
        return Decision(verdict=verdict)
    return _attempt(session, actor, verdict, turn_id, must_end, protected_messages)


def _attempt(
    session: Session,
    actor: Actor,
    verdict: Verdict,
    turn_id: uuid.UUID | None,
    must_end: Callable[[], bool],
    protected_messages: int = 0,
) -> Decision:
    """Runs an attempt to its end, here or where somebody has begun one, and reads the session's row afresh."""
    answer = request(
        actor=actor,
        session=session,
        trigger=verdict.trigger,
        verdict=verdict,
        turn_id=turn_id,
        protected_messages=protected_messages,
    )
    trimmed = _bring_to_end(answer.compaction, session, actor, must_end)
    answer.compaction.refresh_from_db()
    session.refresh_from_db()
    return Decision(verdict=verdict, compaction=answer.compaction, view=_plan(trimmed, session))


def _serve_emergency(session: Session, actor: Actor, verdict: Verdict, turn_id: uuid.UUID | None, protected_messages: int) -> Decision:
    attempt = Compaction(
        session=session,
        lineage=Lineage.CONSOLE,
        trigger=verdict.trigger,
        evaluation=evaluations.stored(verdict),
        turn_id=turn_id,
        requested_by=actor.name,
        policy=policy_snapshot(session, protected_messages=protected_messages),
    )
    try:
        trimmed = emergencies.serve(attempt, session, actor=actor)
    except IntegrityError:
        trimmed = None  # somebody began a compaction at this very moment
    if trimmed is None:
        return Decision(verdict=verdict)
    attempt.refresh_from_db()
    session.refresh_from_db()
    return Decision(verdict=verdict, compaction=attempt, view=_plan(trimmed, session))


def _plan(trimmed: Commit | None, session: Session) -> Checkpoint | None:
    return emergencies.plan_of(trimmed, session) if trimmed else None


def _has_attempted(session: Session, turn_id: uuid.UUID | None, trigger: Trigger | None = None) -> bool:
    """Whether this turn has tried to compact before; with `trigger`, because of that."""
    if turn_id is None:
        return False
    attempts = Compaction.objects.filter(session_id=session.pk, turn_id=turn_id)
    return (attempts.filter(trigger=trigger) if trigger else attempts).exists()


def _let_open_attempt_end(session: Session, actor: Actor, must_end: Callable[[], bool]) -> Compaction | None:
    """Lets an attempt that somebody else asked for come first, and reads the session's row afresh. Returns that attempt."""
    running = Compaction.objects.filter(session_id=session.pk, status__in=OPEN_STATUSES).first()
    if running is not None:
        _bring_to_end(running, session, actor, must_end)
        running.refresh_from_db()
    session.refresh_from_db()
    return running


def _bring_to_end(attempt: Compaction, session: Session, actor: Actor, must_end: Callable[[], bool]) -> Commit | None:
    """Runs an open attempt here, or waits for the worker that does. What waits for the turn's end would wait for us, so it begins now.

    Bounded by its lease: where its worker was lost, it is ended here. Returns what `run_compaction` does.
    """
    if attempt.status == Status.WAITING_FOR_IDLE:
        start_waiting(attempt.pk, session.pk, actor=actor, in_turn=True)
    trimmed = run_compaction(attempt.pk, must_end=must_end)
    while Compaction.objects.filter(pk=attempt.pk, status__in=OPEN_STATUSES).exists() and not must_end():
        end_lost(attempt.pk)
        time.sleep(JOIN_LOOK_S)
        # Where the lease was held for a moment, as by the commit of a draft, nobody else may come to take it.
        trimmed = run_compaction(attempt.pk, must_end=must_end) or trimmed
    return trimmed
