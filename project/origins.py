"""Who may open a websocket: pages of this very address, and no other site, host or port."""

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http.request import split_domain_port, validate_host

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
        await WebsocketDenier()(scope, receive, send)


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
