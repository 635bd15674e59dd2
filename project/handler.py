"""The handler of HTTP requests: a page is answered in one thread, from its first middleware to its last."""

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.base import BaseHandler
from django.http import HttpRequest
from django.http.response import HttpResponseBase

AWAITED = "/v1/"
"""Where views may wait for others without a thread: these run as Django's own handler has it."""


class Handler(ASGIHandler):
    """Django's handler, without its two changes of threads for each middleware: a page waited longer for those than for its view.

    Answers that are sent as they come are so still: they are read by the handler, behind all middleware.
    """

    def __init__(self) -> None:
        super().__init__()
        self._pages = BaseHandler()
        self._pages.load_middleware()

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info.startswith(AWAITED):
            return await super().get_response_async(request)
        return await sync_to_async(self._pages.get_response, thread_sensitive=True)(request)
