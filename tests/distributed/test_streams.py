"""Streams from web processes of their own: whoever loses one goes on at another, and nothing is lost between the two."""

import asyncio
import subprocess
import sys
from contextlib import AsyncExitStack
from functools import partial

import pytest
from asgiref.sync import sync_to_async

from sessions_app.events import log
from sessions_app.events.actors import system_actor
from sessions_app.events.types import EventType
from tests.api.conftest import token_of
from tests.distributed.processes import ROOT
from tests.stored import store_session
from tests.streaming import Stream, stream

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400), pytest.mark.django_db(transaction=True)]
in_database = sync_to_async
LISTENERS = 30


async def told(listener: Stream, count: int) -> list[int | None]:
    return [one.seq for one in await listener.stored(count)]


async def test_a_stream_of_a_process_that_ends_goes_on_at_another_one_where_it_stopped(start_web, environment, operator):
    collect = [sys.executable, "manage.py", "collectstatic", "--no-input", "-v0"]
    await asyncio.to_thread(subprocess.run, collect, cwd=ROOT, env=environment, check=True)
    one, other = [await asyncio.to_thread(start_web) for _ in range(2)]
    session = await in_database(store_session)()
    bearer = {"Authorization": f"Bearer {await in_database(token_of)(operator, 'read')}"}

    def say(count: int) -> None:
        for _ in range(count):
            log.append(log.session_stream(session.pk), EventType.SESSION_VIEWED, actor=system_actor("test"))

    async with stream(f"http://127.0.0.1:{one.port}", session.pk, query="?after_seq=0", **bearer) as listener:
        await in_database(say)(3)
        assert await told(listener, 3) == [1, 2, 3]
        await in_database(say)(2)
        had = await told(listener, 1)
        one.ask_to_end()
        await asyncio.to_thread(one.wait_for_end)
        rest = await listener.rest()
        had += [each.seq for each in rest if each.seq is not None]
        assert "[DONE]" not in [each.data for each in rest]
    await in_database(say)(4)
    async with AsyncExitStack() as opened:
        # More of them than a process has connections to the database.
        again = partial(stream, f"http://127.0.0.1:{other.port}", session.pk, Last_Event_ID=str(had[-1]), **bearer)
        listeners = [await opened.enter_async_context(again()) for _ in range(LISTENERS)]
        for each in listeners:
            assert [*had, *(await told(each, 9 - len(had) - 3))] == [4, 5, 6, 7, 8, 9]
        await in_database(say)(1)
        for each in listeners:
            assert await told(each, 1) == [10]
