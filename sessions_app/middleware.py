"""What middleware of pages and of the API has in common."""

from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase

Answer = HttpResponseBase | Awaitable[HttpResponseBase]


class EitherWay:
    """Passes a request on, in a chain of coroutines as in one of functions, so that Django puts no thread in between."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Answer]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Answer:
        return self.get_response(request)
