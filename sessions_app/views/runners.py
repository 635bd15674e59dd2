"""Runners: which there are, whether they answer, and which session is bound to which."""

import uuid

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRedirect

from sessions_app import permissions
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.models import Runner, Session
from sessions_app.permissions import Action, actor_of, require, unknown
from sessions_app.runner_forms import BindForm, DecisionForm, RunnerForm
from sessions_app.selectors import runners, session_page
from sessions_app.services.compactions.request import InvalidRequest, SessionBusy, settle
from sessions_app.services.compactions.request import request as request_compaction
from sessions_app.services.compactions.revert import CompactionUnderWay
from sessions_app.services.runners import binding, table
from sessions_app.views.pages import PageRequest, render_page, wants_fragment
from sessions_app.views.session_context import Context


@require_http_methods(["GET", "HEAD", "POST"])
def runner_list(request: PageRequest) -> HttpResponse:
    actor = _admin(request)
    form = RunnerForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        try:
            runner = table.add(actor=actor, **form.cleaned_data)
        except table.InvalidRunner as error:
            form.add_error(error.field, str(error))
        else:
            return _tested(request, actor, runner)
    return render_page(request, "runners/list.html", {"form": form, "rows": runners.runner_rows()}, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
def runner_detail(request: PageRequest, runner_id: uuid.UUID) -> HttpResponse:
    actor = _admin(request)
    runner = _runner(actor, runner_id)
    told = {"name": runner.name, "base_url": runner.base_url, "credential_variable": runner.credential_variable}
    form = RunnerForm(request.POST) if request.method == "POST" else RunnerForm(initial=told)
    if form.is_bound and form.is_valid():
        try:
            runner = table.change(actor=actor, runner=runner, **form.cleaned_data)
        except table.InvalidRunner as error:
            form.add_error(error.field, str(error))
        else:
            return _tested(request, actor, runner)
    context: Context = {"form": form, "row": runners.runner_row(runner_id)}
    return render_page(request, "runners/detail.html", context, status=422 if form.errors else 200)


@require_POST
def runner_test(request: PageRequest, runner_id: uuid.UUID) -> HttpResponse:
    actor = _admin(request)
    return _tested(request, actor, _runner(actor, runner_id))


@require_POST
def runner_remove(request: PageRequest, runner_id: uuid.UUID) -> HttpResponse:
    actor = _admin(request)
    runner = _runner(actor, runner_id)
    try:
        bound = table.remove(actor=actor, runner=runner)
    except (CompactionUnderWay, SessionBusy) as error:
        messages.error(request, str(error))
        return redirect("runner-detail", runner_id)
    messages.success(request, f"{runner.name} is removed. Sessions that are no longer bound: {bound}.")
    return redirect("runner-list")


@require_http_methods(["GET", "HEAD", "POST"])
def session_bind(request: PageRequest, session_id: uuid.UUID) -> HttpResponse:
    """Binds a session to a runner, or to none."""
    actor = actor_of(request)
    session = permissions.access_session(actor, session_id, Action.BIND_RUNNER)
    if request.method != "POST":
        return _ask_runner(request, session)
    form = BindForm(request.POST)
    if not form.is_valid():
        return _ask_runner(request, session, "An id has at most 200 characters. Nothing was changed.")
    named = form.cleaned_data["runner"]
    runner = runners.runner_named(named) if named else None
    try:
        if runner is not None:
            binding.bind(actor=actor, session=session, runner=runner, external_id=form.cleaned_data["external_id"])
        elif named:
            return _ask_runner(request, session, "There is no such runner any more. Nothing was changed.")
        else:
            binding.unbind(actor=actor, session=session)
    except (binding.InvalidBinding, CompactionUnderWay, SessionBusy) as error:
        return _ask_runner(request, session, str(error))
    return redirect("session-detail", session_id)


@require_POST
def session_decide(request: PageRequest, session_id: uuid.UUID) -> HttpResponse:
    """Says what follows an outcome that nobody knows: the runner again, this console's view, or nothing."""
    actor = actor_of(request)
    session = permissions.access_session(actor, session_id, Action.COMPACT)
    form = DecisionForm(request.POST)
    if not form.is_valid():
        raise BadRequest("That is no way to go on. Nothing was changed.")
    through = form.cleaned_data["through"]
    try:
        if through == "none":
            settle(actor=actor, session=session)
        else:
            request_compaction(actor=actor, session=session, through=through)
    except (InvalidRequest, SessionBusy) as error:
        messages.error(request, str(error))
    page = reverse("session-detail", args=[session_id])
    return HttpResponseClientRedirect(page) if wants_fragment(request) else redirect(page)


def _ask_runner(request: PageRequest, session: Session, refusal: str = "") -> HttpResponse:
    form = BindForm(initial={"external_id": session.external_id})
    context: Context = {"header": session_page.header(session.pk), "form": form, "rows": runners.runner_rows(), "refusal": refusal}
    return render_page(request, "runners/bind.html", context, status=422 if refusal else 200)


def _tested(request: PageRequest, actor: Actor, runner: Runner) -> HttpResponse:
    report = table.test(actor=actor, runner=runner)
    if report.problem:
        messages.error(request, f"{runner.name} does not answer as it should. {report.problem}")
    else:
        messages.success(request, f"{runner.name} answers.")
    return redirect("runner-detail", runner.pk)


def _admin(request: PageRequest) -> Actor:
    actor = actor_of(request)
    require(actor, Action.MANAGE_RUNNERS, stream=log.SECURITY)
    return actor


def _runner(actor: Actor, runner_id: uuid.UUID) -> Runner:
    runner = runners.runner_with_id(runner_id)
    if runner is None:
        raise unknown(actor, "runner", runner_id, Action.MANAGE_RUNNERS)
    return runner
