"""`/v1/events`: the audit log, as files too, and the proof that it is whole."""

import uuid
from enum import StrEnum
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from ninja import Field, Query, Router, Schema
from pydantic import AwareDatetime

from sessions_app.api.auth import actor_of
from sessions_app.api.errors import ApiError
from sessions_app.api.pagination import MOST, ListOut, list_of, unknown_cursor
from sessions_app.api.wire import Word, file_answer
from sessions_app.events.actors import Actor
from sessions_app.models import ActorKind, EventResult
from sessions_app.permissions import Action, require
from sessions_app.rendering.streams import download
from sessions_app.selectors import audit, audit_streams
from sessions_app.selectors.audit import AuditFilters
from sessions_app.services import audit as audits
from sessions_app.services import audit_verification as verification
from sessions_app.shapes import Shape, event_shape

router = Router()

MAX_ID = 2**62
Text = Annotated[Word, Field(max_length=150)]


class Family(StrEnum):
    """Kinds of streams."""

    SESSION = "session"
    SECURITY = "security"
    ACCESS = "access"
    IMPORTS = "imports"
    PROJECT = "project"


class EventsFilter(Schema):
    """Filters. `type`: of the event; `kind`: of the actor; `q`: a word of the reason or payload."""

    stream: Annotated[Word, Field(max_length=80)] = ""
    family: Family | None = None
    actor: Text = ""
    kind: ActorKind | None = None
    role: Literal["operator", "support", "admin"] | None = None
    type: Annotated[Word, Field(max_length=60)] = ""
    session: uuid.UUID | None = None
    target: Annotated[Word, Field(max_length=64)] = ""
    result: EventResult | None = None
    compaction: uuid.UUID | None = None
    request: Annotated[Word, Field(max_length=64)] = ""
    gesture: Annotated[Word, Field(max_length=64)] = ""
    address: Annotated[Word, Field(max_length=64)] = ""
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    q: Annotated[Word, Field(max_length=200)] = ""

    def filters(self) -> AuditFilters:
        moments = ("since", "until")
        words = {name: getattr(self, name) for name in EventsFilter.model_fields if name not in ("type", *moments)}
        given = {name: str(value) for name, value in words.items() if value}
        return AuditFilters(**given, action=self.type, since=self.since, until=self.until)


class EventsQuery(EventsFilter):
    """`after` and `before` are ids of events; the newest stand first."""

    after: Annotated[int, Field(ge=1, le=MAX_ID)] | None = None
    before: Annotated[int, Field(ge=1, le=MAX_ID)] | None = None
    limit: Annotated[int, Field(ge=1, le=MOST)] = 100
    order: Literal["desc"] = "desc"


class ExportFilter(EventsFilter):
    format: Literal["jsonl", "csv"] = "jsonl"


class VerifyQuery(Schema):
    """`state`: what the last answer said, to go on; `stream`: only this one, at once."""

    state: Annotated[str, Field(max_length=5_000)] = ""
    stream: Annotated[Word, Field(max_length=80)] = ""


@router.get("", response=ListOut)
def list_events(request: HttpRequest, asked: Query[EventsQuery]) -> dict[str, Any]:
    """All events that match, the newest first. Where many do not match, a part may be short and still have more behind it."""
    actor = _admin(request)
    if asked.after and asked.before:
        raise ApiError("invalid_input", "Give after or before, not both. Nothing was read.", field="before")
    filters = asked.filters()
    try:
        page = audit.audit_page(filters, before=asked.after, after=asked.before, size=asked.limit)
    except audit.UnknownPlaceError as error:
        raise unknown_cursor("after" if asked.after else "before") from error
    further = page.newer if asked.before else page.older
    audits.record_view(actor=actor, filters=filters)
    told = list_of(map(event_shape, page.events), has_more=further is not None)
    if further is not None and page.searched_back_to:
        told["last_id" if asked.after or not asked.before else "first_id"] = str(further)  # so far it was looked for more
    return told


@router.get("/export", openapi_extra=file_answer("JSON lines or a table"))
def export_events(request: HttpRequest, asked: Query[ExportFilter]) -> HttpResponseBase:
    """All events that match, the oldest first, as JSON lines or a table."""
    actor = _admin(request)
    chunks = audits.export(actor=actor, filters=asked.filters(), file_format=asked.format)
    return download(request, f"palimpsest-events-{timezone.now():%Y%m%dT%H%M%SZ}.{asked.format}", chunks)


@router.get("/verify", response=dict[str, Any])
def verify_events(request: HttpRequest, asked: Query[VerifyQuery]) -> Shape:
    """Verifies for about a second. Until `is_done`, ask again with the `state` that was answered."""
    actor = _admin(request)
    if asked.stream:
        verdict = verification.verify_one(actor=actor, stream=asked.stream)
        return {
            "object": "verdict",
            "stream": asked.stream,
            "events": verdict.events,
            "broken_at": verdict.broken_at,
            "reason": verdict.reason,
        }
    try:
        run = verification.step(actor=actor, state=asked.state, total=audit_streams.summary().events)
    except verification.UnknownRunError as error:
        raise ApiError(
            "invalid_input", "This state is none that was answered within the hour. Begin without one.", field="state"
        ) from error
    faults = [{"stream": fault.stream, "broken_at": fault.seq, "reason": fault.reason} for fault in run.faults]
    told = {"object": "verification", "is_done": run.is_done, "events": run.events, "total": run.total}
    return told | {"broken_count": run.broken_count, "faults": faults, "state": None if run.is_done else run.state}


def _admin(request: HttpRequest) -> Actor:
    actor = actor_of(request)
    require(actor, Action.AUDIT, target=audits.TARGET)
    return actor
