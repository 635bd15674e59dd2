"""Whatever answers below `/v1/`, a refusal has the shape of the API: also what the server or another middleware refused."""

from collections.abc import Awaitable
from typing import cast

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from sessions_app.api.errors import answer_status
from sessions_app.api.wire import JSON
from sessions_app.middleware import Answer, EitherWay

PREFIX = "/v1/"


class ErrorShape(EitherWay):
    """Middleware that turns an error's page into the API's JSON."""

    def __call__(self, request: HttpRequest) -> Answer:
        answer = self.get_response(request)
        if not request.path.startswith(PREFIX):
            return answer
        if iscoroutinefunction(self.get_response):
            return _awaited(request, cast("Awaitable[HttpResponseBase]", answer))
        return _shaped(request, cast("HttpResponseBase", answer))


async def _awaited(request: HttpRequest, answer: Awaitable[HttpResponseBase]) -> HttpResponseBase:
    return _shaped(request, await answer)


def _shaped(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    is_ours = response.status_code < 400 or response.get("Content-Type", "").startswith(JSON)
    return response if is_ours or not isinstance(response, HttpResponse) else answer_status(request, response)


error_shape = ErrorShape
