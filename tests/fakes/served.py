"""What every fake is that is reached over a real connection: a server on a free local port, alive while its `with` block runs."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Generic, Self, TypeVar

Owner = TypeVar("Owner", bound="Served")


class Listening(ThreadingHTTPServer, Generic[Owner]):
    """The socket of a fake; a handler finds it at `self.server.owner`."""

    daemon_threads = True
    block_on_close = False
    owner: Owner

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are part of the play."""


class Served:
    """Listens while its `with` block runs. Closing it ends what hangs: handlers look at `closing`."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self.closing = threading.Event()
        self.lock = threading.Lock()
        self._server: Listening[Any] = Listening(("127.0.0.1", 0), handler)
        self._server.owner = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
