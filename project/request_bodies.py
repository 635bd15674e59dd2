"""The server's side of a request that is too large: its body is thrown away as it comes, so that it fills no disk."""

import io
from collections.abc import Callable
from typing import Any

from daphne import http_protocol

Limit = Callable[[str], int]


class _Nowhere(io.BytesIO):
    """Takes everything and keeps nothing."""

    def write(self, data: Any) -> int:
        return len(data)


def bound_bodies(limit_of: Limit) -> None:
    """From now on, a body that is longer than `limit_of(path)` is empty, and its request's length says how long it was.

    Whoever serves the pages answers by that length. Without this, the server would keep any body in a temporary file first.
    """

    class BoundedRequest(http_protocol.WebRequest):  # type: ignore[misc]  # untyped
        def gotLength(self, length: int | None) -> None:  # noqa: N802  the server's name
            self._limit = limit_of(_path_of(self.channel))
            self._received = 0
            super().gotLength(length)
            self._is_kept = length is None or length <= self._limit
            if not self._is_kept:
                self.content = _Nowhere()

        def handleContentChunk(self, data: bytes) -> None:  # noqa: N802  the server's name
            self._received += len(data)
            if self._is_kept and self._received > self._limit:
                self._is_kept = False
                self.content.close()
                self.content = _Nowhere()
                # It came in pieces, without a word of its length.
                self.requestHeaders.setRawHeaders(b"content-length", [b"%d" % self._received])
            super().handleContentChunk(data)

    http_protocol.WebRequest = BoundedRequest


def _path_of(channel: Any) -> str:
    """The address of the request whose head was just read."""
    told: bytes = getattr(channel, "_path", b"") or b""
    return told.split(b"?")[0].decode("latin-1")
