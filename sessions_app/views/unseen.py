"""Every page shows what hides in the text on it, wherever that came from: titles, names, branches, snippets, rows of the log."""

from collections.abc import Awaitable
from typing import cast

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponse, HttpResponseBase

from sessions_app.engine.unseen import shown_page
from sessions_app.middleware import Answer, EitherWay


class VisibleText(EitherWay):
    """Middleware. No page of ours needs a character that nobody sees, so that none has to be told from those of a transcript."""

    def __call__(self, request: HttpRequest) -> Answer:
        answer = self.get_response(request)
        if iscoroutinefunction(self.get_response):
            return _awaited(cast("Awaitable[HttpResponseBase]", answer))
        return _visible(cast("HttpResponseBase", answer))


async def _awaited(answer: Awaitable[HttpResponseBase]) -> HttpResponseBase:
    return _visible(await answer)


def _visible(response: HttpResponseBase) -> HttpResponseBase:
    if isinstance(response, HttpResponse) and response.get("Content-Type", "").startswith("text/html"):
        page = response.content
        if (made := shown_page(page)) is not page:
            response.content = made
    return response
