"""Search over all sessions."""

from django.core.exceptions import BadRequest
from django.http import HttpResponse
from django.views.decorators.http import require_safe

from sessions_app.forms import SearchForm
from sessions_app.permissions import Action, actor_of, require
from sessions_app.rendering.search_html import snippet_html
from sessions_app.selectors.keyset import CursorError
from sessions_app.selectors.search import search_choices, search_page
from sessions_app.services.searches import record_search
from sessions_app.views.pages import PageRequest, render_page


@require_safe
def search(request: PageRequest) -> HttpResponse:
    actor = actor_of(request)
    require(actor, Action.READ)
    query, filters, after = SearchForm(request.GET).asked()
    try:
        page = search_page(query, filters, after)
    except CursorError as error:
        raise BadRequest(str(error)) from error
    if page.hits or page.titles:
        record_search(actor=actor, query=query.text, hits=len(page.hits), filters=filters.given())
    context: dict[str, object] = {
        "page": page,
        "titles": [(hit, snippet_html(hit.pieces)) for hit in page.titles],
        "hits": [(hit, snippet_html(hit.pieces)) for hit in page.hits],
        "choices": search_choices(filters),
    }
    return render_page(request, "search/page.html", context, partial="results")
