"""A real server for tests: the product, served from a thread of this process."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from tests.services.compaction_scenes import PATIENCE_S, wait_until


@pytest.fixture(scope="session")
def live_url(django_db_setup) -> Iterator[str]:
    """The address of the product, served from a thread of this process. One per process: its reactor is a singleton."""
    from daphne.endpoints import build_endpoint_description_strings
    from daphne.server import Server
    from twisted.internet import reactor

    from project.application import application
    from project.static_files import StaticFiles

    server = Server(
        application=StaticFiles(application),
        endpoints=build_endpoint_description_strings(host="127.0.0.1", port=0),
        signal_handlers=False,
        verbosity=0,
    )

    def serve() -> None:
        asyncio.set_event_loop(reactor._asyncioEventloop)
        server.run()

    thread = threading.Thread(target=serve, name="server", daemon=True)
    thread.start()
    wait_until(lambda: bool(server.listening_addresses))
    host, port = server.listening_addresses[0]
    yield f"http://{host}:{port}"
    reactor.callFromThread(reactor.stop)
    thread.join(PATIENCE_S)
