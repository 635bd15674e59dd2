"""A server of its own that is told to stop while streams are open."""

import asyncio
import re
import signal
import subprocess
import uuid
from contextlib import AsyncExitStack

import pytest

from tests.project.test_up import Product, command
from tests.streaming import stream, web_socket

STREAMS = 20


@pytest.fixture
def product(tmp_path):
    running = Product(tmp_path / "data")
    try:
        running.wait_for_greeting()
        running.wait_until_well()
        yield running
    finally:
        running.process.kill()
        with running.process:  # closes its pipe
            running.process.wait()


def create_token(product: Product) -> str:
    arguments, environment = command("create_token", "listener", "--user", "ana", "--scope", "read", DATA_DIR=product.data_dir)
    said = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=True).stdout
    found = re.search(r"plm_\S+", said)
    assert found is not None, said
    return found[0]


async def test_a_server_that_stops_ends_its_streams_without_done(product):
    stored = product.query("SELECT id FROM sessions_app_session WHERE relation = '' ORDER BY created_at LIMIT 1")
    session_id = uuid.UUID(str(stored[0][0]))
    secret = await asyncio.to_thread(create_token, product)
    url, bearer = f"http://127.0.0.1:{product.port}", {"Authorization": f"Bearer {secret}"}
    async with AsyncExitStack() as opened:
        listening = [await opened.enter_async_context(stream(url, session_id, **bearer)) for _ in range(STREAMS)]
        for listener in listening:
            assert (await listener.expect()).name == "session.heartbeat"
        socket = await opened.enter_async_context(web_socket(url, session_id, **bearer))
        assert (await socket.next())["type"] == "session.heartbeat"
        said, _ = await asyncio.to_thread(product.stop, signal.SIGTERM)
        assert "Palimpsest has stopped." in said
        assert product.process.returncode == 0
        assert all([await listener.rest() == [] for listener in listening])
