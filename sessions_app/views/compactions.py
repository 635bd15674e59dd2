"""Compactions of a session: preview and request, panel, cancel, revert, ledger."""

import uuid

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from sessions_app import permissions
from sessions_app.compaction_forms import CompactForm, CompactStartForm, CompareForm, RevertForm
from sessions_app.forms import PlaceForm
from sessions_app.models import Session
from sessions_app.permissions import Action
from sessions_app.rendering.ledger import compared_summaries, detail_view
from sessions_app.selectors import compaction_panel as panels
from sessions_app.selectors import plans, session_page
from sessions_app.selectors.compact_preview import PreviewOptions, beside, compact_preview, strip
from sessions_app.selectors.compaction_costs import costs_of
from sessions_app.selectors.compactions_page import attempt_detail, comparison, ledger_page, request_of
from sessions_app.services.access import record_view
from sessions_app.services.compactions.cancel import UnknownCompaction, cancel
from sessions_app.services.compactions.request import InvalidRequest, Undecided
from sessions_app.services.compactions.request import request as request_compaction
from sessions_app.services.compactions.revert import CompactionUnderWay, UnknownGeneration, revert
from sessions_app.views.pages import PageRequest, render_page, wants_fragment
from sessions_app.views.session_context import Context, open_session

DIALOG_DONE = "palimpsest:dialog-done"


@require_http_methods(["GET", "HEAD", "POST"])
def compaction_create(request: PageRequest, session_id: uuid.UUID) -> HttpResponse:
    """The preview, as a dialog or a page; posted, the request itself."""
    actor = permissions.actor_of(request)
    session = permissions.access_session(actor, session_id, Action.COMPACT)
    form = _compact_form(request, session)
    if request.method == "POST" and not {"preview", "move"} & request.POST.keys() and form.is_valid():
        try:
            answer = request_compaction(actor=actor, session=session, **form.request())
        except InvalidRequest as error:
            form.add_error(error.field if error.field in form.fields else None, str(error))
        except Undecided as error:
            form.add_error(None, str(error))
        else:
            joined = (
                f"A compaction of {answer.compaction.requested_by or 'this session'} was under way already; you are following that one."
            )
            return _done(request, session, joined if answer.joined else "")
    record_view(actor=actor, session=session)
    return _preview(request, session, form)


@require_safe
def compaction_panel(request: PageRequest, session_id: uuid.UUID) -> HttpResponse:
    _, context = open_session(request, session_id, "history")
    return render_page(request, "compactions/panel.html", context, partial="components/compaction_panel.html")


@require_POST
def compaction_cancel(request: PageRequest, session_id: uuid.UUID, compaction_id: uuid.UUID) -> HttpResponse:
    actor = permissions.actor_of(request)
    session = permissions.access_session(actor, session_id, Action.CANCEL)
    try:
        cancel(actor=actor, session=session, compaction_id=compaction_id)
    except UnknownCompaction as error:
        raise Http404 from error
    if not wants_fragment(request):
        return _done(request, session, "")
    # The panel alone and no other target: the socket may have replaced the form meanwhile, and then this answer is dropped.
    return render(request, "components/compaction_panel.html", {"panel": panels.panel(session.pk)})


@require_http_methods(["GET", "HEAD", "POST"])
def compaction_revert(request: PageRequest, session_id: uuid.UUID) -> HttpResponse:
    """Asks first, then makes another generation, or none, the one that this console shows."""
    actor = permissions.actor_of(request)
    session = permissions.access_session(actor, session_id, Action.REVERT)
    form = RevertForm(request.POST if request.method == "POST" else request.GET)
    if not form.is_valid():
        raise BadRequest("A generation is a number that stands in the ledger. Nothing was changed.")
    wanted = form.cleaned_data["generation"]
    if request.method != "POST":
        return _ask_revert(request, session, wanted)
    try:
        revert(actor=actor, session=session, generation=wanted or None, as_it_was=form.cleaned_data["as_it_was"])
    except (UnknownGeneration, CompactionUnderWay) as error:
        return _ask_revert(request, session, wanted, refusal=str(error))
    return _done(request, session, f"The view is generation #{wanted} now." if wanted else "The view is the whole history again.")


@require_safe
def compaction_list(request: PageRequest, session_id: uuid.UUID) -> HttpResponse:
    session, context = open_session(request, session_id, "compactions")
    context["ledger"] = ledger_page(session, before=PlaceForm(request.GET).place("before"))
    return render_page(request, "compactions/list.html", context, partial="ledger")


@require_safe
def compaction_detail(request: PageRequest, session_id: uuid.UUID, compaction_id: uuid.UUID) -> HttpResponse:
    session, context = open_session(request, session_id, "compactions")
    detail = attempt_detail(session, compaction_id)
    if detail is None:
        raise Http404
    context |= {"detail": detail, "view": detail_view(detail)}
    return render_page(request, "compactions/detail.html", context, partial="body")


@require_safe
def compaction_compare(request: PageRequest, session_id: uuid.UUID) -> HttpResponse:
    """Two attempts side by side: `?one=` and `?other=`, by their numbers."""
    session, context = open_session(request, session_id, "compactions")
    form = CompareForm(request.GET)
    if not form.is_valid():
        raise BadRequest("An attempt is a number that stands in the ledger.")
    found = comparison(session, form.cleaned_data["one"], form.cleaned_data["other"])
    diff, added, removed = compared_summaries(found) if found else ("", 0, 0)
    context |= {"comparison": found, "diff": diff, "added": added, "removed": removed}
    return render_page(request, "compactions/compare.html", context)


def _compact_form(request: PageRequest, session: Session) -> CompactForm:
    """What was sent; on a first look what the address says, or what an earlier attempt (`again`) was asked for."""
    policy = plans.effective_policy(session).policy
    if request.method != "POST":
        start = CompactStartForm(request.GET)
        earlier = request_of(session, start.again())
        return CompactForm(policy=policy, initial=earlier | start.given())
    data = request.POST.copy()
    if move := request.POST.get("move"):
        data["boundary"] = move  # the button that goes to another cut
    return CompactForm(data, policy=policy)


def _preview(request: PageRequest, session: Session, form: CompactForm) -> HttpResponse:
    options = form.plan_options()
    preview = compact_preview(session, options)
    alternative = form.alternative()
    context: Context = {
        "costs": costs_of(session, preview),
        "other": compact_preview(session, beside(options, alternative)),
        "alternative": alternative,
        "is_changed": options != PreviewOptions(),
        "strip": strip(session, preview.boundary_index),
        "chosen_x": 1000 * preview.boundary_index // max(1, session.entry_count),
        "session": session,
        "header": session_page.header(session.pk),
        "form": form,
        "preview": preview,
        "is_fragment": wants_fragment(request),
    }
    response = render_page(request, "compactions/create.html", context, partial="dialog", status=422 if form.errors else 200)
    if form.errors:
        response["X-Fragment"] = "form"  # to be shown in its place, although it is a refusal
    return response


def _ask_revert(request: PageRequest, session: Session, wanted: int | None, refusal: str = "") -> HttpResponse:
    context: Context = {
        "session": session,
        "header": session_page.header(session.pk),
        "wanted": wanted,
        "has_overrides": bool(session.overrides),
        "refusal": refusal,
        "is_fragment": wants_fragment(request),
    }
    return render_page(request, "compactions/revert.html", context, partial="dialog", status=422 if refusal else 200)


def _done(request: PageRequest, session: Session, sentence: str) -> HttpResponse:
    """After an action: panel and gauge as they are now for htmx, else back to the page that shows them."""
    if not wants_fragment(request):
        if sentence:
            messages.info(request, sentence)
        return redirect(f"{reverse('session-detail', args=[session.pk])}#compaction-panel")
    context: Context = {
        "panel": panels.panel(session.pk),
        "header": session_page.header(session.pk),
        "sentence": sentence,
        "may_steer": True,
    }
    response = render(request, "compactions/done.html", context)
    response["HX-Retarget"], response["HX-Reswap"], response["HX-Trigger"] = "#compaction-panel", "outerHTML", DIALOG_DONE
    return response
