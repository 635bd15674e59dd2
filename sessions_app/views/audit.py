"""The audit log: all streams in one table, one event, a notice of newer ones, exports, and the proof that it is whole."""

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from sessions_app.events.actors import Actor
from sessions_app.forms import AuditForm, StreamForm
from sessions_app.permissions import Action, actor_of, require
from sessions_app.rendering.audit import OpenedEvent, audit_lines, opened_event
from sessions_app.rendering.streams import one_by_one
from sessions_app.selectors import audit, audit_event, audit_filters, audit_streams
from sessions_app.services import audit as audits
from sessions_app.services import audit_verification as verification
from sessions_app.views.audit_links import audit_links, newest_link, result_links
from sessions_app.views.pages import PageRequest, render_page

CONTENT_TYPES = {"jsonl": "application/x-ndjson; charset=utf-8", "csv": "text/csv; charset=utf-8"}


@require_safe
def audit_list(request: PageRequest) -> HttpResponse:
    """All events that match, a hundred at a time; with `opened`, one of them in full below its row."""
    actor = _admin(request)
    form = AuditForm(request.GET)
    filters = form.filters()
    page = _page(form, filters)
    context = {
        "page": page,
        "lines": audit_lines(page.events, audit_event.targets_of(page.events)),
        "matching": audit.count_matching(filters),
        "filters": filters,
        "choices": audit_filters.choices(filters),
        "texts": audit_filters.texts(filters),
        "results": result_links(filters, audit_filters.RESULTS),
        "links": audit_links(request.GET, filters, page),
        "opened": _opened(form.place("opened")),
        "log": audit_streams.summary(),
        "looked_at": audit.LOOKED_AT,
    }
    audits.record_view(actor=actor, filters=filters)  # last: the page does not hold it, so its counts must not either
    return render_page(request, "audit/list.html", context, partial="results")


@require_safe
def audit_newer(request: PageRequest) -> HttpResponse:
    """How many matching events came after the page was read: the part that the page asks for again and again."""
    _admin(request)
    form = AuditForm(request.GET)
    filters = form.filters()
    newer = audit.count_newer(filters, form.place("newer_than") or 0)
    return render_page(request, "audit/newer.html", {"newer": newer, "url": newest_link(filters)}, partial="notice")


@require_safe
def audit_detail(request: PageRequest, event_id: int) -> HttpResponse:
    """One event at an address of its own."""
    actor = _admin(request)
    opened = _opened(event_id)
    if opened is None:
        raise Http404
    audits.record_view(actor=actor, filters=audit.AuditFilters())
    return render_page(request, "audit/detail.html", {"opened": opened})


@require_safe
def audit_export(request: PageRequest) -> HttpResponseBase:
    """The events that match, as a file that comes as it is read."""
    actor = _admin(request)
    form = AuditForm(request.GET)
    filters = form.filters()
    file_format = form.cleaned_data["format"] or "jsonl"
    stream = audits.export(actor=actor, filters=filters, file_format=file_format)
    response = StreamingHttpResponse(one_by_one(request, stream), content_type=CONTENT_TYPES[file_format])
    name = f"palimpsest-events-{timezone.now():%Y%m%dT%H%M%SZ}.{file_format}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


@require_http_methods(["GET", "HEAD", "POST"])
def audit_verify(request: PageRequest) -> HttpResponse:
    """Each stream with its head and verdict; posted, one step of a verification, which the page then asks to go on."""
    actor = _admin(request)
    run = _step(request, actor) if request.method == "POST" else None
    context: dict[str, object] = {
        "run": run if run and not run.is_done else None,
        "page": audit_streams.streams_page(after=StreamForm(request.GET).text("after")),
        "last": audit_streams.last_verification(),
        "log": audit_streams.summary(),
    }
    return render_page(request, "audit/verify.html", context, partial="verification")


@require_POST
def audit_verify_stream(request: PageRequest) -> HttpResponse:
    """Verifies one stream and says at once what came of it."""
    actor = _admin(request)
    stream = StreamForm(request.POST).text("stream")
    verdict = verification.verify_one(actor=actor, stream=stream)
    if verdict.broken_at is None:
        messages.success(request, f"{stream}: all {verdict.events:,} events are as they were written.")
    else:
        messages.error(request, f"{stream}: broken at event {verdict.broken_at}: {verdict.reason}.")
    return redirect("audit-verify")


def _step(request: PageRequest, actor: Actor) -> verification.Run:
    try:
        return verification.step(actor=actor, state=request.POST.get("state", ""), total=audit_streams.summary().events)
    except verification.UnknownRunError as error:
        raise BadRequest(str(error)) from error


def _admin(request: PageRequest) -> Actor:
    actor = actor_of(request)
    require(actor, Action.AUDIT, target=audits.TARGET)
    return actor


def _page(form: AuditForm, filters: audit.AuditFilters) -> audit.AuditPage:
    try:
        return audit.audit_page(filters, before=form.place("before"), after=form.place("after"))
    except audit.UnknownPlaceError as error:
        raise BadRequest("There is no event at the place where this page would begin. Start again from the newest.") from error


def _opened(event_id: int | None) -> OpenedEvent | None:
    found = audit_event.audit_event(event_id) if event_id is not None else None
    if found is None:
        return None
    return opened_event(found, audit_event.targets_of([found.event, *found.same_gesture, *found.same_request]))
