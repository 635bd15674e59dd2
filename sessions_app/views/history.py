"""The history of a session: its page, windows of it, one entry's place, and the long or binary parts of entries."""

import uuid

from django.core.exceptions import BadRequest
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from sessions_app import permissions
from sessions_app.forms import HistoryForm, PlaceForm, WindowForm
from sessions_app.models import Session
from sessions_app.permissions import Action
from sessions_app.rendering import part_html
from sessions_app.rendering.bands import child_bands, lay_out
from sessions_app.rendering.entry_html import body_context
from sessions_app.rendering.minimap import marks_svg
from sessions_app.rendering.model_view import problems_of, sent_messages, window_messages
from sessions_app.selectors import parts
from sessions_app.selectors.history import HistoryPage, Layout, history_page
from sessions_app.selectors.history_window import child_window, item_with_results
from sessions_app.selectors.outline import decided, minimap, outline
from sessions_app.services.access import record_view
from sessions_app.views.history_links import history_links
from sessions_app.views.pages import PageRequest, render_page
from sessions_app.views.search import found_in
from sessions_app.views.session_context import Context, open_session
from sessions_app.views.turns import turn_context

IMAGE_POLICY = "default-src 'none'; sandbox"


@require_safe
def session_detail(request: PageRequest, session_id: uuid.UUID) -> HttpResponse:
    session, context = open_session(request, session_id, "history")
    context |= _history(request, session) | turn_context(session)
    return render_page(request, "sessions/detail.html", context, partial="history")


@require_safe
def entry_window(request: PageRequest, session_id: uuid.UUID) -> HttpResponse:
    """The history alone, or for a loader one more window of it; opened by itself it is the whole page."""
    session, context = open_session(request, session_id, "history")
    context |= _history(request, session)
    if request.htmx.target in ("load-earlier", "load-later"):
        context["edge"] = request.htmx.target.removeprefix("load-")
        return render_page(request, "sessions/detail.html", context, partial=str(context["window_template"]))
    return render_page(request, "sessions/detail.html", context, partial="history")


@require_safe
def entry_permalink(request: PageRequest, session_id: uuid.UUID, index: int) -> HttpResponse:
    """Where an entry stands in the canonical history, whatever window that is."""
    _read(request, session_id)
    return redirect(f"{reverse('session-detail', args=[session_id])}?layout=canonical&at={index}#e{index}")


@require_safe
def entry_parts(request: PageRequest, session_id: uuid.UUID, index: int) -> HttpResponse:
    """Some more parts of an entry that has many, from `start` on."""
    session = _read(request, session_id)
    item = item_with_results(session.pk, index)
    if item is None:
        raise Http404
    start = PlaceForm(request.GET).place("start") or 0
    context = body_context(session.pk, item, HistoryForm(request.GET).options().detail, start)
    context |= {"session_id": session.pk, "title": session.title, "start": start}
    return render_page(request, "sessions/entry_parts.html", context, partial="components/entry_body.html")


@require_safe
def part_text(request: PageRequest, session_id: uuid.UUID, index: int, position: int) -> HttpResponse:
    """A stretch of one part's text, at most 200,000 characters of it."""
    session = _read(request, session_id)
    stretch = parts.text_stretch(session.pk, index, position, PlaceForm(request.GET).place("start") or 0)
    if stretch is None:
        raise Http404
    context: Context = {
        "stretch": stretch,
        "html": part_html.stretch_html(stretch),
        "is_prose": part_html.is_prose(stretch),
        "session_id": session.pk,
        "title": session.title,
    }
    return render_page(request, "sessions/part_text.html", context, partial="stretch")


@require_safe
def part_image(request: PageRequest, session_id: uuid.UUID, index: int, position: int) -> HttpResponse:
    """An image of an entry: only types that hold no script, and as something that can do nothing."""
    session = _read(request, session_id)
    image = parts.image(session.pk, index, position)
    if image is None:
        raise Http404
    response = HttpResponse(image.data, content_type=image.media_type)
    response["Content-Security-Policy"] = IMAGE_POLICY
    response["Content-Disposition"] = f'inline; filename="entry-{index}-{position}.{image.extension}"'
    response["Cache-Control"] = "private, max-age=86400, immutable"
    return response


@require_safe
def child_entries(request: PageRequest, session_id: uuid.UUID, call_id: str) -> HttpResponse:
    """The beginning of a sub-agent's entries, as lines."""
    session = _read(request, session_id)
    child, window = child_window(session.pk, call_id)
    if child is None:
        raise Http404
    record_view(actor=permissions.actor_of(request), session=child)
    context: Context = {"child": child, "lines": child_bands(child.pk, window), "has_more": window.has_later, "parent": session}
    return render_page(request, "sessions/children.html", context, partial="lines")


def _read(request: PageRequest, session_id: uuid.UUID) -> Session:
    """The session for a reader of a part of it, noted as viewed: a part alone is a read as well."""
    actor = permissions.actor_of(request)
    session = permissions.access_session(actor, session_id, Action.READ)
    record_view(actor=actor, session=session)
    return session


def window_again(session: Session, form: WindowForm) -> Context:
    """A window that stands in a page already, as it is now, and what is pinned and excluded now."""
    asked = form.window()
    if asked is None:
        raise BadRequest("The page did not say which entries it shows. Open the session anew.")
    options, query = asked
    page = history_page(session, options)
    links = history_links(session.pk, page, query)
    bands = lay_out(session.pk, page)
    return {"page": page, "links": links, "query": links.query, "splits": links.splits, "decided": decided(session), "bands": bands}


def _history(request: PageRequest, session: Session) -> Context:
    """The window that the address asks for, laid out."""
    try:
        page = history_page(session, HistoryForm(request.GET).options())
    except LookupError as error:
        raise BadRequest(str(error)) from error
    context: Context = {
        "page": page,
        "links": (links := history_links(session.pk, page, request.GET)),
        "query": links.query,
        "splits": links.splits,
        "outline": outline(session.pk, page),
        "decided": decided(session),
        "minimap": (map_of_all := minimap(session, page)),
        "minimap_marks": marks_svg(map_of_all),
        **found_in(request, session, page.options.at),
    }
    return context | _laid_out(session, page)


def _laid_out(session: Session, page: HistoryPage) -> Context:
    if page.layout is not Layout.VIEW:
        return {"bands": lay_out(session.pk, page), "window_template": "components/entry_window.html", "legality": None}
    messages = window_messages(page)
    return {
        "sent": sent_messages(session.pk, messages, page.block, page.boundary_index),
        "legality": problems_of(messages),
        "window_template": "components/message_window.html",
    }
