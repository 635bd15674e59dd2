"""`/v1/runners`: the programs that own an agent's loop, for admins. A credential is the name of a variable, here as everywhere."""

from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Field, Router, Schema
from pydantic import ConfigDict

from sessions_app.api.auth import actor_of
from sessions_app.api.idempotency import create_once, created
from sessions_app.api.pagination import ListOut, list_of
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.models import Runner
from sessions_app.permissions import Action, require, unknown
from sessions_app.selectors.runners import runner_named, runner_row, runner_rows
from sessions_app.services.idempotency import Answer
from sessions_app.services.runners import table
from sessions_app.shapes import Shape, runner_shape

router = Router()
Text = Annotated[str, Field(max_length=500)]


class RunnerIn(Schema):
    """A runner. `credential_variable`: which variable of the environment holds its bearer token: `RUNNER_TOKEN_…`."""

    model_config = ConfigDict(extra="forbid")

    name: Text
    base_url: Text
    credential_variable: Text = ""


class RunnerPatch(Schema):
    """What is left out stays."""

    model_config = ConfigDict(extra="forbid")

    name: Text | None = None
    base_url: Text | None = None
    credential_variable: Text | None = None


@router.get("", response=ListOut)
def list_runners(request: HttpRequest) -> dict[str, Any]:
    """All runners by name, with what was last seen of each."""
    _admin(request)
    return list_of(map(runner_shape, runner_rows()), has_more=False)


@router.post("", response={201: dict[str, Any]})
def add_runner(request: HttpRequest, body: RunnerIn) -> HttpResponse:
    """Adds one. Nothing is sent to it yet."""
    actor = _admin(request)

    def add() -> Answer:
        runner = table.add(actor=actor, **body.model_dump())
        return created(_shape(runner), location=f"/v1/runners/{runner.pk}")

    return create_once(request, add)


@router.get("/{named}", response=dict[str, Any])
def read_runner(request: HttpRequest, named: str) -> Shape:
    """One runner, by its name or id."""
    return _shape(_runner(_admin(request), named))


@router.patch("/{named}", response=dict[str, Any])
def change_runner(request: HttpRequest, named: str, body: RunnerPatch) -> Shape:
    """Changes name, address or credential. Its health is unknown from then on."""
    actor = _admin(request)
    runner = _runner(actor, named)
    told = {"name": runner.name, "base_url": runner.base_url, "credential_variable": runner.credential_variable}
    return _shape(table.change(actor=actor, runner=runner, **told | body.model_dump(exclude_none=True)))


@router.post("/{named}/test", response=dict[str, Any])
def test_runner(request: HttpRequest, named: str) -> Shape:
    """Asks it whether it is there; answers what was found."""
    actor = _admin(request)
    runner = _runner(actor, named)
    table.test(actor=actor, runner=runner)
    return _shape(runner)


@router.delete("/{named}", response=dict[str, Any])
def remove_runner(request: HttpRequest, named: str) -> Shape:
    """Removes it; its sessions are bound to none from then on."""
    actor = _admin(request)
    runner = _runner(actor, named)
    identifier = runner.pk
    return {"id": identifier, "object": "runner", "deleted": True, "unbound": table.remove(actor=actor, runner=runner)}


def _admin(request: HttpRequest) -> Actor:
    actor = actor_of(request)
    require(actor, Action.MANAGE_RUNNERS, stream=log.SECURITY)
    return actor


def _runner(actor: Actor, named: str) -> Runner:
    runner = runner_named(named)
    if runner is None:
        raise unknown(actor, "runner", named, Action.MANAGE_RUNNERS)
    return runner


def _shape(runner: Runner) -> Shape:
    row = runner_row(runner.pk)
    assert row is not None
    return runner_shape(row)
