"""Verification of the whole log from a page: in steps of a second, so that it can be watched, and left at any time."""

import time

import msgspec
from django.core import signing

from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.events.verify import Verdict, Walk, resume, verify_stream
from sessions_app.models import EventResult
from sessions_app.permissions import Action, require
from sessions_app.selectors.audit import newest_id
from sessions_app.services.audit import TARGET

STEP_S = 1.0
ROWS_AT_ONCE = 2_000
KEPT_FAULTS = 100
STATE_MAX_AGE_S = 3_600
_SALT = "audit.verification"


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
    """A verification under way, or over. `total` is how many events there were when it began; `faults` are the first hundred."""

    up_to: int
    total: int
    events: int = 0
    streams: int = 0
    broken_count: int = 0
    faults: list[Fault] = []
    elapsed_s: float = 0.0
    stream: str = ""
    seq: int = 0
    previous: str = ""
    is_broken: bool = False
    is_done: bool = False

    @property
    def state(self) -> str:
        """What the page sends back to go on: signed, so that nobody can say what the verification found."""
        return signing.dumps(msgspec.to_builtins(self), salt=_SALT, compress=True)

    @property
    def took_s(self) -> float:
        return round(self.elapsed_s, 2)


def step(*, actor: Actor, state: str = "", total: int = 0) -> Run:
    """Begins (`total`: how many events are expected), or goes on for about a second. The last step writes `audit.verified`.

    Raises `UnknownRunError` when `state` is none that was handed out within the hour, and what `permissions.require` raises.
    """
    require(actor, Action.AUDIT, target=TARGET)
    run = _taken_up(state) if state else Run(up_to=newest_id(), total=total)
    started = time.monotonic()
    walk = Walk(
        stream=run.stream,
        seq=run.seq,
        previous=bytes.fromhex(run.previous),
        is_broken=run.is_broken,
        streams=run.streams,
        events=run.events,
    )
    while not walk.is_done and time.monotonic() < started + STEP_S:
        resume(walk, ROWS_AT_ONCE)
        _keep_faults(run, walk)
    run.stream, run.seq, run.previous, run.is_broken = walk.stream, walk.seq, walk.previous.hex(), walk.is_broken
    run.events, run.streams, run.is_done = walk.events, walk.streams, walk.is_done
    run.elapsed_s += time.monotonic() - started
    if run.is_done:
        _write_down(actor, run)
    return run


def verify_one(*, actor: Actor, stream: str) -> Verdict:
    """Verifies one stream at once, and writes that down. Raises what `permissions.require` raises."""
    require(actor, Action.AUDIT, target=TARGET)
    verdict = verify_stream(stream)
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


def _keep_faults(run: Run, walk: Walk) -> None:
    for verdict in walk.verdicts:
        if verdict.broken_at is not None:
            run.broken_count += 1
            if len(run.faults) < KEPT_FAULTS:
                run.faults.append(Fault(verdict.stream, verdict.broken_at, verdict.reason))
    walk.verdicts.clear()


def _write_down(actor: Actor, run: Run) -> None:
    log.append(
        log.SECURITY,
        EventType.AUDIT_VERIFIED,
        actor=actor,
        result=EventResult.FAILED if run.broken_count else EventResult.ALLOWED,
        target=TARGET,
        reason=f"{run.broken_count} streams are broken" if run.broken_count else "",
        payload={
            "streams": run.streams,
            "events": run.events,
            "took_s": run.took_s,
            "up_to": run.up_to,
            "broken_count": run.broken_count,
            "broken": [msgspec.to_builtins(fault) for fault in run.faults],
        },
    )
