"""`/v1/sessions/{id}/compactions`: the ledger, one attempt, what a compaction would do, and what becomes of one."""

import uuid
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Field, Query, Router, Schema
from pydantic import ConfigDict

from sessions_app.api.auth import actor_of
from sessions_app.api.errors import ApiError
from sessions_app.api.pagination import ListOut, PageQuery, list_of, unknown_cursor
from sessions_app.engine.extractive import ExtractiveSummariser
from sessions_app.engine.terms import Profile
from sessions_app.events.actors import Actor
from sessions_app.models import Session
from sessions_app.permissions import Action, access_session, unknown
from sessions_app.selectors import plans
from sessions_app.selectors.compact_preview import PreviewOptions, compact_preview
from sessions_app.selectors.compactions_page import AttemptDetail, LedgerRow, attempt_detail, attempt_row, ledger_rows
from sessions_app.services.access import record_view
from sessions_app.services.compactions import drafts
from sessions_app.services.compactions.cancel import UnknownCompaction, cancel
from sessions_app.services.compactions.revert import revert
from sessions_app.shapes import Shape, detail_shape, ledger_shape

router = Router()

MOST = 10**9
MOST_POLICIES = 10


@router.get("/{uuid:session_id}/compactions", response=ListOut)
def list_compactions(request: HttpRequest, session_id: uuid.UUID, asked: Query[PageQuery]) -> dict[str, Any]:
    """The ledger: every attempt, the latest first unless asked otherwise."""
    actor = actor_of(request)
    session = access_session(actor, session_id, Action.READ)
    named, is_before = asked.cursor()
    beyond = _number(session, named, "before" if is_before else "after") if named else None
    descending = (asked.order != "asc") != is_before
    rows, has_more = ledger_rows(session, beyond=beyond, descending=descending, limit=asked.limit)
    record_view(actor=actor, session=session)
    return list_of(map(ledger_shape, rows[::-1] if is_before else rows), has_more=has_more)


def _number(session: Session, named: str, field: str) -> int:
    """The number of an attempt by its id."""
    try:
        row = attempt_row(session, uuid.UUID(named))
    except ValueError:
        row = None
    if row is None:
        raise unknown_cursor(field)
    return row.attempt.attempt


@router.get("/{uuid:session_id}/compactions/{uuid:compaction_id}", response=dict[str, Any])
def read_compaction(request: HttpRequest, session_id: uuid.UUID, compaction_id: uuid.UUID) -> Shape:
    """One attempt with its summary, state, policy as it was, and what it kept of the facts."""
    actor = actor_of(request)
    session = access_session(actor, session_id, Action.READ)
    detail = attempt_detail(session, compaction_id)
    if detail is None:
        raise unknown(actor, "compaction", compaction_id, Action.READ)
    record_view(actor=actor, session=session)
    return detail_shape(detail) | {"retention": _retention(detail), "has_draft": detail.has_draft}


def _retention(detail: AttemptDetail) -> Shape | None:
    report = detail.report
    if report is None:
        return None
    return {
        "coverage": report.coverage.value,
        "total": report.total,
        "by_class": report.retention.classes,
        "unsupported": list(report.unsupported),
    }


class PolicyIn(Schema):
    """Options of one compaction. What is left out is as the policy says."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(max_length=100)] = ""
    profile: Profile | None = None
    boundary: Annotated[int, Field(ge=1, le=MOST)] | None = None
    force: bool = False
    summariser: Annotated[str, Field(max_length=100)] = ""


class PreviewIn(Schema):
    """What to try: one plan as the policy says, or one for each of the options."""

    model_config = ConfigDict(extra="forbid")

    policies: Annotated[list[PolicyIn], Field(min_length=1, max_length=MOST_POLICIES, default_factory=lambda: [PolicyIn()])]


@router.post("/{uuid:session_id}/compactions/preview", response=dict[str, Any])
def preview_compaction(request: HttpRequest, session_id: uuid.UUID, body: PreviewIn | None = None) -> Shape:
    """What a compaction would do, without doing it: one plan for each of the policies."""
    actor = actor_of(request)
    session = access_session(actor, session_id, Action.COMPACT)
    asked = body.policies if body else [PolicyIn()]
    known = (*plans.effective_policy(session).policy.summarisers, ExtractiveSummariser.name)
    for number, policy in enumerate(asked):
        if policy.summariser and policy.summariser not in known:
            message = f"There is no summariser {policy.summariser!r} here; there are {', '.join(dict.fromkeys(known))}. Nothing was done."
            raise ApiError("invalid_input", message, field=f"policies.{number}.summariser")
    record_view(actor=actor, session=session)
    return {"object": "preview", "session_id": session.pk, "plans": [_plan(session, policy) for policy in asked]}


def _plan(session: Session, asked: PolicyIn) -> Shape:
    options = PreviewOptions(asked.profile or "", asked.boundary, asked.force, asked.summariser)
    preview = compact_preview(session, options)
    return {"name": asked.name or None} | asdict(preview) | {"refusal": preview.refusal or None}


class CommitIn(Schema):
    """`version`: the wording that was read; the draft is committed only if it is still the latest."""

    model_config = ConfigDict(extra="forbid")

    version: Annotated[int, Field(ge=1, le=MOST)] | None = None


class RevertIn(Schema):
    """`as_it_was`: also pins and exclusions go back to what they were then."""

    model_config = ConfigDict(extra="forbid")

    as_it_was: bool = False


@router.post("/{uuid:session_id}/compactions/{uuid:compaction_id}/cancel", response=dict[str, Any])
def cancel_compaction(request: HttpRequest, session_id: uuid.UUID, compaction_id: uuid.UUID) -> Shape:
    """Ends an open attempt, within a second where it runs. One that has ended is answered as it is."""
    return _act(request, session_id, compaction_id, Action.CANCEL, cancel)


@router.post("/{uuid:session_id}/compactions/{uuid:compaction_id}/commit", response=dict[str, Any])
def commit_draft(request: HttpRequest, session_id: uuid.UUID, compaction_id: uuid.UUID, body: CommitIn | None = None) -> Shape:
    """Commits a draft that waits for review."""
    return _act(request, session_id, compaction_id, Action.DRAFT, drafts.commit_draft, version=body.version if body else None)


@router.post("/{uuid:session_id}/compactions/{uuid:compaction_id}/discard", response=dict[str, Any])
def discard_draft(request: HttpRequest, session_id: uuid.UUID, compaction_id: uuid.UUID) -> Shape:
    """Discards a draft that waits for review."""
    return _act(request, session_id, compaction_id, Action.DRAFT, drafts.discard)


@router.post("/{uuid:session_id}/compactions/{uuid:compaction_id}/revert", response=dict[str, Any])
def revert_compaction(request: HttpRequest, session_id: uuid.UUID, compaction_id: uuid.UUID, body: RevertIn | None = None) -> Shape:
    """Takes a checkpoint of this console that is in force back: what was in force before it is again."""

    def undo(*, actor: Actor, session: Session, compaction_id: uuid.UUID, as_it_was: bool) -> None:
        row = _row(session, compaction_id)
        if session.active_console_id != compaction_id:
            raise ApiError(
                "conflict", "That checkpoint is not the one that this console has in force. Nothing was changed.", retryable=False
            )
        revert(actor=actor, session=session, generation=row.attempt.revert_to or None, as_it_was=as_it_was)

    return _act(request, session_id, compaction_id, Action.REVERT, undo, as_it_was=bool(body and body.as_it_was))


@router.post("/{uuid:session_id}/compactions/{uuid:compaction_id}/restore", response=dict[str, Any])
def restore_compaction(request: HttpRequest, session_id: uuid.UUID, compaction_id: uuid.UUID, body: RevertIn | None = None) -> Shape:
    """Puts a checkpoint in force again."""

    def redo(*, actor: Actor, session: Session, compaction_id: uuid.UUID, as_it_was: bool) -> None:
        generation = _row(session, compaction_id).attempt.generation
        if generation is None:
            raise ApiError("conflict", "That attempt left no checkpoint. Nothing was changed.", retryable=False)
        revert(actor=actor, session=session, generation=generation, as_it_was=as_it_was)

    return _act(request, session_id, compaction_id, Action.REVERT, redo, as_it_was=bool(body and body.as_it_was))


def _act(
    request: HttpRequest, session_id: uuid.UUID, compaction_id: uuid.UUID, action: Action, do: Callable[..., object], **options: Any
) -> Shape:
    """Does something with an attempt, and answers the attempt as it is then."""
    actor = actor_of(request)
    session = access_session(actor, session_id, action)
    do(actor=actor, session=session, compaction_id=compaction_id, **options)
    return ledger_shape(_row(access_session(actor, session_id, action), compaction_id))


def _row(session: Session, compaction_id: uuid.UUID) -> LedgerRow:
    row = attempt_row(session, compaction_id)
    if row is None:
        raise UnknownCompaction("This session has no such compaction. Nothing was changed.")
    return row
