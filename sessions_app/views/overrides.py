"""Pins and exclusions: one address for each decision about an entry."""

import uuid
from collections.abc import Callable

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from sessions_app import permissions
from sessions_app.forms import WindowForm
from sessions_app.models import Session
from sessions_app.permissions import Action
from sessions_app.services.overrides import CannotOverride, OverrideAnswer, exclude, include, pin, unpin
from sessions_app.views.errors import error_page
from sessions_app.views.history import window_again
from sessions_app.views.pages import PageRequest, wants_fragment

DECISIONS: dict[str, tuple[Action, Callable[..., OverrideAnswer]]] = {
    "pin": (Action.PIN, pin),
    "unpin": (Action.PIN, unpin),
    "exclude": (Action.EXCLUDE, exclude),
    "include": (Action.EXCLUDE, include),
}


@require_POST
def entry_decide(request: PageRequest, session_id: uuid.UUID, index: int, decision: str) -> HttpResponse:
    """Pins or excludes an entry, or takes that back; answers with the window in which it stands, or goes back to it."""
    action, decide = DECISIONS[decision]
    actor = permissions.actor_of(request)
    session = permissions.access_session(actor, session_id, action)
    form = WindowForm(request.POST)
    try:
        answer = decide(actor=actor, session=session, index=index)
    except CannotOverride as error:
        return error_page(request, 409, "Not possible", str(error))
    if wants_fragment(request) and form.window():
        return _window(request, answer, form)
    messages.info(request, answer.sentence)
    query = QueryDict(form.cleaned_data["query"], mutable=True) if form.is_valid() else QueryDict(mutable=True)
    query["at"] = str(index)
    return redirect(f"{reverse('session-detail', args=[session_id])}?{query.urlencode()}#e{index}")


def _window(request: PageRequest, answer: OverrideAnswer, form: WindowForm) -> HttpResponse:
    session: Session = answer.session
    context = window_again(session, form) | {"session_id": session.pk, "may_steer": True, "sentence": answer.sentence}
    return render(request, "sessions/decided.html", context)
