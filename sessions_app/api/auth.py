"""Who asks: a token in `Authorization`, or the browser's session, which needs its CSRF token for all that changes something."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.middleware.csrf import CsrfViewMiddleware
from ninja.security import APIKeyCookie, HttpBearer

from sessions_app import permissions
from sessions_app.api.errors import ApiError
from sessions_app.events.actors import Actor
from sessions_app.services import tokens
from sessions_app.services.sign_in_store import MUST_CHANGE

CSRF = "A browser's session needs the header X-CSRFToken for this, with what its cookie says. Nothing was changed."
ONE_TIME = "Your password was made by somebody else; change it on its page first. Nothing was changed."


class Token(HttpBearer):
    """`Authorization: Bearer <token>`. A wrong one is an error, also beside a browser's session."""

    def __call__(self, request: HttpRequest) -> Actor | None:
        sent = request.headers.get(self.header)
        if sent is None:
            return None
        scheme, _, secret = sent.partition(" ")
        if scheme.lower() != self.openapi_scheme:
            raise ApiError("unauthorized", "Authorization takes the form “Bearer <token>”. Nothing was changed.")
        return self.authenticate(request, secret.strip())

    def authenticate(self, request: HttpRequest, token: str) -> Actor:
        return tokens.authenticate(token, request_id=getattr(request, "request_id", ""), address=request.META.get("REMOTE_ADDR", ""))


class Browser(APIKeyCookie):
    """The session of a signed-in browser."""

    param_name = settings.SESSION_COOKIE_NAME

    def __init__(self) -> None:
        super().__init__(csrf=False)  # the library's own check would come before it is known whether anybody is signed in

    def authenticate(self, request: HttpRequest, key: str | None) -> Actor | None:  # noqa: ARG002  the middleware has read the cookie
        if not request.user.is_authenticated:
            return None
        if not _Csrf(_nothing).comes_from_here(request):
            raise ApiError("forbidden", CSRF)
        if request.session.get(MUST_CHANGE):
            raise ApiError("forbidden", ONE_TIME)
        return permissions.actor_of(request)


class _Csrf(CsrfViewMiddleware):
    """Django's own check, which answers no page."""

    def _reject(self, request: HttpRequest, reason: str) -> Any:  # noqa: ARG002  Django's signature
        return reason

    def comes_from_here(self, request: HttpRequest) -> bool:
        """Whether one of our pages may have sent the request: its token says so, or it changes nothing."""
        self.process_request(request)
        return self.process_view(request, _nothing, (), {}) is None


def _nothing(request: HttpRequest) -> Any:
    """Stands for a view: the check asks whether it is exempt."""


EITHER = [Token(), Browser()]


def actor_of(request: HttpRequest) -> Actor:
    """Who asks, with the rights that they have at this moment: what every gate and service takes."""
    actor = request.auth  # type: ignore[attr-defined]  # the library puts there what let the request in
    assert isinstance(actor, Actor)
    return actor
