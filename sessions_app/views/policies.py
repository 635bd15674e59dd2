"""The policy of the installation, of a project and of a session: seen by all, changed by admins."""

import uuid

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from sessions_app.engine.policy import PolicyError
from sessions_app.engine.policy_fields import FIELDS, in_words
from sessions_app.permissions import Action, access_session, actor_of, allows, require, unknown
from sessions_app.policy_forms import PolicyForm
from sessions_app.selectors import policies
from sessions_app.services import policies as changes
from sessions_app.views.pages import PageRequest, render_page

Faults = dict[str, list[str]]


@require_http_methods(["GET", "HEAD", "POST"])
def policy_installation(request: PageRequest) -> HttpResponse:
    require(actor_of(request), Action.READ)
    return _policy(request, policies.installation())


@require_http_methods(["GET", "HEAD", "POST"])
def policy_project(request: PageRequest, project_id: uuid.UUID) -> HttpResponse:
    actor = actor_of(request)
    require(actor, Action.READ)
    place = policies.project_place(project_id)
    if place is None:
        raise unknown(actor, "project", project_id, Action.READ)
    return _policy(request, place)


@require_http_methods(["GET", "HEAD", "POST"])
def policy_session(request: PageRequest, session_id: uuid.UUID) -> HttpResponse:
    return _policy(request, policies.session_place(access_session(actor_of(request), session_id, Action.READ)))


def _policy(request: PageRequest, place: policies.Place) -> HttpResponse:
    if request.method != "POST":
        return _render(request, place)
    require(actor_of(request), Action.MANAGE_POLICIES, target=("policy", f"{place.scope} {place.scope_id}".strip()))
    form = PolicyForm(request.POST)
    form.is_valid()
    values, unset = form.values()
    if form.errors:
        return _render(request, place, form, faults=_faults(form), status=422)
    try:
        saved = changes.change(
            actor=actor_of(request), scope=place.scope, scope_id=place.scope_id, values=values, unset=unset, seen=form.seen()
        )
    except changes.ChangedMeanwhile as error:
        return _render(request, place, form, overtaken=error, status=409)
    except PolicyError as error:
        return _render(request, place, form, faults={name: [in_words(str(error))] for name in error.fields}, status=422)
    _tell(request, saved)
    return redirect(address_of(place))


def address_of(place: policies.Place) -> str:
    """The page of a place."""
    return reverse(f"policy-{place.scope}", args=[place.scope_id] if place.scope_id else [])


def _tell(request: PageRequest, saved: changes.Saved) -> None:
    if not saved.changed:
        messages.info(request, "Nothing was changed: all of it is so already.")
        return
    labels = ", ".join(f"“{FIELDS[name].label}”" for name in saved.changed if name in FIELDS)
    later = f" The meters of {saved.due:,} sessions follow within minutes; decisions use it at once." if saved.due else ""
    messages.success(request, f"Saved: {labels}.{later}")


def _faults(form: PolicyForm) -> Faults:
    return {name: [str(text) for text in texts] for name, texts in form.errors.items()}


def _render(
    request: PageRequest,
    place: policies.Place,
    form: PolicyForm | None = None,
    *,
    faults: Faults | None = None,
    overtaken: changes.ChangedMeanwhile | None = None,
    status: int = 200,
) -> HttpResponse:
    page = policies.policy_page(place)
    typed = form.texts() if form else {}
    context: dict[str, object] = {
        "page": page,
        "place": place,
        "fields": [
            (title, about, [(row, typed.get(row.field.name, row.own or ""), (faults or {}).get(row.field.name, [])) for row in rows])
            for title, about, rows in page.groups
        ],
        "faults": faults or {},
        "overtaken": overtaken,
        "overtaken_labels": [FIELDS[name].label for name in overtaken.fields if name in FIELDS] if overtaken else [],
        "address": address_of(place),
    }
    return render_page(request, "policies/detail.html", context | _rights(request), status=status)


def _rights(request: PageRequest) -> dict[str, object]:
    actor = actor_of(request)
    return {"may_edit": allows(actor, Action.MANAGE_POLICIES), "may_choose_model": allows(actor, Action.CHOOSE_MODEL)}
