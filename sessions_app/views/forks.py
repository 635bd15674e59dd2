"""Forking a session."""

import uuid

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from sessions_app import permissions
from sessions_app.compaction_forms import ForkForm
from sessions_app.permissions import Action
from sessions_app.selectors import session_page
from sessions_app.services.compactions.revert import UnknownGeneration
from sessions_app.services.forks import InvalidFork, fork
from sessions_app.views.pages import PageRequest


@require_http_methods(["GET", "HEAD", "POST"])
def session_fork(request: PageRequest, session_id: uuid.UUID) -> HttpResponse:
    """Asks first; posted, makes the fork and leads to it."""
    actor = permissions.actor_of(request)
    session = permissions.access_session(actor, session_id, Action.FORK)
    form = ForkForm(request.POST) if request.method == "POST" else ForkForm(initial=request.GET.dict())
    if form.is_bound and form.is_valid():
        try:
            return redirect("session-detail", fork(actor=actor, session=session, **form.options()).pk)
        except InvalidFork as error:
            form.add_error(error.field if error.field in form.fields else None, str(error))
        except UnknownGeneration as error:
            form.add_error(None, str(error))
    context = {"session": session, "header": session_page.header(session.pk), "form": form, "generation": form["generation"].value()}
    return render(request, "compactions/fork.html", context, status=422 if form.errors else 200)
