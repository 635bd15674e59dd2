"""Whether the product works: for monitors and proxies, so without sign-in and without a word about what it holds."""

from dataclasses import asdict

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from sessions_app.selectors import health as selector


@login_not_required
@never_cache
@require_safe
def health(request: HttpRequest) -> JsonResponse:  # noqa: ARG001  a view's signature
    """Of the whole product: somebody is to be told when it fails."""
    report = selector.health_report()
    return _answer(report.status, **asdict(report))


@login_not_required
@never_cache
@require_safe
def ready(request: HttpRequest) -> JsonResponse:  # noqa: ARG001  a view's signature
    """Of this process alone: whether requests are to be sent to it. Without workers it still shows all that is stored."""
    return _answer("ok" if selector.can_serve() else "failing")


@login_not_required
@never_cache
@require_safe
def live(request: HttpRequest) -> JsonResponse:  # noqa: ARG001  a view's signature
    """This process answers at all: to start it again would not bring back a database that is away."""
    return _answer("ok")


def _answer(status: str, **more: object) -> JsonResponse:
    return JsonResponse({"status": status} | more, status=200 if status == "ok" else 503)
