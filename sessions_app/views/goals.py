"""The goal of a session: what it is, who said so, and another one."""

import uuid

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from sessions_app import permissions
from sessions_app.compaction_forms import GoalForm
from sessions_app.permissions import Action
from sessions_app.rendering.plain import plain_html
from sessions_app.selectors import session_page
from sessions_app.selectors.goal_page import goal_page
from sessions_app.services.access import record_view
from sessions_app.services.goals import InvalidGoal, set_goal
from sessions_app.views.pages import PageRequest


@require_http_methods(["GET", "HEAD", "POST"])
def session_goal(request: PageRequest, session_id: uuid.UUID) -> HttpResponse:
    """Shows it to whoever may read; posted, sets it or takes it back."""
    actor = permissions.actor_of(request)
    session = permissions.access_session(actor, session_id, Action.EDIT if request.method == "POST" else Action.READ)
    form = GoalForm(request.POST) if request.method == "POST" else GoalForm(initial={"goal": session.goal})
    if form.is_bound and form.is_valid():
        try:
            if set_goal(actor=actor, session=session, text=form.cleaned_data["goal"]):
                messages.info(request, "The goal is set." if session.goal else "The goal is what the messages tell again.")
            return redirect("session-detail", session.pk)
        except InvalidGoal as error:
            form.add_error("goal", str(error))
    record_view(actor=actor, session=session)
    page = goal_page(session)
    context = {"header": session_page.header(session.pk), "page": page, "text": plain_html(page.goal.text), "form": form}
    context["may_edit"] = permissions.allows(actor, Action.EDIT)
    return render(request, "sessions/goal.html", context, status=422 if form.errors else 200)
