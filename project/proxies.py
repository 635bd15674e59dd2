"""The address of who asks, where proxies stand in front."""

import ipaddress
from collections.abc import Iterable

from asgiref.typing import ASGI3Application, ASGIReceiveCallable, ASGISendCallable, Scope


class ForwardedAddress:
    """Takes the client's address from `X-Forwarded-For`, as far as the given number of proxies wrote it.

    Each proxy adds at the end whom it heard; what stands before that was said by the client itself, and may be a lie.
    With no proxies the header is not looked at.
    """

    def __init__(self, application: ASGI3Application, proxies: int) -> None:
        self._application = application
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        if self._proxies and (scope["type"] == "http" or scope["type"] == "websocket"):
            address = _forwarded(scope["headers"], self._proxies)
            if address:
                scope["client"] = (address, 0)  # the server made this scope for this one request
        await self._application(scope, receive, send)


def _forwarded(headers: Iterable[tuple[bytes, bytes]], proxies: int) -> str:
    """The address that the outermost trusted proxy heard; empty when the header is missing, too short or no address."""
    told = b",".join(value for name, value in headers if name == b"x-forwarded-for").decode("latin-1")
    hops = [hop.strip() for hop in told.split(",")] if told else []
    if len(hops) < proxies:
        return ""
    try:
        return str(ipaddress.ip_address(hops[-proxies]))
    except ValueError:
        return ""
