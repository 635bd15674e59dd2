"""A model called from a worker's thread: cancellable within a fraction of a second, whatever the provider does."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from sessions_app.engine.overflow import Refusal
from sessions_app.engine.steps import ShouldStop, Stopped
from sessions_app.providers.base import ModelAnswer, ModelClient, ModelRequest, OnText, refused

LOOK_S = 0.1
Result = TypeVar("Result")


def call(
    make_client: Callable[[], ModelClient],
    request: ModelRequest,
    *,
    should_stop: ShouldStop,
    timeout_s: float,
    on_text: OnText = lambda _: None,
) -> ModelAnswer:
    """The answer. Raises `ModelRefused`, also after `timeout_s`, and `Stopped` soon after `should_stop` answers.

    Runs an event loop of its own, so it must not be called from one.
    """
    return asyncio.run(_call(make_client, request, should_stop, timeout_s, on_text))


def pause(seconds: float, should_stop: ShouldStop) -> None:
    """Waits, unless it should stop: then raises `Stopped`."""

    async def wait() -> None:
        await _first(asyncio.sleep(seconds), should_stop)

    if seconds > 0:
        asyncio.run(wait())


async def _call(
    make_client: Callable[[], ModelClient], request: ModelRequest, should_stop: ShouldStop, timeout_s: float, on_text: OnText
) -> ModelAnswer:
    client = make_client()
    try:
        async with asyncio.timeout(timeout_s):
            return await _first(client.ask(request, on_text), should_stop)
    except TimeoutError as error:
        raise refused(Refusal.UNAVAILABLE, is_late=True) from error
    finally:
        with contextlib.suppress(Exception):
            await asyncio.wait_for(client.close(), LOOK_S * 5)


async def _first(work: Coroutine[Any, Any, Result], should_stop: ShouldStop) -> Result:
    task = asyncio.ensure_future(work)
    try:
        while True:
            done, _ = await asyncio.wait({task}, timeout=LOOK_S)
            if done:
                return task.result()
            if (stop := should_stop()) is not None:
                raise Stopped(stop)
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await asyncio.wait({task}, timeout=LOOK_S * 5)
