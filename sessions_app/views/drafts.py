"""Drafts of a session: reading and wording one, committing or discarding it."""

import uuid

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from sessions_app import permissions
from sessions_app.compaction_forms import DraftForm, VersionForm
from sessions_app.engine.terms import Status
from sessions_app.models import Compaction, Session
from sessions_app.permissions import Action
from sessions_app.rendering.drafts import draft_view
from sessions_app.selectors import drafts_page
from sessions_app.services.compactions import drafts
from sessions_app.services.compactions.cancel import UnknownCompaction
from sessions_app.services.compactions.revert import CompactionUnderWay
from sessions_app.views.pages import PageRequest, render_page
from sessions_app.views.session_context import open_session

REFUSALS = (drafts.NotADraft, drafts.DraftChanged, drafts.DraftBlocked, CompactionUnderWay)


@require_http_methods(["GET", "HEAD", "POST"])
def draft_detail(request: PageRequest, session_id: uuid.UUID, compaction_id: uuid.UUID) -> HttpResponse:
    """The draft at its latest version, or at `?version=`; posted, another wording."""
    if request.method != "POST":
        return _page(request, session_id, compaction_id)
    actor = permissions.actor_of(request)
    session = permissions.access_session(actor, session_id, Action.DRAFT)
    form = DraftForm(request.POST)
    if not form.is_valid():
        return _page(request, session_id, compaction_id, form)
    try:
        saved = drafts.edit(actor=actor, session=session, compaction_id=compaction_id, **form.wording())
    except UnknownCompaction as error:
        raise Http404 from error
    except (drafts.DraftChanged, drafts.NotADraft, drafts.InvalidSummary) as error:
        form.add_error("text", str(error))
        return _page(request, session_id, compaction_id, form)
    messages.success(request, f"Saved as version {saved.version}. Nothing is committed yet.")
    return redirect("draft-detail", session_id, compaction_id)


@require_POST
def draft_commit(request: PageRequest, session_id: uuid.UUID, compaction_id: uuid.UUID) -> HttpResponse:
    actor = permissions.actor_of(request)
    session = permissions.access_session(actor, session_id, Action.DRAFT)
    try:
        done = drafts.commit_draft(actor=actor, session=session, compaction_id=compaction_id, version=_version(request))
    except UnknownCompaction as error:
        raise Http404 from error
    except REFUSALS as error:
        return _refused(request, session, compaction_id, error)
    return _decided(request, session, done)


@require_POST
def draft_discard(request: PageRequest, session_id: uuid.UUID, compaction_id: uuid.UUID) -> HttpResponse:
    actor = permissions.actor_of(request)
    session = permissions.access_session(actor, session_id, Action.DRAFT)
    try:
        done = drafts.discard(actor=actor, session=session, compaction_id=compaction_id)
    except UnknownCompaction as error:
        raise Http404 from error
    except drafts.NotADraft as error:
        return _refused(request, session, compaction_id, error)
    return _decided(request, session, done)


@require_safe
def draft_list(request: PageRequest) -> HttpResponse:
    """All drafts that wait, of all sessions."""
    actor = permissions.actor_of(request)
    permissions.require(actor, Action.READ)
    return render(request, "compactions/drafts.html", {"drafts": drafts_page.waiting_drafts()})


def _page(request: PageRequest, session_id: uuid.UUID, compaction_id: uuid.UUID, form: DraftForm | None = None) -> HttpResponse:
    session, context = open_session(request, session_id, "compactions")
    page = drafts_page.draft_page(session, compaction_id, None if form else _version(request))
    if page is None:
        raise Http404
    base = VersionForm(request.GET)
    context |= {
        "page": page,
        "view": draft_view(page, worded=form.data.get("text", "") if form else None),
        "form": form or DraftForm(initial={"text": page.shown.text, "base_version": page.latest.version}),
        "base": (base.cleaned_data["base"] if base.is_valid() else None) or page.latest.version,
    }
    return render_page(request, "compactions/draft.html", context, partial="state", status=422 if form else 200)


def _version(request: PageRequest) -> int | None:
    form = VersionForm(request.POST if request.method == "POST" else request.GET)
    if not form.is_valid():
        raise BadRequest("A version is a number that stands in the list of versions. Nothing was changed.")
    version: int | None = form.cleaned_data["version"]
    return version


def _refused(request: PageRequest, session: Session, compaction_id: uuid.UUID, error: Exception) -> HttpResponse:
    messages.error(request, str(error))
    return redirect("draft-detail", session.pk, compaction_id)


def _decided(request: PageRequest, session: Session, done: Compaction) -> HttpResponse:
    """After a decision: to the history where it counts, else to the attempt in the ledger, which says what became of it."""
    if done.status == Status.COMPLETED:
        messages.success(request, f"Draft a{done.attempt} is committed as generation #{done.generation}.")
        return redirect(f"{reverse('session-detail', args=[session.pk])}#compaction-panel")
    messages.info(request, done.explanation)
    return redirect("compaction-detail", session.pk, done.pk)
