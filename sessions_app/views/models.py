"""The model of a session: another one for what is held here, another window for the rest."""

import uuid

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from sessions_app import permissions
from sessions_app.events.actors import Actor
from sessions_app.models import Session, SessionKind
from sessions_app.permissions import Action
from sessions_app.selectors import model_choices, session_page
from sessions_app.services import model_choice
from sessions_app.services.compactions.request import CompactUnavailable, SessionBusy
from sessions_app.services.compactions.revert import CompactionUnderWay
from sessions_app.turn_forms import ModelForm
from sessions_app.views.pages import PageRequest, render_page


@require_http_methods(["GET", "HEAD", "POST"])
def model_choose(request: PageRequest, session_id: uuid.UUID) -> HttpResponse:
    """What each model would come to; posted, the session goes over to one, or gets another window."""
    actor = permissions.actor_of(request)
    session = permissions.access_session(actor, session_id, Action.CHOOSE_MODEL)
    if request.method != "POST":
        # What somebody set is of the model that the session has; another one begins with its own.
        window = session.window_override if session.kind != SessionKind.INLINE else None
        return _page(request, session, ModelForm(initial={"model": model_choices.name_of(session), "window": window}))
    form = ModelForm(request.POST)
    if not form.is_valid():
        return _page(request, session, form, status=422)
    try:
        told, refusal = _choose(actor, session, form)
    except model_choice.InvalidChoice as error:
        form.add_error(error.field, str(error))
        return _page(request, session, form, status=422)
    except (SessionBusy, CompactionUnderWay, CompactUnavailable) as error:
        return _page(request, session, form, refusal=str(error), status=409)
    if refusal:
        return _page(request, session, form, refusal=refusal, status=409)
    messages.success(request, told)
    return redirect("session-detail", session_id)


def _choose(actor: Actor, session: Session, form: ModelForm) -> tuple[str, str]:
    """(what was done, why it was not)."""
    name, window = form.cleaned_data["model"], form.cleaned_data["window"]
    if session.kind != SessionKind.INLINE:
        is_changed = model_choice.set_window(actor=actor, session=session, window=window)
        return (f"The window is {session.window:,} tokens now." if is_changed else "Nothing was changed: it is so already."), ""
    decision = model_choice.choose(actor=actor, session=session, name=name, window=window, may_wait=False)
    first = " It was compacted first." if decision.compaction is not None else ""
    return f"{name} answers from the next message on, with a window of {session.window:,} tokens.{first}", decision.refusal


def _page(request: PageRequest, session: Session, form: ModelForm, *, refusal: str = "", status: int = 200) -> HttpResponse:
    is_held_here = session.kind == SessionKind.INLINE
    context = {
        "header": session_page.header(session.pk),
        "form": form,
        "is_held_here": is_held_here,
        "choices": model_choices.model_choices(session) if is_held_here else (),
        "window_source": model_choices.window_source(session),
        "refusal": refusal,
    }
    return render_page(request, "turns/model.html", context, status=status)
