"""Whether the product works: for monitors, so without sign-in and without a word about what it holds."""

from dataclasses import asdict

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from sessions_app.selectors.health import health_report


@login_not_required
@never_cache
@require_safe
def health(request: HttpRequest) -> JsonResponse:  # noqa: ARG001  a view's signature
    report = health_report()
    said = {"status": report.status, **asdict(report)}
    return JsonResponse(said, status=200 if report.is_well else 503)
