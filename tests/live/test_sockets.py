"""The browser's sockets: who may follow, what they are told, and that nothing is missed between page and socket."""

import re
import uuid
from datetime import UTC, datetime

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.contrib.sessions.models import Session as SignIn

from sessions_app.events import log
from sessions_app.events.actors import system_actor
from sessions_app.events.types import EventType
from sessions_app.live import consumers, hub
from sessions_app.live.consumers import CLOSE_TOO_SLOW
from sessions_app.live.fragments import list_frame
from sessions_app.models import Event, EventResult, SessionStatus
from sessions_app.selectors import followed
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from tests.services.compaction_scenes import PATIENCE_S, long_session
from tests.stored import store_session

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody")]
in_database = sync_to_async


@pytest.fixture(autouse=True)
def _no_beat_in_between(monkeypatch):
    """A test that takes its time would hear it where it waits for what it did."""
    monkeypatch.setattr(consumers, "BEAT_S", 3_600)


@pytest.fixture
def session():
    return long_session()


def say(session, event_type=EventType.ENTRIES_APPENDED):
    return log.append(log.session_stream(session.pk), event_type, actor=system_actor("test"))


def path_of(session, after=0):
    return f"/ws/sessions/{session.pk}/?after={after}"


def cursor_in(frame):
    return int(re.search(r'id="live-cursor"[^>]*data-seq="(\d+)"', frame)[1])


def changed_in(frame):
    return set(re.search(r'id="live-cursor"[^>]*data-changed="([^"]*)"', frame)[1].split())


async def closing_code(socket):
    output = await socket.receive_output(timeout=PATIENCE_S)
    assert output["type"] == "websocket.close"
    return output["code"]


async def test_what_happens_to_a_session_is_told_to_its_followers(session, operator, connect):
    async with connect(path_of(session), operator) as socket:
        event = await in_database(say)(session)
        frame = await socket.receive_from(timeout=PATIENCE_S)
        assert cursor_in(frame) == event.seq
        assert changed_in(frame) == {"events", "history"}
        assert 'id="compaction-panel"' in frame
        assert 'id="gauge"' in frame


async def test_a_compaction_that_an_agent_reports_changes_the_history_and_the_ledger(session, operator, connect):
    async with connect(path_of(session), operator) as socket:
        await in_database(say)(session, EventType.COMPACTION_REPORTED)
        assert changed_in(await socket.receive_from(timeout=PATIENCE_S)) == {"events", "history", "ledger"}


async def test_two_followers_get_the_same_bytes_whoever_they_are(session, operator, admin, connect):
    async with connect(path_of(session), operator) as one, connect(path_of(session), admin) as other:
        await in_database(say)(session)
        assert await one.receive_from(timeout=PATIENCE_S) == await other.receive_from(timeout=PATIENCE_S)


async def test_a_socket_is_caught_up_with_what_happened_between_page_and_connection(session, operator, connect):
    """The gap test: page state and events after its cursor give the state that a later page shows."""
    cursor = await in_database(followed.session_cursor)(session.pk)
    await in_database(say)(session)
    last = await in_database(say)(session, EventType.COMPACTION_REVERTED)
    async with connect(path_of(session, after=cursor), operator) as socket:
        frame = await socket.receive_from(timeout=PATIENCE_S)
    assert cursor_in(frame) == last.seq == await in_database(followed.session_cursor)(session.pk)
    assert changed_in(frame) == {"events", "history", "ledger"}


async def test_a_socket_with_nothing_to_catch_up_is_told_nothing(session, operator, connect):
    event = await in_database(say)(session)
    async with connect(path_of(session, after=event.seq), operator) as socket:
        assert await socket.receive_nothing(timeout=0.3)


@pytest.mark.parametrize("after", ["", "x", "-1", "9" * 40, "0x10"])
async def test_a_forged_cursor_means_from_the_start(session, operator, connect, after):
    event = await in_database(say)(session)
    async with connect(path_of(session, after=after), operator) as socket:
        assert cursor_in(await socket.receive_from(timeout=PATIENCE_S)) == event.seq


async def test_a_compaction_is_followed_to_its_end(session, support, support_actor, connect):
    async with connect(path_of(session), support) as socket:
        compaction = (await in_database(request)(actor=support_actor, session=session)).compaction
        assert f"a{compaction.attempt}" in await socket.receive_from(timeout=PATIENCE_S)
        await in_database(run_compaction)(compaction.pk)
        last = await in_database(followed.session_cursor)(session.pk)
        frame = ""
        while not frame or cursor_in(frame) < last:
            frame = await socket.receive_from(timeout=PATIENCE_S)
        assert "committed" in frame
        assert changed_in(frame) >= {"ledger", "history"}


async def test_what_a_browser_sends_is_ignored(session, operator, connect):
    async with connect(path_of(session), operator) as socket:
        await socket.send_to(text_data='{"type": "compact"}')
        await socket.send_to(bytes_data=b"\x00" * 100)
        await in_database(say)(session)
        assert cursor_in(await socket.receive_from(timeout=PATIENCE_S))
    assert not await Event.objects.filter(type="compaction.requested").aexists()


async def test_nobody_follows_without_a_sign_in_and_the_refusal_is_an_event(session, connect):
    async with connect(path_of(session)) as socket:
        assert await closing_code(socket) == 4403
    event = await Event.objects.aget(type="access.refused")
    assert (event.result, event.target_id, event.actor_kind) == (EventResult.REFUSED, str(session.pk), "anonymous")


async def test_somebody_in_no_group_is_told_that_there_is_nothing(session, outsider, connect):
    for path in (path_of(session), "/ws/sessions/"):
        async with connect(path, outsider) as socket:
            assert await closing_code(socket) == 4404
    assert await Event.objects.filter(type="access.refused", actor_name=outsider.username).acount() == 2


async def test_an_unknown_session_and_an_unknown_address_are_closed_with_a_code(operator, connect):
    for path in (f"/ws/sessions/{uuid.uuid4()}/", "/ws/nothing/"):
        async with connect(path, operator) as socket:
            assert await closing_code(socket) == 4404


async def test_another_site_cannot_open_a_socket_in_somebodys_name(session, operator, connect):
    async with connect(path_of(session), operator, origin=b"http://evil.example") as socket:
        assert not socket.was_accepted


@pytest.mark.parametrize("loss", ["sign-out", "sign-in expired", "another password", "no group", "switched off"])
async def test_a_socket_ends_when_its_person_loses_the_right(session, operator, connect, monkeypatch, loss):
    monkeypatch.setattr("sessions_app.live.consumers.RECHECK_S", 0.1)

    def lose():
        if loss == "sign-out":
            SignIn.objects.all().delete()
        elif loss == "sign-in expired":
            SignIn.objects.update(expire_date=datetime(2020, 1, 1, tzinfo=UTC))
        elif loss == "another password":
            operator.set_password("a new one, for the old one got known")
            operator.save()
        elif loss == "no group":
            operator.groups.remove(Group.objects.get(name="operators"))
        else:
            operator.is_active = False
            operator.save()

    async with connect(path_of(session), operator) as socket:
        assert await socket.receive_nothing(timeout=0.3)
        await in_database(lose)()
        assert await closing_code(socket) == (4404 if loss == "no group" else 4403)


async def test_a_sign_of_life_comes_whether_anything_happens_or_not(session, operator, connect, monkeypatch):
    monkeypatch.setattr(consumers, "BEAT_S", 0.05)
    async with connect(path_of(session), operator) as socket:
        for _ in range(2):
            assert await socket.receive_from(timeout=PATIENCE_S) == consumers.BEAT


async def test_a_socket_that_does_not_keep_up_is_closed_so_that_it_comes_back(session, operator, connect, monkeypatch):
    monkeypatch.setattr("sessions_app.live.hub.Follower.offer", lambda self, message: self.drop())
    async with connect(path_of(session), operator) as socket:
        await in_database(say)(session)
        assert await closing_code(socket) == CLOSE_TOO_SLOW


def test_every_code_is_one_that_a_server_may_close_with():
    codes = {name: value for name, value in vars(consumers).items() if name.startswith("CLOSE_")}
    assert codes
    assert all(3_000 <= code <= 4_999 for code in codes.values()), codes


async def test_the_list_is_told_the_rows_that_changed_and_only_those(session, operator, connect):
    other = await in_database(long_session)()
    async with connect(f"/ws/sessions/?after={await in_database(followed.list_cursor)()}", operator) as socket:
        session.status = SessionStatus.WORKING
        await session.asave()
        await in_database(say)(session)
        row = await socket.receive_from(timeout=PATIENCE_S)
        assert f'id="row-{session.pk}"' in row
        assert str(other.pk) not in row
        assert "working" in row


@pytest.mark.parametrize("place", ["session", "list"])
async def test_a_page_is_told_at_most_ten_times_a_second_and_a_list_four_times(session, operator, connect, monkeypatch, place):
    """With a gap that lasts: two messages come at once, and whatever happens then waits until it is over."""
    name, most = ("GAP_S", 10) if place == "session" else ("LIST_GAP_S", 4)
    assert 1 / getattr(hub, name) <= most
    monkeypatch.setattr(hub, name, 3_600)
    path = path_of(session) if place == "session" else f"/ws/sessions/?after={await in_database(followed.list_cursor)()}"
    async with connect(path, operator) as socket:
        await in_database(say)(session)
        assert str(session.pk) in await socket.receive_from(timeout=PATIENCE_S)  # from now on it follows
        for _ in range(20):
            await in_database(say)(session)
        await socket.receive_from(timeout=PATIENCE_S)
        told = 1
        while not await socket.receive_nothing(timeout=0.4):
            await socket.receive_from(timeout=PATIENCE_S)
            told += 1
        assert told <= hub.AT_ONCE


async def test_the_list_is_caught_up_with_rows_that_changed_before_it_connected(session, operator, connect):
    cursor = await in_database(followed.list_cursor)()
    await in_database(say)(session)
    async with connect(f"/ws/sessions/?after={cursor}", operator) as socket:
        assert f'id="row-{session.pk}"' in await socket.receive_from(timeout=PATIENCE_S)


@pytest.mark.parametrize("place", ["session", "list"])
async def test_a_cursor_from_the_future_keeps_nothing_from_anybody(session, operator, connect, place):
    """All sockets of a page share one reader: where one of them says it begins must not decide what others miss."""
    seq = (await in_database(say)(session)).seq
    pk = await in_database(followed.list_cursor)()
    path, now = (path_of(session, after=""), seq) if place == "session" else ("/ws/sessions/?after=", pk)
    async with connect(f"{path}{10**15}", operator) as forged:
        assert await forged.receive_nothing(timeout=0.2)
        async with connect(f"{path}{now}", operator) as honest:
            await in_database(say)(session)
            assert str(session.pk) in await honest.receive_from(timeout=PATIENCE_S)
            assert str(session.pk) in await forged.receive_from(timeout=PATIENCE_S)


async def test_the_list_is_caught_up_however_many_rows_changed_at_once(operator, connect):
    cursor = await in_database(followed.list_cursor)()

    def change_many():
        for _ in range(followed.MAX_CHANGED_SESSIONS):
            say(store_session())

    await in_database(change_many)()
    async with connect(f"/ws/sessions/?after={cursor}", operator) as socket:
        for _ in range(followed.MAX_CHANGED_SESSIONS):
            assert 'id="row-' in await socket.receive_from(timeout=PATIENCE_S)


def test_many_changed_rows_are_read_with_two_queries(django_assert_num_queries):
    for _ in range(30):
        say(store_session())
    with django_assert_num_queries(2):
        assert len(list_frame(0).messages) == 30
