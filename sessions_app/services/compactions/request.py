"""Asking for a compaction: one open attempt per session, whoever asks; a second request joins it."""

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec
from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now

from sessions_app import queue
from sessions_app.engine import policy as policies
from sessions_app.engine.boundary import IllegalBoundary
from sessions_app.engine.policy import MAX_INSTRUCTIONS_CHARS, Policy
from sessions_app.engine.terms import OPEN_STATUSES, Lineage, Profile, Status, Trigger
from sessions_app.engine.texts import is_storable
from sessions_app.engine.triggers import Verdict
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import Compaction, Session, SessionKind, SessionStatus
from sessions_app.providers.registry import is_usable
from sessions_app.selectors import cuts, plans
from sessions_app.services import evaluations
from sessions_app.services.compactions import unknown
from sessions_app.services.compactions.transitions import move

RUNNER, CONSOLE = "runner", "console"
"""Who is to compact, where somebody chooses: the session's runner, asked again, or this console alone."""

WAIT_FOR_IDLE_S = 1_800
"""How long an attempt waits for a busy session."""


class InvalidRequest(Exception):
    """An option is not acceptable; nothing was started. `field` names it; empty where it is none of them."""

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(f"{message} Nothing was started.")


class CompactUnavailable(InvalidRequest):
    """This session can't be compacted by anybody here: its policy wants a model, and there is none."""

    def __init__(self, why: str) -> None:
        what = "Set the session's model, name a usable one among the policy's summarisers, or set its require_model to false."
        super().__init__("", f"/compact is unavailable: {why}. {what}")


class SessionBusy(Exception):
    """A turn or an approval is open, and the caller does not want to wait for its end."""


class Undecided(SessionBusy):
    """Whether the session's runner carried out the last compaction is not known, and nobody has said what to do about it."""


@dataclass(frozen=True)
class RequestAnswer:
    """The attempt that now stands for the session. `joined`: it was under way before this request came."""

    compaction: Compaction
    joined: bool


def request(
    *,
    actor: Actor,
    session: Session,
    instructions: str = "",
    profile: str = "",
    boundary: int | None = None,
    force: bool = False,
    when_idle: bool = True,
    through: str = "",
    trigger: Trigger = Trigger.MANUAL,
    verdict: Verdict | None = None,
    turn_id: uuid.UUID | None = None,
    protected_messages: int = 0,
    changes: Mapping[str, object] | None = None,
) -> RequestAnswer:
    """Starts a compaction in the background, or joins the one that is under way.

    `instructions`: what to stress, at most 2,000 characters. `boundary`: index of the first entry to keep. Where the session
    has a runner, that is asked first, unless `through` is `console`; `runner` asks it again after an unknown outcome. Any `trigger`
    but the manual one comes from a turn that is open, and so does not wait for its end; the caller runs the attempt. `verdict`
    and `turn_id` say why it fired and where; `protected_messages` is the least that it leaves alone. `changes` are values of the
    policy for this attempt alone, such as `{"review_before_commit": True}`.
    Raises `InvalidRequest` on an option that can't be met, `CompactUnavailable` where no summariser could do it, `Undecided`
    after an unknown outcome, and `SessionBusy` when the session is busy and `when_idle` is False. An empty session, or one with
    nothing to fold, is an attempt that ends as skipped.
    """
    instructions = instructions.strip()
    _validate(session, instructions, profile, boundary)
    _validate_way(session, through)
    policy = policy_snapshot(session, profile, protected_messages=protected_messages, changes=changes)
    attempt = Compaction(
        session_id=session.pk,
        lineage=Lineage.CONSOLE,
        trigger=trigger,
        evaluation=evaluations.stored(verdict) | {"basis": basis_of(session, policy)} if verdict else {},
        turn_id=turn_id,
        requested_by=actor.name,
        policy=policy,
        profile=profile,
        instructions=instructions,
        boundary_index=boundary,
        force=force,
        through=through or None,
    )
    if session.runner_id is None or through == CONSOLE:
        check_available(session, attempt)  # else once the runner has said that it leaves it to us
    return _join_or_start(actor, session, attempt, when_idle=when_idle)


def _join_or_start(actor: Actor, session: Session, attempt: Compaction, *, when_idle: bool) -> RequestAnswer:
    try:
        with transaction.atomic():
            # The row is locked first: of two requests, one finds the attempt of the other.
            current = Session.objects.select_for_update(no_key=True).get(pk=session.pk)
            return _join(actor, current) or _start(actor, current, attempt, when_idle=when_idle)
    except IntegrityError:
        # Where rows can't be locked, the constraint decides; the one who lost joins.
        answer = _join(actor, session)
        if answer is None:
            raise
        return answer


def _validate(session: Session, instructions: str, profile: str, boundary: int | None) -> None:
    if len(instructions) > MAX_INSTRUCTIONS_CHARS:
        message = f"Instructions may have {MAX_INSTRUCTIONS_CHARS:,} characters; these have {len(instructions):,}."
        raise InvalidRequest("instructions", message)
    if not is_storable(instructions):
        raise InvalidRequest("instructions", "These instructions hold a character that no database stores.")
    if profile and profile not in set(Profile):
        raise InvalidRequest("profile", f"There is no profile {profile[:40]!r}; the profiles are {', '.join(Profile)}.")
    if boundary is not None:
        _check_boundary(session, boundary)


def _validate_way(session: Session, through: str) -> None:
    if through not in {"", RUNNER, CONSOLE}:
        raise InvalidRequest("through", f"A compaction goes through `{RUNNER}` or `{CONSOLE}`, not {through[:40]!r}.")
    if through == RUNNER and session.runner_id is None:
        raise InvalidRequest("through", "This session has no runner.")


def check_available(session: Session, attempt: Compaction) -> None:
    """Raises `CompactUnavailable` where a session that is held here has no model, and nothing else may summarise."""
    if session.kind not in {SessionKind.INLINE, SessionKind.OWNED} or session.model:
        return
    policy = msgspec.convert(attempt.policy["values"], Policy)
    lacks = f"this session of {session.agent} has no model, and"
    if policy.require_model:
        raise CompactUnavailable(f"{lacks} its policy asks for one (require_model)")
    if not any(map(is_usable, policy.summarisers)):
        raise CompactUnavailable(f"{lacks} none of its summarisers ({', '.join(policy.summarisers)}) can be used here")


def _check_boundary(session: Session, boundary: int) -> None:
    in_force = session.active_console or session.active_agent
    first = (in_force.boundary_index or 0) if in_force else cuts.after_system(session.pk)
    last = session.entry_count - 1
    if not first < boundary <= last:
        folded = f"Everything before entry {first:,} is folded already (#{in_force.generation}). " if in_force else ""
        where = f"from {first + 1:,} to {last:,}" if first < last else "after the first, and there is none"
        raise InvalidRequest("boundary", f"{folded}A boundary is the index of an entry {where}.")
    try:
        cuts.check_boundary(session.pk, first, boundary)
    except IllegalBoundary as error:
        raise InvalidRequest("boundary", str(error)) from error


def _join(actor: Actor, session: Session) -> RequestAnswer | None:
    running = Compaction.objects.filter(session_id=session.pk, status__in=OPEN_STATUSES).first()
    if running is None:
        return None
    log.append(
        log.session_stream(session.pk),
        EventType.COMPACTION_JOINED,
        actor=actor,
        target=("compaction", str(running.pk)),
        compaction_id=running.pk,
        payload={"attempt": running.attempt, "requested_by": running.requested_by},
    )
    return RequestAnswer(running, joined=True)


def _start(actor: Actor, session: Session, attempt: Compaction, *, when_idle: bool) -> RequestAnswer:
    _settle(session, attempt, actor)
    is_manual = attempt.trigger == Trigger.MANUAL
    waits = session.is_busy and is_manual
    if waits and not when_idle:
        raise SessionBusy("A turn of this session is open. Nothing was started. Wait for its end, or let the compaction wait for it.")
    open_attempt(attempt, session, waits=waits)
    payload = {
        "attempt": attempt.attempt,
        "trigger": attempt.trigger,
        "waits_for_idle": waits,
        "profile": attempt.profile,
        "instructions_chars": len(attempt.instructions),
    }
    log.append(
        log.session_stream(session.pk),
        EventType.COMPACTION_REQUESTED,
        actor=actor,
        target=("compaction", str(attempt.pk)),
        compaction_id=attempt.pk,
        payload=payload,
    )
    if not waits:
        hold_session(attempt.pk, session.pk)
        if is_manual:
            queue.enqueue(queue.RUN_COMPACTION, str(attempt.pk))
    attempt.refresh_from_db()
    return RequestAnswer(attempt, joined=False)


def _settle(session: Session, attempt: Compaction, actor: Actor) -> None:
    """An outcome that nobody knows has to be decided before anything else is begun: whoever says which way has decided."""
    if not attempt.through and unknown.undecided(session.pk).exists():
        raise Undecided(
            "Whether the runner carried out the last compaction is not known. Nothing was started. Look in the agent; then ask the runner "
            "again (through: runner), or compact what this console shows (through: console)."
        )
    unknown.decide(session.pk, actor=actor, decision="again" if attempt.through == RUNNER else CONSOLE)


def settle(*, actor: Actor, session: Session) -> int:
    """Takes note that somebody has looked, and nothing is to follow an outcome that was unknown. Returns how many those were."""
    with transaction.atomic():
        Session.objects.select_for_update(no_key=True).get(pk=session.pk)
        return unknown.decide(session.pk, actor=actor, decision="dismissed")


def open_attempt(attempt: Compaction, session: Session, *, waits: bool = False) -> None:
    """Stores a new attempt. Call in the transaction that locked the session's row."""
    attempt.attempt = session.last_attempt + 1
    attempt.status = Status.WAITING_FOR_IDLE if waits else Status.REQUESTED
    attempt.requested_at = attempt.heartbeat_at = Now()
    attempt.deadline_at = Now() + timedelta(seconds=WAIT_FOR_IDLE_S) if waits else None
    attempt.save(force_insert=True)
    Session.objects.filter(pk=session.pk).update(last_attempt=F("last_attempt") + 1, running=attempt)


def start_waiting(compaction_id: uuid.UUID, session_id: uuid.UUID, *, actor: Actor, in_turn: bool = False) -> bool:
    """Lets an attempt run that waited for its session to become idle. One transaction; the task follows its commit.

    False when it is no longer waiting, or the session is busy again. `in_turn`: the open turn itself makes room for it,
    and runs it: no task is queued.
    """
    with transaction.atomic():
        session = Session.objects.select_for_update(no_key=True).get(pk=session_id)
        if session.is_busy and not in_turn:
            return False
        if not move(compaction_id, Status.REQUESTED, heartbeat_at=Now(), deadline_at=None):
            return False
        hold_session(compaction_id, session_id)
        log.append(
            log.session_stream(session_id),
            EventType.SESSION_STATUS_CHANGED,
            actor=actor,
            target=("session", str(session_id)),
            compaction_id=compaction_id,
            before={"status": session.status},
            after={"status": SessionStatus.COMPACTING.value},
            reason="its turn makes room for the compaction that waited"
            if in_turn
            else "its turn is over, so the compaction that waited begins",
        )
        if not in_turn:
            queue.enqueue(queue.RUN_COMPACTION, str(compaction_id))
    return True


def hold_session(compaction_id: uuid.UUID, session_id: uuid.UUID) -> None:
    """Shows the session as compacting, and remembers what it was. Call in the transaction that locked its row."""
    before = Session.objects.values_list("status", flat=True).get(pk=session_id)
    if before == SessionStatus.COMPACTING:
        before = SessionStatus.IDLE  # nothing else can hold it: there is one attempt at a time
    Compaction.objects.filter(pk=compaction_id).update(session_status_before=before)
    Session.objects.filter(pk=session_id).update(status=SessionStatus.COMPACTING)


def basis_of(session: Session, policy: Mapping[str, Any]) -> str:
    """What an attempt depends on beside the entries, as a hash: checkpoint in force, overrides, model, window and policy."""
    told = (
        str(session.active_console_id or session.active_agent_id),
        plans.overrides_of(session).version,
        session.model,
        session.window,
        sorted(policy["values"].items()),
    )
    return hashlib.sha256(msgspec.json.encode(told)).hexdigest()[:32]


def policy_snapshot(
    session: Session, profile: str = "", *, protected_messages: int = 0, changes: Mapping[str, object] | None = None
) -> dict[str, Any]:
    """The policy as it is now, as plain JSON: {"values": field → value, "sources": field → scope}.

    Raises `InvalidRequest` for changes that no policy may have.
    """
    resolved = plans.effective_policy(session)
    policy, sources = resolved.policy, {field: str(scope) for field, scope in resolved.sources.items()}
    if profile:
        policy = msgspec.structs.replace(policy, profile=Profile(profile))
    for field, value in (changes or {}).items():
        try:
            policy = policies.changed(policy, {field: value})
        except ValueError as error:
            raise InvalidRequest(field, str(error)) from error
        sources[field] = "request"
    if protected_messages > policy.protected_messages:
        policy = msgspec.structs.replace(policy, protected_recent_messages=protected_messages)
        sources["protected_recent_messages"] = "turn"
    return {"values": msgspec.to_builtins(policy), "sources": sources}
