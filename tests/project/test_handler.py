"""The handler of HTTP requests: a page in one thread, an awaited answer in none, and what is streamed is streamed."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable

import pytest
from asgiref.testing import ApplicationCommunicator
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.test import override_settings
from django.urls import path
from django.utils.deprecation import MiddlewareMixin

from project.handler import Handler

seen: list[int] = []
ended = threading.Event()


class Middleware(MiddlewareMixin):
    def process_request(self, request: HttpRequest) -> None:
        seen.append(threading.get_ident())

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        seen.append(threading.get_ident())
        return response


def page(request: HttpRequest) -> HttpResponse:
    seen.append(threading.get_ident())
    return HttpResponse("a page")


async def awaited(request: HttpRequest) -> HttpResponse:
    seen.append(threading.get_ident())
    return HttpResponse("awaited")


def streamed(request: HttpRequest) -> StreamingHttpResponse:
    async def parts() -> AsyncIterator[bytes]:
        try:
            for number in range(10**6):
                yield str(number).encode()
                await asyncio.sleep(0)
        finally:
            ended.set()

    return StreamingHttpResponse(parts())


def failing(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("a view's")


urlpatterns: list[object] = [path("page", page), path("v1/awaited", awaited), path("page-awaited", awaited), path("streamed", streamed)]
urlpatterns.append(path("failing", failing))


@pytest.fixture
def answer_to():
    seen.clear()
    ended.clear()
    name = f"{__name__}.Middleware"

    def ask(address: str) -> ApplicationCommunicator:
        scope = {"type": "http", "method": "GET", "path": address, "headers": [(b"host", b"127.0.0.1")], "query_string": b""}
        return ApplicationCommunicator(Handler(), scope)

    with override_settings(ROOT_URLCONF=__name__, MIDDLEWARE=[name, name]):
        yield ask


async def told(communicator: ApplicationCommunicator) -> tuple[int, bytes]:
    await communicator.send_input({"type": "http.request", "body": b""})
    begun = await communicator.receive_output(30)
    body = await communicator.receive_output(30)
    await communicator.wait(30)
    return begun["status"], body["body"]


async def test_a_page_is_answered_in_one_thread_that_is_not_the_server_s(answer_to: Callable[[str], ApplicationCommunicator]):
    assert await told(answer_to("/page")) == (200, b"a page")
    assert len(seen) == 5
    assert len(set(seen)) == 1
    assert threading.get_ident() not in seen


@pytest.mark.parametrize("address", ["/v1/awaited", "/page-awaited"])
async def test_an_awaited_view_runs_with_the_server(answer_to, address):
    assert await told(answer_to(address)) == (200, b"awaited")
    assert seen[2] == threading.get_ident()


async def test_a_failing_view_is_answered(answer_to):
    assert (await told(answer_to("/failing")))[0] == 500
    assert len(set(seen)) == 1


async def test_what_is_streamed_comes_as_it_is_made_and_ends_when_the_client_goes(answer_to):
    communicator = answer_to("/streamed")
    await communicator.send_input({"type": "http.request", "body": b""})
    assert (await communicator.receive_output(30))["status"] == 200
    assert (await communicator.receive_output(30))["body"] == b"0"
    await communicator.send_input({"type": "http.disconnect"})
    await communicator.wait(30)
    assert ended.is_set()
