"""Imports: give files, see how far they are and what came of each."""

import uuid

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from sessions_app.forms import UploadForm
from sessions_app.permissions import Action, access_session, actor_of, require, unknown
from sessions_app.selectors import imports_page
from sessions_app.selectors.raw_page import ReportPage, parse_report
from sessions_app.services import imports
from sessions_app.views.pages import PageRequest, render_page


@require_http_methods(["GET", "HEAD", "POST"])
def import_list(request: PageRequest) -> HttpResponse:
    actor = actor_of(request)
    require(actor, Action.IMPORT)
    form = UploadForm(request.POST, request.FILES) if request.method == "POST" else UploadForm()
    if request.method == "POST" and form.is_valid():
        runs = [imports.request_upload(actor=actor, upload=file) for file in form.cleaned_data["transcripts"]]
        return redirect("import-detail", runs[0].pk) if len(runs) == 1 else redirect("import-list")
    rows = imports_page.runs()
    context = {
        "form": form,
        "rows": rows,
        "is_open": any(row.is_open for row in rows),
        "limit": settings.UPLOAD_MAX_BYTES,
    }
    return render_page(request, "imports/list.html", context, partial="runs", status=422 if form.errors else 200)


@require_safe
def import_detail(request: PageRequest, run_id: uuid.UUID) -> HttpResponse:
    require(actor_of(request), Action.IMPORT)
    page = _page(request, run_id)
    wanted = request.GET.get("report") or (page.files[0].session_id if len(page.files) == 1 else "")
    context = {"page": page, "reported": wanted, "report": _report(request, page, wanted)}
    return render_page(request, "imports/detail.html", context, partial="run")


@require_POST
def import_cancel(request: PageRequest, run_id: uuid.UUID) -> HttpResponse:
    actor = actor_of(request)
    require(actor, Action.IMPORT)  # before the look: whether there is such a run is not for everybody
    _page(request, run_id)
    imports.cancel_import(actor=actor, run_id=run_id)
    return redirect("import-detail", run_id)


def _page(request: PageRequest, run_id: uuid.UUID) -> imports_page.ImportPage:
    page = imports_page.run_page(run_id)
    if page is None:
        raise unknown(actor_of(request), "import", run_id, Action.IMPORT)
    return page


def _report(request: PageRequest, page: imports_page.ImportPage, session_id: str) -> ReportPage | None:
    """What was found in one of the run's files; only sessions of this run are looked up."""
    if not session_id or session_id not in {file.session_id for file in page.files}:
        return None
    return parse_report(access_session(actor_of(request), session_id, Action.READ))
