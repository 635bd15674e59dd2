"""`WS /v1/sessions/{id}/ws`: the same events over a websocket, for programs with a token and for pages of this address."""

import uuid

import pytest
from asgiref.sync import sync_to_async
from django.test import Client

from sessions_app.events import deferred, log
from sessions_app.events.actors import system_actor
from sessions_app.events.types import EventType
from sessions_app.live import streams
from sessions_app.models import AccessToken, Event
from tests.api.conftest import token_of
from tests.stored import store_session
from tests.streaming import stream, web_socket

pytestmark = pytest.mark.django_db(transaction=True)
in_database = sync_to_async


@pytest.fixture
def session():
    return store_session()


@pytest.fixture
def bearer(operator):
    return {"Authorization": f"Bearer {token_of(operator, 'read')}"}


def say(session):
    return log.append(log.session_stream(session.pk), EventType.SESSION_VIEWED, actor=system_actor("test")).seq


def cookie_of(user) -> str:
    client = Client()
    client.force_login(user)
    return "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())


async def test_its_messages_are_those_of_the_stream(live_url, session, bearer):
    last = [await in_database(say)(session) for _ in range(3)][-1]
    async with stream(live_url, session.pk, query="?after_seq=0&follow=false", **bearer) as opened:
        told = [one.data for one in await opened.rest() if one.seq]
    async with web_socket(live_url, session.pk, query="?after_seq=0", **bearer) as socket:
        assert (await socket.next()) == {"type": "session.heartbeat", "sequence_number": 0, "session_id": str(session.pk)}
        assert [await socket.next() for _ in range(last)] == told
        await in_database(say)(session)
        assert (await socket.next())["sequence_number"] == last + 1


async def test_without_a_place_it_begins_now(live_url, session, bearer):
    seq = await in_database(say)(session)
    async with web_socket(live_url, session.pk, **bearer) as socket:
        assert (await socket.next())["sequence_number"] == seq
        await in_database(say)(session)
        assert (await socket.next())["event"]["seq"] == seq + 1


async def test_a_page_of_this_address_may_listen_by_its_sign_in_and_no_other(live_url, session, operator):
    cookie = await in_database(cookie_of)(operator)
    async with web_socket(live_url, session.pk, Cookie=cookie, Origin=live_url) as socket:
        assert (await socket.next())["type"] == "session.heartbeat"
    with pytest.raises(AssertionError, match="403"):
        async with web_socket(live_url, session.pk, Cookie=cookie, Origin="http://evil.example"):
            pass


async def test_a_cookie_opens_nothing_beside_a_wrong_token(live_url, session, operator):
    cookie = await in_database(cookie_of)(operator)
    async with web_socket(live_url, session.pk, Cookie=cookie, Authorization="Bearer plm_wrong") as socket:
        assert (await socket.next())["error"]["code"] == "unauthorized"
        assert (await socket.next(), socket.code) == (None, 4401)


async def test_whoever_may_not_listen_is_told_why(live_url, session, bearer, outsider):
    stranger = {"Authorization": f"Bearer {await in_database(token_of)(outsider, 'read')}"}
    basic = {"Authorization": "Basic abc"}
    for headers, session_id, query, code, number in (
        (stranger, session.pk, "", "not_found", 4404),
        (bearer, uuid.uuid4(), "", "not_found", 4404),
        (basic, session.pk, "", "unauthorized", 4401),
        ({"Origin": live_url}, session.pk, "", "unauthorized", 4401),
        (bearer, session.pk, "?after_seq=-1", "invalid_input", 4400),
        (bearer, session.pk, "?after_seq=", "invalid_input", 4400),
    ):
        async with web_socket(live_url, session_id, query=query, **headers) as socket:
            assert (await socket.next())["error"]["code"] == code
            assert (await socket.next(), socket.code) == (None, number)


async def test_a_sign_of_life_comes_and_a_right_that_is_lost_ends_it(live_url, session, bearer, monkeypatch):
    monkeypatch.setattr(streams, "BEAT_S", 0.05)
    monkeypatch.setattr(streams, "RECHECK_S", 0.1)
    async with web_socket(live_url, session.pk, **bearer) as socket:
        assert [(await socket.next())["type"] for _ in range(3)] == ["session.heartbeat"] * 3
        await AccessToken.objects.all().adelete()
        while "error" not in (message := await socket.next()):
            pass
        assert message["error"]["code"] == "unauthorized"
        assert (await socket.next(), socket.code) == (None, 4401)


async def test_to_listen_is_a_read_that_is_written_down(live_url, session, bearer):
    async with web_socket(live_url, session.pk, **bearer) as socket:
        await socket.next()
        assert await in_database(deferred.flush)()
    assert await Event.objects.filter(type="session.viewed", target_id=str(session.pk), actor_kind="token").aexists()
