"""Search over all sessions, and within one."""

from django.core.exceptions import BadRequest
from django.http import HttpResponse
from django.views.decorators.http import require_safe

from sessions_app.forms import SearchForm
from sessions_app.models import Session
from sessions_app.permissions import Action, actor_of, require
from sessions_app.rendering.search_html import hits_html, snippet_html
from sessions_app.selectors.keyset import CursorError
from sessions_app.selectors.search import search_choices, search_page
from sessions_app.selectors.search_query import parse_query
from sessions_app.selectors.search_session import session_hits
from sessions_app.services.searches import record_search
from sessions_app.views.pages import PageRequest, render_page
from sessions_app.views.session_context import Context


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
    context: Context = {
        "page": page,
        "titles": [(hit, snippet_html(hit.pieces)) for hit in page.titles],
        "hits": hits_html(page.hits, query.text),
        "choices": search_choices(filters),
    }
    return render_page(request, "search/page.html", context, partial="results")


def found_in(request: PageRequest, session: Session, at: int | None) -> Context:
    """What the page of a session needs for its own search: nothing is looked for without a text in the address."""
    query = parse_query(request.GET.get("q", ""))
    keeps = [(name, request.GET[name]) for name in ("layout", "detail", "context", "generation") if request.GET.get(name)]
    if not query.text:
        return {"find": None, "find_keeps": keeps}
    find = session_hits(session, query, at)
    if find.indexes:
        record_search(actor=actor_of(request), query=query.text, hits=len(find.listed), session_id=str(session.pk))
    return {
        "find": find,
        "find_hits": [(hit, snippet_html(hit.pieces)) for hit in find.listed],
        "find_marks": "\x1f".join(term.text.lower() for term in query.wanted),
        "find_keeps": keeps,
    }
