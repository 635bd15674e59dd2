"""Events by which an agent or its runner tells what happened. They start nothing, and need the scope `ingest`."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from sessions_app.api.events_data import OpenData, invalid, read_data
from sessions_app.api.idempotency import created
from sessions_app.events.actors import Actor
from sessions_app.models import Session
from sessions_app.services import external
from sessions_app.services.external_checkpoints import CheckpointReport, store_checkpoint
from sessions_app.services.idempotency import Answer

Report = Callable[[Actor, Session, dict[str, Any]], Answer]
Tokens = Annotated[int, Field(ge=0, le=2**53)]
Window = Annotated[int, Field(ge=1, le=100_000_000)]
Cost = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
NOT_QUEUED = {"queued": False}


class CompactionStatus(OpenData):
    status: Literal["completed", "failed", "in_progress"]
    operation_id: Annotated[str, Field(max_length=200)] = ""


class Checkpoint(OpenData):
    summary: str
    last_item_id: str
    token_count: Tokens
    model: Annotated[str, Field(max_length=200)] = ""
    compacted_messages: list[dict[str, Any]] | None = None
    window_id: Annotated[int, Field(ge=0, le=2**53)] | None = None


class SessionUsage(OpenData):
    context_tokens: Tokens | None = None
    context_window: Window | None = None
    cumulative_cost_usd: Cost | None = None
    policy_cost_usd: Cost | None = None
    cumulative_input_tokens: Tokens | None = None
    cumulative_output_tokens: Tokens | None = None
    cumulative_cache_read_input_tokens: Tokens | None = None
    model: Annotated[str, Field(max_length=200)] | None = None


class CallUsage(OpenData):
    """What a provider measured of one call. `input_tokens` without what came from a cache."""

    input_tokens: Tokens
    output_tokens: Tokens = 0
    cache_read_input_tokens: Tokens = 0
    cache_creation_input_tokens: Tokens = 0
    model: Annotated[str, Field(max_length=200)] = ""


class SessionState(OpenData):
    status: Literal["failed", "idle", "running", "waiting"]
    response_id: Annotated[str, Field(max_length=200)] | None = None
    output: Annotated[str, Field(max_length=20_000)] | None = None
    blocked_on: Annotated[str, Field(max_length=2_000)] | None = None


def compaction_status(actor: Actor, session: Session, data: dict[str, Any]) -> Answer:
    told = read_data("external_compaction_status", CompactionStatus, data)
    external.report_compaction(actor=actor, session=session, status=told.status, operation_id=told.operation_id)
    return created(NOT_QUEUED, status=202)


def checkpoint(actor: Actor, session: Session, data: dict[str, Any]) -> Answer:
    told = read_data("compaction", Checkpoint, data)
    messages = None if told.compacted_messages is None else tuple(told.compacted_messages)
    report = CheckpointReport(**told.model_dump(exclude={"compacted_messages"}), compacted_messages=messages)
    return created({"queued": True, "item_id": store_checkpoint(actor=actor, session=session, report=report)}, status=202)


def session_usage(actor: Actor, session: Session, data: dict[str, Any]) -> Answer:
    name = "external_session_usage"
    told = read_data(name, SessionUsage, data)
    given = told.model_dump(exclude_none=True)
    if not given.keys() - {"model", "cumulative_cache_read_input_tokens"}:
        raise invalid(name, "data", "one of context_tokens, context_window, or a cumulative number is needed")
    external.report_usage(actor=actor, session=session, context_tokens=told.context_tokens, window=told.context_window, told=given)
    return created(NOT_QUEUED, status=202)


def call_usage(actor: Actor, session: Session, data: dict[str, Any]) -> Answer:
    """The next request holds what this one held, and its answer."""
    told = read_data("usage", CallUsage, data)
    held = told.input_tokens + told.cache_read_input_tokens + told.cache_creation_input_tokens + told.output_tokens
    external.report_usage(actor=actor, session=session, context_tokens=held, told=told.model_dump())
    return created(NOT_QUEUED, status=202)


def session_status(actor: Actor, session: Session, data: dict[str, Any]) -> Answer:
    told = read_data("external_session_status", SessionState, data)
    more = told.model_dump(exclude={"status"}, exclude_none=True)
    external.report_status(actor=actor, session=session, status=told.status, told=more)
    return created(NOT_QUEUED, status=202)


REPORTS: Mapping[str, Report] = {
    "compaction": checkpoint,
    "external_compaction_status": compaction_status,
    "external_session_status": session_status,
    "external_session_usage": session_usage,
    "usage": call_usage,
}
