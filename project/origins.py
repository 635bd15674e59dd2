"""Who may open a websocket: pages of this very address, and no other site, host or port."""

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import structlog
from channels.db import database_sync_to_async
from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.db import DatabaseError
from django.http.request import split_domain_port, validate_host

from sessions_app.events import refusals
from sessions_app.events.actors import Actor
from sessions_app.models import ActorKind

logger = structlog.get_logger(__name__)

Application = Callable[[Any, Any, Any], Awaitable[None]]


class SameOriginOnly:
    """Lets a handshake through whose Origin names the address that it came to, or the public one.

    A browser sends the cookies of a host to all its ports, so the host alone is not enough: any other program on
    this machine could serve a page that opens sockets in the name of whoever is signed in here.
    """

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope["headers"])
        if is_same_origin(headers.get(b"origin", b""), headers.get(b"host", b"")):
            await self.application(scope, receive, send)
            return
        await database_sync_to_async(_record)(scope, headers.get(b"origin", b""))
        await WebsocketDenier()(scope, receive, send)


class ByToken:
    """Handshakes that carry a token go to `programs`, all others to `pages`.

    No page of another site can send that header, so it needs no Origin; and whoever sends it is asked for the token alone.
    """

    def __init__(self, programs: Application, pages: Application) -> None:
        self.programs = programs
        self.pages = pages

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        has_token = any(name == b"authorization" for name, _ in scope["headers"])
        await (self.programs if has_token else self.pages)(scope, receive, send)


def _record(scope: Any, origin: bytes) -> None:
    """Whose cookies came along is not looked at: it was not they who asked."""
    actor = Actor(kind=ActorKind.ANONYMOUS, address=str((scope.get("client") or [""])[0]))
    named = origin.decode("ascii", "backslashreplace")[:200].replace("\0", "\\x00")  # PostgreSQL holds no NUL
    path = str(scope.get("path", ""))[:64].replace("\0", "?")
    reason = f"A page of {named or 'nowhere'} wanted to open a socket."
    try:
        refusals.record(actor=actor, reason=reason, target=("socket", path))
    except DatabaseError as error:  # it is refused all the same
        logger.warning("refusal_not_recorded", error=type(error).__name__)


def is_same_origin(origin: bytes, host: bytes) -> bool:
    """Whether the Origin header is that of a page of ours. Both as they were sent; an absent one never is."""
    try:
        claimed, asked = origin.decode("ascii").lower(), host.decode("ascii").lower()
        parts = urlsplit(claimed)
        is_web = parts.scheme in {"http", "https"} and parts.port != 0
    except ValueError:
        return False
    if claimed in settings.CSRF_TRUSTED_ORIGINS:
        return True
    return is_web and parts.netloc == asked and validate_host(split_domain_port(asked)[0], settings.ALLOWED_HOSTS)
