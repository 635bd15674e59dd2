"""The memory of a project: reading it, forgetting a fact, having failed flushes repaired."""

import uuid

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from sessions_app.events.types import EventType
from sessions_app.forms import MemoryForm
from sessions_app.models import Project
from sessions_app.permissions import Action, actor_of, allows, require, unknown
from sessions_app.selectors import memory
from sessions_app.services import memory as changes
from sessions_app.services import memory_flush
from sessions_app.services.access import record
from sessions_app.views.pages import PageRequest, render_page


@require_safe
def memory_project(request: PageRequest, project_id: uuid.UUID) -> HttpResponse:
    """The facts of a project, newest first."""
    actor = actor_of(request)
    project = _project(request, project_id)
    filters = MemoryForm(request.GET).filters()
    record(actor=actor, event_type=EventType.MEMORY_VIEWED, target=("project", str(project.pk)), payload={"name": project.name})
    context: dict[str, object] = {
        "page": memory.memory_page(project, filters),
        "filters": filters,
        "may_change": allows(actor, Action.CHANGE_MEMORY),
    }
    return render_page(request, "memory/project.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def memory_forget(request: PageRequest, project_id: uuid.UUID, fact_id: uuid.UUID) -> HttpResponse:
    """Asks first, then forgets a fact for good."""
    project = _project(request, project_id)
    require(actor_of(request), Action.CHANGE_MEMORY, target=("fact", str(fact_id)))
    fact = memory.fact_of(project, fact_id)
    if fact is None:
        raise Http404
    if request.method != "POST":
        return render_page(request, "memory/forget.html", {"project": project, "fact": fact})
    try:
        changes.forget(actor=actor_of(request), fact_id=fact_id)
    except changes.UnknownFact as error:
        raise Http404 from error
    messages.success(request, "Forgotten. No later compaction brings it back; the entries that state it are as they were.")
    return redirect("memory-project", project.pk)


@require_POST
def memory_repair(request: PageRequest, project_id: uuid.UUID) -> HttpResponse:
    """Lets the workers try again what failed, now."""
    project = _project(request, project_id)
    count = memory_flush.ask_for_repairs(actor=actor_of(request), compaction_ids=memory.repairable(project))
    told = f"{count} flush{'' if count == 1 else 'es'} will be tried again in a moment." if count else "There was nothing to repair."
    messages.info(request, told)
    return redirect("memory-project", project.pk)


def _project(request: PageRequest, project_id: uuid.UUID) -> Project:
    actor = actor_of(request)
    require(actor, Action.READ)
    project = memory.project_of(project_id)
    if project is None:
        raise unknown(actor, "project", project_id, Action.READ)
    return project
