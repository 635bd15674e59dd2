"""How long a sign-in lasts, and where a page leads without one. Works in sync and in async handling."""

from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme, urlencode

from sessions_app.services.sign_in_store import MUST_CHANGE, SessionStore
from sessions_app.views.pages import wants_fragment

_OPEN_WITH_IT = frozenset({"password-change", "sign-out", "sign-in"})


class SlidingSessions(SessionMiddleware):
    """Django's own, and a page that somebody asked for puts the end of the sign-in off."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        session = request.session
        if isinstance(session, SessionStore) and session.accessed and not session.is_empty() and response.status_code < 500:
            with suppress(DatabaseError):  # a full or busy disk: the page is made, and the next one may write it down
                session.slide()
        return super().process_response(request, response)


class SignInRequired(LoginRequiredMiddleware):
    """Leads to the sign-in and back; a one-time password leads nowhere but to its change."""

    def process_view(
        self, request: HttpRequest, view_func: Callable[..., HttpResponseBase], view_args: object, view_kwargs: object
    ) -> HttpResponseBase | None:
        if not getattr(view_func, "login_required", True):
            return None  # it is for everybody, or answers by itself as the API does
        answer = super().process_view(request, view_func, view_args, view_kwargs)  # type: ignore[arg-type]
        if answer is not None or not request.user.is_authenticated or not request.session.get(MUST_CHANGE):
            return answer
        name = request.resolver_match.url_name if request.resolver_match else ""
        return None if name in _OPEN_WITH_IT else _lead(request, "password-change", {"next": where(request)})

    def handle_no_permission(self, request: HttpRequest, view_func: Callable[..., HttpResponseBase]) -> HttpResponseRedirect:  # noqa: ARG002
        return lead_to_sign_in(request)  # type: ignore[return-value]  # htmx gets its redirect as a header


def lead_to_sign_in(request: HttpRequest) -> HttpResponse:
    """To the sign-in and back. Who pressed something is told that it was not done."""
    told = {"next": where(request)} | ({"ended": "1"} if wants_fragment(request) or request.method == "POST" else {})
    return _lead(request, "sign-in", told)


def where(request: HttpRequest) -> str:
    """The page to come back to: for a part, or a form that was sent, the page that it stood on."""
    if wants_fragment(request):
        return request.htmx.current_url_abs_path or "/"  # type: ignore[attr-defined]
    if request.method in {"GET", "HEAD"}:
        return request.get_full_path()
    came_from = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(came_from, allowed_hosts={request.get_host()}, require_https=request.is_secure()):
        return "/"
    parts = urlsplit(came_from)
    return f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"


def _lead(request: HttpRequest, name: str, told: dict[str, str]) -> HttpResponse:
    address = f"{resolve_url(name)}?{urlencode(told)}"
    return HttpResponse(headers={"HX-Redirect": address}) if wants_fragment(request) else redirect(address)
