"""Adding, changing, testing and removing runners. Each change is an event with what was before and after; none tells a credential."""

import asyncio
import re

from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now

from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import EventResult, Runner, Session
from sessions_app.permissions import Action, require
from sessions_app.runners.addresses import InvalidAddress, checked_url
from sessions_app.runners.base import Health, HealthReport, RunnerKind
from sessions_app.runners.errors import RunnerUnavailable
from sessions_app.services.runners import binding
from sessions_app.services.runners.clients import CREDENTIAL, allowed_hosts, client_of

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_NOTHING = "Nothing was changed."


class InvalidRunner(Exception):
    """A runner can't be as it was given; nothing was changed. `field` names what is wrong."""

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(f"{message} {_NOTHING}")


def add(*, actor: Actor, name: str, base_url: str, credential_variable: str = "", kind: str = RunnerKind.HTTP) -> Runner:
    """A new runner; nothing is sent to it yet. Raises `InvalidRunner` and what the gate raises."""
    require(actor, Action.MANAGE_RUNNERS, target=("runner", name[:64]), stream=log.SECURITY)
    if kind not in set(RunnerKind):
        raise InvalidRunner("kind", f"There is no kind {kind[:40]!r}; the kinds are {', '.join(RunnerKind)}.")
    columns = _checked(name, base_url, credential_variable)
    try:
        with transaction.atomic():
            runner = Runner.objects.create(kind=kind, created_by=actor.name, **columns)
            _tell(EventType.RUNNER_ADDED, actor, runner, after=_told(runner))
    except IntegrityError as error:
        raise _taken(columns["name"]) from error
    return runner


def change(*, actor: Actor, runner: Runner, name: str, base_url: str, credential_variable: str = "") -> Runner:
    """Another name, address or credential. Its health is unknown from then on. Raises `InvalidRunner` and what the gate raises."""
    require(actor, Action.MANAGE_RUNNERS, target=("runner", str(runner.pk)), stream=log.SECURITY)
    columns = _checked(name, base_url, credential_variable)
    try:
        with transaction.atomic():
            current = _locked(runner)
            before = _told(current)
            if before == before | columns:
                return current
            Runner.objects.filter(pk=current.pk).update(health=Health.UNKNOWN, last_error="", **columns)
            current.refresh_from_db()
            _tell(EventType.RUNNER_CHANGED, actor, current, before=before, after=_told(current))
    except IntegrityError as error:
        raise _taken(columns["name"]) from error
    return current


def remove(*, actor: Actor, runner: Runner) -> int:
    """Takes a runner away, and unbinds its sessions. Returns how many those were. Raises `CompactionUnderWay` as unbinding does."""
    require(actor, Action.MANAGE_RUNNERS, target=("runner", str(runner.pk)), stream=log.SECURITY)
    with transaction.atomic():
        current = _locked(runner)
        bound = list(Session.objects.filter(runner=current).order_by("pk"))
        for session in bound:
            binding.release(actor=actor, session=session)
        _tell(EventType.RUNNER_REMOVED, actor, current, before=_told(current), sessions=len(bound))
        current.delete()
    return len(bound)


def test(*, actor: Actor, runner: Runner) -> HealthReport:
    """Asks a runner whether it is there, and keeps what it said. Raises what the gate raises, and nothing else."""
    require(actor, Action.MANAGE_RUNNERS, target=("runner", str(runner.pk)), stream=log.SECURITY)
    try:
        report = asyncio.run(client_of(runner).health())
    except RunnerUnavailable as error:
        report = HealthReport(health=Health.DOWN, problem=str(error))
    is_up = report.health is Health.UP
    with transaction.atomic():
        Runner.objects.filter(pk=runner.pk).update(
            health=report.health,
            last_error=report.problem,
            checked_at=Now(),
            last_seen_at=Now() if is_up else F("last_seen_at"),
            capabilities=list(report.capabilities) if is_up else F("capabilities"),
        )
        result = EventResult.ALLOWED if is_up else EventResult.FAILED
        _tell(EventType.RUNNER_TESTED, actor, runner, result=result, health=report.health, problem=report.problem)
    return report


def _checked(name: str, base_url: str, credential_variable: str) -> dict[str, str]:
    name, variable = name.strip(), credential_variable.strip()
    if not NAME.fullmatch(name):
        raise InvalidRunner("name", "A name has 1 to 80 letters, digits, dots, dashes and underscores, and begins with a letter or digit.")
    try:
        address = checked_url(base_url, allowed_hosts())
    except InvalidAddress as error:
        raise InvalidRunner("base_url", str(error)) from error
    if variable and not CREDENTIAL.fullmatch(variable):
        message = "A credential is given by the name of a variable of the environment that begins with RUNNER_TOKEN_; never by itself."
        raise InvalidRunner("credential_variable", message)
    return {"name": name, "base_url": address, "credential_variable": variable}


def _locked(runner: Runner) -> Runner:
    current = Runner.objects.select_for_update(no_key=True).filter(pk=runner.pk).first()
    if current is None:
        raise InvalidRunner("name", "This runner was removed meanwhile.")
    return current


def _taken(name: str) -> InvalidRunner:
    return InvalidRunner("name", f"There is already a runner {name!r}.")


def _told(runner: Runner) -> dict[str, str]:
    return {"name": runner.name, "base_url": runner.base_url, "credential_variable": runner.credential_variable}


def _tell(
    event_type: EventType,
    actor: Actor,
    runner: Runner,
    *,
    before: object = None,
    after: object = None,
    result: EventResult = EventResult.ALLOWED,
    **facts: object,
) -> None:
    payload: dict[str, object] = {
        "name": runner.name,
        **{name: value if isinstance(value, int) else str(value) for name, value in facts.items()},
    }
    target = ("runner", str(runner.pk))
    log.append(log.SECURITY, event_type, actor=actor, result=result, target=target, before=before, after=after, payload=payload)
