"""The list of sessions."""

from django.core.exceptions import BadRequest
from django.http import HttpResponse
from django.views.decorators.http import require_safe

from sessions_app.forms import SessionListForm
from sessions_app.permissions import Action, actor_of, allows, require
from sessions_app.selectors.keyset import CursorError
from sessions_app.selectors.session_list import session_list_page
from sessions_app.views.pages import PageRequest, render_page


@require_safe
def session_list(request: PageRequest) -> HttpResponse:
    actor = actor_of(request)
    require(actor, Action.READ)
    form = SessionListForm(request.GET)
    filters = form.filters()
    sort, is_reversed = form.order()
    try:
        page = session_list_page(filters, sort=sort, reverse=is_reversed, cursor=form.cleaned_data["after"])
    except CursorError as error:
        raise BadRequest(str(error)) from error
    return render_page(request, "sessions/list.html", {"page": page, "may_begin": allows(actor, Action.MESSAGE)}, partial="results")
