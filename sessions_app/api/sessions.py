"""`/v1/sessions`: begin one, list them, read one, say something of one."""

import uuid
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Field, Query, Router, Schema
from pydantic import AwareDatetime, ConfigDict

from sessions_app.api.auth import actor_of
from sessions_app.api.documents import opened_document, session_document
from sessions_app.api.errors import ApiError
from sessions_app.api.idempotency import create_once, created
from sessions_app.api.pagination import ListOut, PageQuery, list_of, unknown_cursor
from sessions_app.api.wire import Word
from sessions_app.events.actors import Actor
from sessions_app.models import Runner, Session, SessionKind, SessionStatus
from sessions_app.permissions import Action, access_session, require
from sessions_app.selectors.followed import session_cursor
from sessions_app.selectors.runners import runner_named
from sessions_app.selectors.session_rows import RowFilters, session_rows
from sessions_app.services import sessions as services
from sessions_app.services.access import record_view
from sessions_app.services.goals import set_goal
from sessions_app.services.idempotency import Answer
from sessions_app.services.runners import binding
from sessions_app.shapes import Shape, session_shape

router = Router()

Title = Annotated[str, Field(max_length=services.MAX_TITLE_CHARS)]
Label = Annotated[str, Field(min_length=1, max_length=services.MAX_LABEL_CHARS)]
Labels = Annotated[list[Label], Field(max_length=services.MOST_LABELS)]
Window = Annotated[int, Field(ge=services.WINDOWS[0], le=services.WINDOWS[1])]
Name = Annotated[Word, Field(max_length=200)]


class SessionIn(Schema):
    """A new session. A `model` that can be asked here (`scripted`, `anthropic:…`, `openai:…`) answers its messages."""

    model_config = ConfigDict(extra="forbid")

    title: Title = ""
    agent: Annotated[str, Field(max_length=40)] = ""
    project: Annotated[str, Field(max_length=500)] = ""
    model: Annotated[str, Field(max_length=100)] = ""
    context_window: Window | None = None
    runner: Name = ""
    labels: Labels = []  # noqa: RUF012  pydantic copies it
    parent_session_id: uuid.UUID | None = None
    initial_items: Annotated[list[dict[str, Any]], Field(max_length=services.MOST_ITEMS)] = []  # noqa: RUF012


class SessionEdit(Schema):
    """What is left out stays. `runner`: its name, or null for none. `goal`: for summaries; empty for what the messages tell."""

    model_config = ConfigDict(extra="forbid")

    title: Title | None = None
    labels: Labels | None = None
    archived: bool | None = None
    goal: Annotated[str, Field(max_length=10_000)] | None = None
    model: Annotated[str, Field(max_length=100)] | None = None
    context_window: Window | None = None
    runner: Name | None = None


class SessionsQuery(PageQuery):
    """Filters. `project`: its id, name or key; `since` and `until`: of the last activity; `pressure_min`: of 1."""

    query: Name = ""
    status: SessionStatus | None = None
    agent: Name = ""
    model: Name = ""
    kind: SessionKind | None = None
    runner: Name = ""
    label: Name = ""
    project: Annotated[Word, Field(max_length=500)] = ""
    parent: uuid.UUID | None = None
    pressure_min: Annotated[float, Field(ge=0, le=1_000)] | None = None
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    include_archived: bool = False


@router.post("", response={201: dict[str, Any]})
def create_session(request: HttpRequest, body: SessionIn) -> HttpResponse:
    """Begins a session: held here, or by a runner."""
    actor = actor_of(request)
    action = services.begins_with(actor)
    require(actor, action, target=("session", "new"))
    parent = access_session(actor, body.parent_session_id, action) if body.parent_session_id else None
    runner = _runner(actor, body.runner) if body.runner else None

    def create() -> Answer:
        session = services.begin(
            actor=actor, title=body.title, agent=body.agent, project=body.project, model=body.model, window=body.context_window,
            runner=runner, labels=body.labels, parent=parent, items=body.initial_items,
        )  # fmt: skip
        return created(session_document(access_session(actor, session.pk, action)), location=f"/v1/sessions/{session.pk}")

    return create_once(request, create)


@router.get("", response=ListOut)
def list_sessions(request: HttpRequest, asked: Query[SessionsQuery]) -> dict[str, Any]:
    """Sessions by their last activity, the latest first unless asked otherwise; sub-agents with `parent` alone."""
    require(actor_of(request), Action.READ)
    named, is_before = asked.cursor()
    field = "before" if is_before else "after"
    filters = _filters(asked)
    if filters is None:
        return list_of([], has_more=False)
    identifier = _identifier(named, field) if named else None
    found = session_rows(filters, named=identifier, is_before=is_before, ascending=asked.order == "asc", limit=asked.limit)
    if found is None:
        raise unknown_cursor(field)
    rows, has_more = found
    return list_of(map(session_shape, rows), has_more=has_more)


def _identifier(named: str, field: str) -> uuid.UUID:
    try:
        return uuid.UUID(named)
    except ValueError as error:
        raise unknown_cursor(field) from error


def _filters(asked: SessionsQuery) -> RowFilters | None:
    """None: no session can match."""
    runner = runner_named(asked.runner) if asked.runner else None
    if asked.runner and runner is None:
        return None
    return RowFilters(
        query=asked.query, status=asked.status or "", agent=asked.agent, model=asked.model, kind=asked.kind or "", label=asked.label,
        runner=runner.pk if runner else None, project=asked.project, parent=asked.parent, pressure_min=asked.pressure_min,
        since=asked.since, until=asked.until, include_archived=asked.include_archived,
    )  # fmt: skip


@router.get("/{uuid:session_id}", response=dict[str, Any])
def read_session(request: HttpRequest, session_id: uuid.UUID) -> Shape:
    """A session: what it is, how full its context is, what is under way."""
    actor = actor_of(request)
    last_seq = session_cursor(session_id)  # before the row: a stream from here on misses nothing
    session = access_session(actor, session_id, Action.READ)
    record_view(actor=actor, session=session)
    return opened_document(session, last_seq)


@router.patch("/{uuid:session_id}", response=dict[str, Any])
def edit_session(request: HttpRequest, session_id: uuid.UUID, body: SessionEdit) -> Shape:
    """Changes what is given: title, labels, archive, goal, model and window, runner."""
    actor = actor_of(request)
    given = body.model_fields_set
    session = access_session(actor, session_id, _least(given))
    if given & {"title", "labels", "archived"}:
        services.edit(actor=actor, session=session, title=body.title, labels=body.labels, archived=body.archived)
    if body.goal is not None:
        set_goal(actor=actor, session=session, text=body.goal)
    if given & {"model", "context_window"}:
        refusal = services.choose_model(actor=actor, session=session, name=body.model, window=body.context_window)
        if refusal:
            raise ApiError("conflict", refusal, field="model", retryable=False)
    if "runner" in given:
        _bind(actor, session, body.runner)
    return session_document(access_session(actor, session_id, _least(given)))


def _least(given: set[str]) -> Action:
    """What a change takes at least: its services ask for the rest."""
    if given & {"title", "labels", "archived", "goal"} or not given:
        return Action.EDIT
    return Action.CHOOSE_MODEL if given & {"model", "context_window"} else Action.BIND_RUNNER


def _bind(actor: Actor, session: Session, named: str | None) -> None:
    if named:
        binding.bind(actor=actor, session=session, runner=_runner(actor, named))
    else:
        binding.unbind(actor=actor, session=session)


def _runner(actor: Actor, named: str) -> Runner:
    """The runner of this name or id. Asks for the right to bind one first, so that names are told to nobody else."""
    require(actor, Action.BIND_RUNNER, target=("runner", named[:64]))
    runner = runner_named(named)
    if runner is None:
        raise ApiError("invalid_input", f"There is no runner {named[:60]!r}. Nothing was changed.", field="runner")
    return runner
