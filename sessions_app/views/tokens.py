"""Access tokens: make one, which is shown once; see who uses which; take one back."""

import uuid

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from sessions_app.account_forms import TokenForm
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.permissions import Action, actor_of, require, unknown
from sessions_app.selectors.tokens import tokens_page
from sessions_app.services import tokens
from sessions_app.views.pages import PageRequest, render_page


@require_http_methods(["GET", "HEAD", "POST"])
def token_list(request: PageRequest) -> HttpResponse:
    actor = _admin(request)
    page = tokens_page(at=timezone.now())
    form = TokenForm(request.POST if request.method == "POST" else None, owners=page.owners, initial={"user": actor.name})
    if form.is_bound and form.is_valid():
        try:
            made = tokens.make(actor=actor, **form.wanted())
        except tokens.InvalidToken as error:
            form.add_error(error.field, str(error))
        else:
            # Answers the form itself: a redirect would have to keep the secret somewhere.
            return render_page(request, "tokens/made.html", {"token": made.token, "secret": made.secret})
    return render_page(request, "tokens/list.html", {"form": form, "page": page}, status=422 if form.errors else 200)


@require_POST
def token_revoke(request: PageRequest, token_id: uuid.UUID) -> HttpResponse:
    actor = _admin(request)
    try:
        token = tokens.revoke(actor=actor, token_id=token_id)
    except tokens.UnknownToken as error:
        raise unknown(actor, "token", token_id, Action.MANAGE_TOKENS) from error
    messages.success(request, f"{token.name} is revoked: from now on it opens nothing.")
    return redirect("token-list")


def _admin(request: PageRequest) -> Actor:
    actor = actor_of(request)
    require(actor, Action.MANAGE_TOKENS, stream=log.SECURITY)
    return actor
