"""How every view answers: a whole page, or the one part of it that htmx asks for."""

from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers
from django_htmx.middleware import HtmxDetails

from sessions_app.rendering.templates import rendered

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User


class PageRequest(HttpRequest):
    """A request as it reaches a view, after the middleware."""

    htmx: HtmxDetails
    request_id: str
    user: "User | AnonymousUser"


def wants_fragment(request: HttpRequest) -> bool:
    """Whether only a part is asked for. Boosted links and restored history need the whole page."""
    htmx: HtmxDetails | None = getattr(request, "htmx", None)
    return bool(htmx) and not htmx.boosted and not htmx.history_restore_request  # type: ignore[union-attr]


def render_page(
    request: HttpRequest,
    template: str,
    context: dict[str, object] | None = None,
    *,
    partial: str = "",
    status: int = 200,
) -> HttpResponse:
    """Renders `template`, or of it only `partial` (a name, or a component's path) when htmx asks for a part."""
    if partial and wants_fragment(request):
        template = partial if partial.endswith(".html") else f"{template}#{partial}"
    response = HttpResponse(rendered(template, context or {}, request), status=status)
    patch_vary_headers(response, ["HX-Request"])
    return response
