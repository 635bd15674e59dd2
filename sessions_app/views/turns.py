"""Inline sessions: begin one, send a message, take it back, stop a turn, try again."""

import json
import uuid
from collections.abc import Callable

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from sessions_app import permissions
from sessions_app.models import Session, SessionKind
from sessions_app.permissions import Action
from sessions_app.rendering.turns import shown_turns
from sessions_app.services.turns import send as turns
from sessions_app.services.turns.sessions import InvalidSession, begin
from sessions_app.turn_forms import MessageForm, NewSessionForm
from sessions_app.views.pages import PageRequest, render_page, wants_fragment
from sessions_app.views.session_context import Context, open_session

SENT = "palimpsest:sent"


@require_http_methods(["GET", "HEAD", "POST"])
def session_create(request: PageRequest) -> HttpResponse:
    """The form of a new session; posted, the session, ready for its first message."""
    actor = permissions.actor_of(request)
    permissions.require(actor, Action.MESSAGE, target=("session", "new"))
    if request.method != "POST":
        return render_page(request, "turns/new.html", {"form": NewSessionForm.fresh()})
    form = NewSessionForm(request.POST)
    if form.is_valid():
        try:
            session = begin(actor=actor, **form.cleaned_data)
        except InvalidSession as error:
            form.add_error(error.field, str(error))
        else:
            return redirect("session-detail", session.pk)
    return render_page(request, "turns/new.html", {"form": form}, status=422)


@require_http_methods(["GET", "HEAD", "POST"])
def turn_create(request: PageRequest, session_id: uuid.UUID) -> HttpResponse:
    """The turns that are open and the field for a message, as a page; posted, the message."""
    if request.method != "POST":
        session, context = open_session(request, session_id, "history")
        return render_page(request, "turns/page.html", context | turn_context(session), partial="components/turns.html")
    actor = permissions.actor_of(request)
    session = permissions.access_session(actor, session_id, Action.MESSAGE)
    form = MessageForm(request.POST)
    try:
        valid = form.is_valid()
        turns.send(actor=actor, session=session, text=form.cleaned_data["text"] if valid else "", key=form.cleaned_data.get("key"))
    except turns.InvalidMessage as error:
        form.add_error("text", str(error)) if valid else None
        return _refused(request, session, form)
    except turns.KeyReused as error:
        return _refused(request, session, form.with_new_key(str(error)), status=409)
    response = _region(request, session)
    response["HX-Trigger"] = json.dumps({SENT: {"key": str(uuid.uuid4())}})
    return response


@require_POST
def turn_withdraw(request: PageRequest, session_id: uuid.UUID, turn_id: uuid.UUID) -> HttpResponse:
    return _act(request, session_id, turn_id, Action.MESSAGE, turns.withdraw)


@require_POST
def turn_interrupt(request: PageRequest, session_id: uuid.UUID, turn_id: uuid.UUID) -> HttpResponse:
    return _act(request, session_id, turn_id, Action.INTERRUPT, turns.interrupt)


@require_POST
def turn_retry(request: PageRequest, session_id: uuid.UUID, turn_id: uuid.UUID) -> HttpResponse:
    return _act(request, session_id, turn_id, Action.MESSAGE, turns.retry)


def turn_context(session: Session) -> Context:
    """What the history of an inline session shows below it; nothing for others."""
    if session.kind != SessionKind.INLINE:
        return {}
    return {"turns": shown_turns(session.pk), "message_form": MessageForm.fresh()}


def _act(request: PageRequest, session_id: uuid.UUID, turn_id: uuid.UUID, action: Action, do: Callable[..., object]) -> HttpResponse:
    actor = permissions.actor_of(request)
    session = permissions.access_session(actor, session_id, action)
    refusal = ""
    try:
        do(actor=actor, session=session, turn_id=turn_id)
    except (turns.UnknownTurn, turns.InvalidMessage) as error:
        raise Http404 from error
    except turns.TurnRefused as error:
        refusal = str(error)
    return _region(request, session, refusal)


def _region(request: PageRequest, session: Session, refusal: str = "") -> HttpResponse:
    """The turns as they are now for htmx, else back to the page that shows them."""
    if not wants_fragment(request):
        if refusal:
            messages.info(request, refusal)
        return redirect(f"{reverse('session-detail', args=[session.pk])}#turns")
    return render(request, "components/turns.html", {"turns": shown_turns(session.pk), "refusal": refusal})


def _refused(request: PageRequest, session: Session, form: MessageForm, status: int = 422) -> HttpResponse:
    if not wants_fragment(request):
        _, context = open_session(request, session.pk, "history")
        context |= turn_context(session) | {"message_form": form}
        return render_page(request, "turns/page.html", context, status=status)
    context = {"message_form": form, "session_id": session.pk, "may_steer": True}
    response = render(request, "components/composer.html", context, status=status)
    response["X-Fragment"], response["HX-Retarget"], response["HX-Reswap"] = "form", "#composer", "outerHTML"
    return response
