"""The original records of a session: one of an entry, and all in order."""

import uuid

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_safe

from sessions_app.forms import RawForm
from sessions_app.rendering.part_html import record_view
from sessions_app.selectors import raw_page
from sessions_app.views.pages import PageRequest, render_page
from sessions_app.views.session_context import open_session


@require_safe
def session_raw(request: PageRequest, session_id: uuid.UUID) -> HttpResponse:
    """What the import found, and the records of the source; with `record`, one of them."""
    session, context = open_session(request, session_id, "raw")
    asked = RawForm(request.GET).asked()
    source = raw_page.source_of(session)
    if asked.record is not None:
        record = raw_page.record_at(source.pk, asked.record) if source else None
        if record is None:
            raise Http404
        context["record"] = record_view(record, start=asked.start)
        return render_page(request, "raw/record.html", context)
    context |= {
        "report": raw_page.parse_report(session),
        "page": raw_page.records(session, first=asked.first, kind=asked.kind),
        "kind": asked.kind,
    }
    return render_page(request, "raw/list.html", context, partial="records")


@require_safe
def entry_raw(request: PageRequest, session_id: uuid.UUID, index: int) -> HttpResponse:
    """The record that an entry was made of."""
    session, context = open_session(request, session_id, "raw")
    record = raw_page.record_of(session, index)
    if record is None:
        raise Http404
    context |= {"record": record_view(record, start=RawForm(request.GET).asked().start), "index": index}
    return render_page(request, "raw/record.html", context)
