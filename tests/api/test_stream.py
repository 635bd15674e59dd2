"""The stream of a session: who gets it, what is in it, where it begins and how it ends."""

import json
import uuid

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from sessions_app.events import deferred, log
from sessions_app.events.actors import system_actor
from sessions_app.events.types import EventType
from sessions_app.live import streams
from sessions_app.live.poke import poke_session
from sessions_app.models import AccessToken, Event, Turn, TurnStatus
from sessions_app.services import tokens
from tests.api.conftest import TESTS, error_of, token_of
from tests.api.scenes import compact
from tests.services.compaction_scenes import long_session
from tests.streaming import Told, stream

pytestmark = pytest.mark.django_db(transaction=True)
in_database = sync_to_async


@pytest.fixture
def session():
    return long_session()


@pytest.fixture
def bearer(operator):
    return {"Authorization": f"Bearer {token_of(operator, 'read')}"}


def say(session, event_type=EventType.SESSION_VIEWED, **facts):
    return log.append(log.session_stream(session.pk), event_type, actor=system_actor("test"), **facts)


def stored_of(session):
    return list(Event.objects.filter(stream=log.session_stream(session.pk)).order_by("seq").values_list("seq", "type"))


def named(told: list[Told], name: str) -> list[Told]:
    return [one for one in told if one.name == name]


async def whole(live_url, session, bearer, query="?after_seq=0&follow=false") -> list[Told]:
    async with stream(live_url, session.pk, query=query, **bearer) as opened:
        return await opened.rest()


async def test_a_stream_from_the_beginning_holds_every_stored_event_once_and_in_full(live_url, session, bearer):
    await in_database(compact)(session)
    told = await whole(live_url, session, bearer)
    assert told[0].name == "session.heartbeat"
    assert told[-1].data == "[DONE]"
    events = told[1:-1]
    assert [(one.seq, one.data["event"]["type"]) for one in events] == await in_database(stored_of)(session)
    assert all(one.data["type"] == one.name and one.data["sequence_number"] == one.seq for one in events)
    assert all("address" not in one.data["event"]["actor"] for one in events)


async def test_its_answer_is_one_that_no_proxy_keeps_or_gathers(live_url, session, bearer):
    async with stream(live_url, session.pk, **bearer) as opened:
        assert opened.status == 200
        assert opened.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert "no-store" in opened.headers["cache-control"]
        assert opened.headers["x-accel-buffering"] == "no"


async def test_without_a_place_it_begins_now_and_says_where_that_is(live_url, session, bearer):
    seq = (await in_database(say)(session)).seq
    async with stream(live_url, session.pk, **bearer) as opened:
        first = await opened.expect()
        assert (first.name, first.seq, first.data["sequence_number"]) == ("session.heartbeat", seq, seq)
        await in_database(say)(session)
        assert (await opened.expect()).seq == seq + 1


async def test_a_browser_that_comes_again_goes_on_behind_the_last_id_whatever_its_address_says(live_url, session, bearer):
    seqs = [(await in_database(say)(session)).seq for _ in range(4)]
    async with stream(live_url, session.pk, query="?after_seq=0&follow=false", Last_Event_ID=str(seqs[1]), **bearer) as opened:
        told = await opened.rest()
    assert [one.seq for one in told if one.seq] == seqs[2:]
    assert told[0].seq is None


async def test_a_place_that_is_not_reached_yet_hides_nothing(live_url, session, bearer):
    seq = (await in_database(say)(session)).seq
    async with stream(live_url, session.pk, query=f"?after_seq={10**15}", **bearer) as opened:
        assert (await opened.expect()).data["sequence_number"] == seq
        await in_database(say)(session)
        assert (await opened.expect()).seq == seq + 1


async def test_more_than_one_page_behind_is_caught_up_without_a_gap(live_url, session, bearer, monkeypatch):
    monkeypatch.setattr(streams, "PAGE_EVENTS", 3)
    for _ in range(9):
        await in_database(say)(session)
    async with stream(live_url, session.pk, query="?after_seq=0", **bearer) as opened:
        last = (await in_database(say)(session)).seq
        assert [one.seq for one in await opened.stored(last)] == list(range(1, last + 1))


async def test_a_compaction_begins_and_ends_once_and_says_what_it_came_to(live_url, session, bearer):
    async with stream(live_url, session.pk, query="?after_seq=0", **bearer) as opened:
        attempt = await in_database(compact)(session)
        told = await opened.until("response.compaction.completed")
    begun = named(told, "response.compaction.in_progress")
    assert [one.data["compaction_id"] for one in begun] == [str(attempt.pk)]
    ended = told[-1].data
    assert (ended["compaction_id"], ended["outcome"], ended["total_tokens"]) == (str(attempt.pk), "committed", attempt.tokens_after)
    assert ended["event"]["type"] == "compaction.persisted"
    assert {one.data["event"]["type"] for one in named(told, "session.compaction")} >= {
        "compaction.requested",
        "compaction.summary_verified",
    }
    rest = await whole(live_url, session, bearer, f"?after_seq={told[-1].seq}&follow=false")
    assert not [one for one in rest if one.name.startswith("response.compaction.")]


async def test_a_compaction_with_nothing_to_do_ends_too_and_one_that_failed_says_so(live_url, session, bearer):
    def attempts():
        empty = long_session(1)
        compact(empty)
        step = {"compaction_id": uuid.uuid4(), "step": 2, "target": ("compaction", "x")}
        say(session, EventType.COMPACTION_TRIGGERED, payload={"status": "timed_out", "outcome": "timed_out"}, reason="deadline", **step)
        return empty

    empty = await in_database(attempts)()
    ends = [
        one for one in await whole(live_url, empty, bearer) if one.name in {"response.compaction.completed", "response.compaction.failed"}
    ]
    assert [(one.name, one.data["outcome"]) for one in ends] == [("response.compaction.completed", "skipped")]
    assert "total_tokens" not in ends[0].data
    failed = named(await whole(live_url, session, bearer), "response.compaction.failed")
    assert [(one.data["outcome"], one.data["reason"]) for one in failed] == [("timed_out", "deadline")]


@pytest.mark.parametrize("status", ["in_progress", "completed", "failed"])
async def test_what_a_runner_reports_of_its_own_compaction_is_told_under_that_name_alone(live_url, session, bearer, status):
    report = {"status": status, "response_event": f"response.compaction.{status}"}
    await in_database(say)(session, EventType.COMPACTION_REPORTED, payload=report)
    await in_database(say)(session, EventType.COMPACTION_REPORTED, payload={"status": status, "response_event": None})
    told = (await whole(live_url, session, bearer))[-3:-1]
    assert [one.name for one in told] == [f"response.compaction.{status}", "session.compaction"]
    assert all("total_tokens" not in one.data for one in told)


async def test_added_entries_are_told_by_the_ids_of_their_items(live_url, session, bearer, as_operator):
    await in_database(say)(session, EventType.ENTRIES_APPENDED, payload={"first": 0, "last": 2, "count": 3})
    added = named(await whole(live_url, session, bearer), "entries.appended")[-1].data
    listed = (await in_database(as_operator.get)(f"/sessions/{session.pk}/items?limit=3")).json()
    assert added["first_item_id"] == listed["first_id"]
    assert added["last_item_id"].startswith(f"item_{session.pk.hex}_2")


async def test_an_answer_is_told_bit_by_bit_as_it_comes_and_marked_as_what_is_not_stored(live_url, bearer):
    session = await in_database(long_session)(kind="inline")
    times = dict.fromkeys(("sent_at", "queued_at"), timezone.now())
    turn = await Turn.objects.acreate(session=session, number=1, status=TurnStatus.RUNNING, text="?", answer_text="One", **times)

    async def comes(text: str):
        await Turn.objects.filter(pk=turn.pk).aupdate(answer_text=text)
        await in_database(poke_session)(str(session.pk), 0)

    async with stream(live_url, session.pk, **bearer) as opened:
        assert (await opened.until("response.output_text.delta"))[-1].data["delta"] == "One"
        async with stream(live_url, session.pk, **bearer) as late:
            first = (await late.until("response.output_text.delta"))[-1]
            assert (first.seq, first.data["offset"], first.data["delta"], first.data["transient"]) == (None, 0, "One", True)
            await comes("One, two")
            for listener in (opened, late):
                more = (await listener.until("response.output_text.delta"))[-1].data
                assert (more["turn_id"], more["offset"], more["delta"]) == (str(turn.pk), 3, ", two")
            await comes("Anew")
            again = (await late.expect()).data
            assert (again["offset"], again["delta"]) == (0, "Anew")


async def test_a_sign_of_life_comes_whether_anything_happens_or_not(live_url, session, bearer, monkeypatch):
    monkeypatch.setattr(streams, "BEAT_S", 0.05)
    async with stream(live_url, session.pk, query="?after_seq=0", **bearer) as opened:
        await in_database(say)(session)
        beats = []
        while len(beats) < 3:
            told = await opened.expect()
            beats += [told] if told.name == "session.heartbeat" else []
    assert all(beat.seq is None for beat in beats)
    assert beats[-1].data["sequence_number"] == 1


@pytest.mark.parametrize("loss", ["revoked", "expired", "no group", "switched off"])
async def test_a_stream_ends_without_a_word_when_its_token_loses_the_right(live_url, session, operator, bearer, monkeypatch, loss):
    monkeypatch.setattr(streams, "RECHECK_S", 0.1)

    def lose():
        token = AccessToken.objects.get()
        if loss == "revoked":
            tokens.revoke(actor=TESTS, token_id=token.pk)
        elif loss == "expired":
            AccessToken.objects.update(expires_at=token.created_at)
        elif loss == "no group":
            operator.groups.clear()
        else:
            operator.is_active = False
            operator.save()

    async with stream(live_url, session.pk, **bearer) as opened:
        await opened.expect()
        await in_database(lose)()
        assert [one for one in await opened.rest() if one.data == "[DONE]"] == []


async def test_a_signed_in_browser_may_listen_and_its_stream_ends_with_its_sign_in(live_url, session, operator, client, monkeypatch):
    monkeypatch.setattr(streams, "RECHECK_S", 0.1)
    await in_database(client.force_login)(operator)
    cookie = "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())
    async with stream(live_url, session.pk, Cookie=cookie) as opened:
        assert (await opened.expect()).name == "session.heartbeat"
        await in_database(client.logout)()
        assert await opened.rest() is not None


async def test_a_stream_is_a_read_that_is_written_down(live_url, session, bearer, operator):
    async with stream(live_url, session.pk, **bearer) as opened:
        await opened.expect()
    assert await in_database(deferred.flush)()
    event = await Event.objects.aget(type="session.viewed", target_id=str(session.pk))
    assert event.actor_kind == "token"


async def test_whoever_may_not_listen_is_told_in_the_shape_of_the_api(live_url, session, bearer, outsider):
    stranger = await in_database(token_of)(outsider, "read")
    for headers, session_id, status, code in (
        ({}, session.pk, 401, "unauthorized"),
        ({"Authorization": "Bearer plm_wrong"}, session.pk, 401, "unauthorized"),
        ({"Authorization": f"Bearer {stranger}"}, session.pk, 404, "not_found"),
        (bearer, uuid.uuid4(), 404, "not_found"),
    ):
        async with stream(live_url, session_id, **headers) as opened:
            assert opened.status == status
            assert json.loads(await opened.body())["error"]["code"] == code


@pytest.mark.parametrize(
    ("query", "header", "field"),
    [("?after_seq=-1", "", "after_seq"), ("?after_seq=x", "", "after_seq"), ("", "1.5", "Last-Event-ID"), ("", "9" * 20, "Last-Event-ID")],
)
def test_a_place_that_is_none_is_refused_by_its_name(session, as_operator, query, header, field):
    headers = {"Last_Event_ID": header} if header else {}
    answer = as_operator.get(f"/sessions/{session.pk}/stream{query}", **headers)
    assert answer.status_code == 400
    told = error_of(answer)
    assert (told["code"], told["field"]) == ("invalid_input", field)
