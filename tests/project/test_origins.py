"""Websockets open for pages of this address only."""

import pytest
from channels.testing import WebsocketCommunicator

from project.application import application
from project.origins import is_same_origin
from sessions_app.models import Event


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        (b"http://127.0.0.1:8000", b"127.0.0.1:8000"),
        (b"http://localhost", b"localhost"),
        (b"https://localhost:8443", b"localhost:8443"),
        (b"http://[::1]:8000", b"[::1]:8000"),
        (b"HTTP://LOCALHOST:8000", b"localhost:8000"),
    ],
)
def test_a_page_of_this_address_may_open_a_socket(origin, host):
    assert is_same_origin(origin, host)


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        (b"", b"127.0.0.1:8000"),
        (b"null", b"127.0.0.1:8000"),
        (b"http://evil.example", b"127.0.0.1:8000"),
        (b"http://127.0.0.1:9000", b"127.0.0.1:8000"),
        (b"http://127.0.0.1:8000.evil.example", b"127.0.0.1:8000"),
        (b"http://user@127.0.0.1:8000", b"127.0.0.1:8000"),
        (b"file://127.0.0.1:8000", b"127.0.0.1:8000"),
        (b"http://evil.example", b"evil.example"),
        (b"http://127.0.0.1:port", b"127.0.0.1:port"),
        (b"http://\xff", b"\xff"),
        (b"http://127.0.0.1:8000", b""),
    ],
)
def test_any_other_site_host_or_port_may_not(origin, host):
    assert not is_same_origin(origin, host)


def test_the_public_address_may_where_it_differs_from_the_host_that_a_front_server_sends(settings):
    settings.CSRF_TRUSTED_ORIGINS = ["https://palimpsest.example"]
    assert is_same_origin(b"https://palimpsest.example", b"127.0.0.1:8000")


@pytest.mark.django_db(transaction=True)
async def test_a_socket_that_another_site_opens_is_refused_and_written_down():
    headers = [(b"origin", b"http://evil.example\xff"), (b"host", b"127.0.0.1:8000")]
    opened = WebsocketCommunicator(application, "/ws/sessions/", headers=headers)
    assert (await opened.connect())[0] is False
    event = await Event.objects.aget(type="access.refused")
    assert (event.target_kind, event.target_id, event.actor_kind) == ("socket", "/ws/sessions/", "anonymous")
    assert event.reason == "A page of http://evil.example\\xff wanted to open a socket."


@pytest.mark.django_db(transaction=True)
async def test_what_no_database_holds_does_not_keep_a_refused_socket_out_of_the_log():
    headers = [(b"origin", b"http://evil.example\0"), (b"host", b"127.0.0.1:8000")]
    assert (await WebsocketCommunicator(application, "/ws/%00", headers=headers).connect())[0] is False
    event = await Event.objects.aget(type="access.refused")
    assert "\0" not in event.reason + event.target_id
