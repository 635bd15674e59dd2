"""Verification of the whole log from a page: in steps of a second, so that it can be watched, and left at any time."""

import os
import time
from dataclasses import dataclass

import msgspec
from django.core import signing

from sessions_app.events import log, verify
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.events.verify import Anchor, Verdict
from sessions_app.models import EventResult
from sessions_app.permissions import Action, require
from sessions_app.selectors import audit_streams
from sessions_app.services.audit import TARGET

STEP_S = 1.0
ROWS_AT_ONCE = 2_000
KEPT_FAULTS = 100
MOST_SUSPECTS = 1_000
STATE_MAX_AGE_S = 3_600
_SALT = "audit.verification"


@dataclass(frozen=True)
class Outcome:
    """What a verification by command found. `lost`: anchors that are not in the log any more; `heads`: of streams that are whole."""

    events: int
    broken: list[Verdict]
    lost: list[Verdict]
    heads: list[Anchor]
    took_s: float


class UnknownRunError(ValueError):
    """The state of a verification was changed on its way, or is too old."""

    def __init__(self) -> None:
        super().__init__("This verification cannot go on: what the page sent is damaged or too old. Nothing was written; start it again.")


class Fault(msgspec.Struct, frozen=True):
    """What does not fit in one stream, and from which event on."""

    stream: str
    seq: int
    reason: str


class Run(msgspec.Struct):
    """A verification under way, or over. `total`: how many events are expected; `faults`: the first hundred, at the end."""

    up_to: int
    total: int
    last_id: int = 0
    events: int = 0
    suspects: list[str] = []
    faults: list[Fault] = []
    broken_count: int = 0
    elapsed_s: float = 0.0
    is_done: bool = False

    @property
    def state(self) -> str:
        """What the page sends back to go on: signed, so that nobody can say what the verification found."""
        return signing.dumps(msgspec.to_builtins(self), salt=_SALT, compress=True)


def step(*, actor: Actor, state: str = "", total: int = 0) -> Run:
    """Begins (`total`: how many events are expected), or goes on for about a second. The last step writes `audit.verified`.

    Raises `UnknownRunError` when `state` is none that was handed out within the hour, and what `permissions.require` raises.
    """
    require(actor, Action.AUDIT, target=TARGET)
    run = _taken_up(state) if state else Run(up_to=verify.newest_id(), total=total)
    started = time.monotonic()
    walk = verify.Walk(up_to=run.up_to, last_id=run.last_id, events=run.events, suspects=set(run.suspects))
    while not walk.is_done and time.monotonic() < started + STEP_S:
        verify.resume(walk, ROWS_AT_ONCE)
    run.last_id, run.events, run.is_done = walk.last_id, walk.events, walk.is_done
    run.suspects = sorted(walk.suspects)[:MOST_SUSPECTS]
    if run.is_done:
        _conclude(run, verify.faults_of(walk))
    run.elapsed_s += time.monotonic() - started
    if run.is_done:
        _write_down(actor, run)
    return run


def verify_one(*, actor: Actor, stream: str) -> Verdict:
    """Verifies one stream at once, and writes that down. Raises what `permissions.require` raises."""
    require(actor, Action.AUDIT, target=TARGET)
    verdict = verify.verify_named(stream)
    log.append(
        log.SECURITY,
        EventType.AUDIT_VERIFIED,
        actor=actor,
        result=EventResult.ALLOWED if verdict.broken_at is None else EventResult.FAILED,
        target=("stream", stream[:64]),
        reason=verdict.reason,
        payload={"stream": stream, "events": verdict.events, "broken_at": verdict.broken_at},
    )
    return verdict


def _taken_up(state: str) -> Run:
    try:
        return msgspec.convert(signing.loads(state, salt=_SALT, max_age=STATE_MAX_AGE_S), Run)
    except (signing.BadSignature, msgspec.ValidationError) as error:
        raise UnknownRunError from error


def _conclude(run: Run, broken: list[Verdict]) -> None:
    run.broken_count = len(broken)
    run.faults = [Fault(verdict.stream, verdict.broken_at or 0, verdict.reason) for verdict in broken[:KEPT_FAULTS]]


def _write_down(actor: Actor, run: Run, *, target: tuple[str, str] = TARGET) -> None:
    log.append(
        log.SECURITY,
        EventType.AUDIT_VERIFIED,
        actor=actor,
        result=EventResult.FAILED if run.broken_count else EventResult.ALLOWED,
        target=target,
        reason=f"{run.broken_count} broken" if run.broken_count else "",
        payload={
            "streams": audit_streams.count_streams(),
            "events": run.events,
            "took_s": round(run.elapsed_s, 2),
            "up_to": run.up_to,
            "broken_count": run.broken_count,
            "broken": [msgspec.to_builtins(fault) for fault in run.faults],
        },
    )


def verify_everything(*, actor: Actor, streams: list[str], anchors: list[Anchor]) -> Outcome:
    """Verifies all streams, or those named, and compares anchors; writes `audit.verified`.

    Raises what `permissions.require` raises.
    """
    require(actor, Action.AUDIT, target=TARGET)
    started = time.monotonic()
    up_to = verify.newest_id()
    if streams:
        verdicts = [verify.verify_named(name) for name in streams]
        broken = [verdict for verdict in verdicts if verdict.broken_at is not None]
        events = sum(verdict.events for verdict in verdicts)
    else:
        walk, broken = verify.verify_all(processes=os.cpu_count() or 1)
        events = walk.events
    lost = list(verify.broken_anchors(anchors))
    run = Run(up_to=up_to, total=events, events=events, elapsed_s=time.monotonic() - started)
    _conclude(run, [*broken, *lost])
    heads = [head for head in audit_streams.heads() if not streams or head.stream in streams]
    _write_down(actor, run, target=("stream", streams[0][:64]) if streams else TARGET)
    return Outcome(events=events, broken=broken, lost=lost, heads=heads, took_s=run.elapsed_s)
