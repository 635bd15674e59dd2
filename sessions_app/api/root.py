"""The API put together: one line for each router, and the addresses of all."""

from typing import Any

from django.http import Http404, HttpRequest
from django.urls import path
from ninja import NinjaAPI

from sessions_app.api import audit, compactions, events, exports, imports, items, model_view, runners, sessions, stream
from sessions_app.api.auth import EITHER
from sessions_app.api.errors import handle_errors
from sessions_app.api.wire import BodyParser, Renderer

api = NinjaAPI(
    title="Palimpsest",
    version="1",
    description="Sessions of language-model agents: what was said, what the model still sees of it, and the compactions between the two.",
    urls_namespace="api",
    auth=EITHER,
    parser=BodyParser(),
    renderer=Renderer(),
    docs_url=None,
)
handle_errors(api)
api.add_router("/sessions", sessions.router, tags=["Sessions"])
api.add_router("/sessions", items.router, tags=["History"])
api.add_router("/sessions", model_view.router, tags=["Model view"])
api.add_router("/sessions", compactions.router, tags=["Compactions"])
api.add_router("/sessions", exports.router, tags=["Export"])
api.add_router("/sessions", events.router, tags=["Events"])
api.add_router("/sessions", stream.router, tags=["Streams"])
api.add_router("/runners", runners.router, tags=["Runners"])
api.add_router("/imports", imports.router, tags=["Imports"])
api.add_router("/events", audit.router, tags=["Audit"])


def nothing_here(request: HttpRequest, rest: str = "") -> Any:  # noqa: ARG001  a view's signature
    """Any other address below `/v1/`."""
    raise Http404


def _open(patterns: list[Any]) -> list[Any]:
    """No page of a sign-in for programs: each call asks by itself who sent it."""
    for pattern in patterns:
        pattern.callback.login_required = False
    return patterns


_calls, _app, _namespace = api.urls
# The library's own root page comes last. It is known by this name where the API's document is made.
urlpatterns = _open([*_calls[:-1], path("", nothing_here, name="api-root"), path("<path:rest>", nothing_here)])
