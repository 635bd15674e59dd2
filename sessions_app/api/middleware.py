"""Whatever answers below `/v1/`, a refusal has the shape of the API: also what the server or another middleware refused."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from sessions_app.api.errors import answer_status
from sessions_app.api.wire import JSON

PREFIX = "/v1/"


class ErrorShape:
    """Middleware that turns an error's page into the API's JSON."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        answer = self.get_response(request)
        if not request.path.startswith(PREFIX):
            return cast("HttpResponseBase", answer)  # or the promise of one: whoever asked waits for it
        return self._awaited(request, answer) if iscoroutinefunction(self.get_response) else _shaped(request, answer)

    async def _awaited(self, request: HttpRequest, answer: Awaitable[HttpResponseBase]) -> HttpResponseBase:
        return _shaped(request, await answer)


def _shaped(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    is_ours = response.status_code < 400 or response.get("Content-Type", "").startswith(JSON)
    return response if is_ours or not isinstance(response, HttpResponse) else answer_status(request, response)


error_shape = ErrorShape
