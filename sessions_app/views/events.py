"""The events of a session."""

import uuid

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from sessions_app.forms import PlaceForm
from sessions_app.rendering.ledger import event_line
from sessions_app.selectors.events_page import events_page
from sessions_app.views.pages import PageRequest, render_page
from sessions_app.views.session_context import open_session


@require_safe
def session_events(request: PageRequest, session_id: uuid.UUID) -> HttpResponse:
    session, context = open_session(request, session_id, "events")
    page = events_page(session, before=PlaceForm(request.GET).place("before"))
    context |= {"page": page, "events": [event_line(event) for event in page.events]}
    return render_page(request, "events/list.html", context, partial="events")
