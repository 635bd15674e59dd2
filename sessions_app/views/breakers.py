"""The breaker of a session: letting automatic compaction start again."""

import uuid

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from sessions_app import permissions
from sessions_app.permissions import Action
from sessions_app.selectors import session_page
from sessions_app.services.compactions import breakers
from sessions_app.views.pages import PageRequest, render_page


@require_http_methods(["GET", "HEAD", "POST"])
def breaker_reset(request: PageRequest, session_id: uuid.UUID) -> HttpResponse:
    """Asks first, then sets the breaker and the warning of refilling back."""
    actor = permissions.actor_of(request)
    session = permissions.access_session(actor, session_id, Action.RESET_BREAKER)
    if request.method != "POST":
        return render_page(request, "compactions/breaker.html", {"session": session, "header": session_page.header(session.pk)})
    breakers.reset(actor=actor, session=session)
    messages.success(request, "Automatic compaction starts again where it is due.")
    return redirect("session-detail", session_id)
