"""Middleware that works in both sync and async handling: a sync-only one keeps the server from stopping."""

import re
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponse

REQUEST_ID_HEADER = "X-Request-Id"
_ACCEPTED = re.compile(r"[A-Za-z0-9._-]{8,64}")


class RequestContext:
    """Gives each request an id, which stands on its answer, its log lines and its events."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponse | Awaitable[HttpResponse]:
        request_id = self._start(request)
        if iscoroutinefunction(self.get_response):
            return self._finish_later(request, request_id)
        return self._finish(self.get_response(request), request_id)

    async def _finish_later(self, request: HttpRequest, request_id: str) -> HttpResponse:
        return self._finish(await self.get_response(request), request_id)

    def _start(self, request: HttpRequest) -> str:
        given = request.headers.get(REQUEST_ID_HEADER, "")
        request_id = given if _ACCEPTED.fullmatch(given) else uuid.uuid4().hex
        request.request_id = request_id  # type: ignore[attr-defined]
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        return request_id

    def _finish(self, response: HttpResponse, request_id: str) -> HttpResponse:
        response[REQUEST_ID_HEADER] = request_id
        # Transcripts belong into no cache, be it a proxy's or the browser's on disk. A view may know better.
        response.setdefault("Cache-Control", "private, no-store")
        if settings.SECURE_HSTS_SECONDS:  # Django says it where it sees https itself, and here a proxy ends it
            response.setdefault("Strict-Transport-Security", f"max-age={settings.SECURE_HSTS_SECONDS}")
        return response


request_context = RequestContext
