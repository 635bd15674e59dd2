"""What leaves the console: the page that offers it, and the downloads."""

import uuid
from pathlib import PurePath

from django.core.exceptions import BadRequest
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_POST, require_safe

from sessions_app import permissions
from sessions_app.permissions import Action
from sessions_app.rendering.streams import download
from sessions_app.selectors import continuation, raw_page
from sessions_app.services.exports import ExportKind, export_continuation, export_entries, export_original, name_of
from sessions_app.views.pages import PageRequest, render_page
from sessions_app.views.session_context import open_session
from sessions_app.writers.base import CannotContinue


@require_safe
def session_exports(request: PageRequest, session_id: uuid.UUID) -> HttpResponse:
    """In which forms this session can be had, and how its agent goes on with our view of it."""
    permissions.access_session(permissions.actor_of(request), session_id, Action.EXPORT)
    return _page(request, session_id)


@require_safe
def session_export(request: PageRequest, session_id: uuid.UUID) -> HttpResponseBase:
    """One of them as a download: without `format` the source, byte for byte."""
    actor = permissions.actor_of(request)
    session = permissions.access_session(actor, session_id, Action.EXPORT)
    asked = request.GET.get("format", ExportKind.ORIGINAL)
    if asked in (ExportKind.JSONL, ExportKind.MARKDOWN):
        kind = ExportKind(asked)
        return download(request, name_of(session, kind), export_entries(actor=actor, session=session, kind=kind))
    if asked != ExportKind.ORIGINAL:
        raise BadRequest("There is no such format. Nothing was exported. Choose one on the page of exports.")
    exported = export_original(actor=actor, session=session)
    if exported is None:
        raise Http404
    source, stream = exported
    return download(request, PurePath(source.path).name or "session", stream, size=source.size)


@require_POST
def session_continuation(request: PageRequest, session_id: uuid.UUID) -> HttpResponseBase:
    """A new session file for the agent, as a download."""
    actor = permissions.actor_of(request)
    session = permissions.access_session(actor, session_id, Action.EXPORT)
    try:
        written = export_continuation(actor=actor, session=session)
    except CannotContinue as error:
        return _page(request, session_id, refusal=f"{error} Nothing was exported.")
    return download(request, written.place.name, written.chunks(), size=written.size)


def _page(request: PageRequest, session_id: uuid.UUID, refusal: str = "") -> HttpResponse:
    session, context = open_session(request, session_id, "")
    context |= {
        "source": raw_page.source_of(session),
        "offer": continuation.offer_of(session),
        "place": continuation.place_of(session),
        "refusal": refusal,
    }
    return render_page(request, "exports/list.html", context, status=409 if refusal else 200)
