"""The notice that something is stored. It says only that, and up to where; losing one is harmless."""

import asyncio
import atexit
import os
import threading
import uuid
from typing import Any

import structlog
from channels.layers import get_channel_layer

from sessions_app.live.groups import SESSIONS, session_group

logger = structlog.get_logger(__name__)

SEND_S = 5.0
"""After so long a notice is given up: the next one is more recent."""

REMEMBERED = 4_000
"""Sessions of which is kept up to where they were told."""

LAST_S = 1.0
"""How long the end of the process waits for notices that are under way."""


def poke_session(session_id: str, seq: int) -> None:
    """Tells the followers of a session, and of the list, that its stream reached `seq`. Call after commit.

    Returns at once and never raises: what is stored is stored, and every follower looks again by itself.
    """
    _sender.add(session_id, seq)


def is_told(session_id: str, seq: int) -> bool:
    """Whether this process has sent the notice of a session's sequence, or a later one, itself."""
    return _sender.is_told(session_id, seq)


class Sender:
    """One thread and one loop for all notices of a process: whoever writes waits for no transport.

    Notices leave in the order in which they came. Of several for one session that still wait, the newest takes the
    place of the oldest: it says all that the others would.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, int] = {}  # session → the highest sequence that it reached
        self._told: dict[str, int] = {}  # the same of what left or waits, the latest told last
        self._changed = threading.Condition()
        self._is_sending = False
        self._thread: threading.Thread | None = None

    def add(self, session_id: str, seq: int) -> None:
        """Takes a notice to be sent, from any thread."""
        with self._changed:
            self._waiting[session_id] = max(seq, self._waiting.get(session_id, 0))
            self._told[session_id] = max(seq, self._told.pop(session_id, 0))
            if len(self._told) > REMEMBERED:
                del self._told[next(iter(self._told))]
            if self._thread is None:
                # A daemon: a transport that does not answer must not keep a process alive.
                self._thread = threading.Thread(target=self._run, name="poke", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def is_told(self, session_id: str, seq: int) -> bool:
        with self._changed:
            return self._told.get(session_id, 0) >= seq

    def flush(self, timeout_s: float) -> bool:
        """Waits until everything is sent. False: it took too long."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._is_sending, timeout_s)

    def _run(self) -> None:
        loop = asyncio.new_event_loop()
        while True:
            session_id, seq = self._next()
            try:
                loop.run_until_complete(asyncio.wait_for(_send(session_id, seq), SEND_S))
            except Exception as error:  # any broken transport: the notice is only a hint
                logger.warning("poke_failed", session=session_id, seq=seq, error=type(error).__name__)

    def _next(self) -> tuple[str, int]:
        with self._changed:
            self._is_sending = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._waiting)
            self._is_sending = True
            session_id = next(iter(self._waiting))
            return session_id, self._waiting.pop(session_id)


async def crosses(timeout_s: float) -> bool:
    """Whether a message that is sent over the layer is received again. Never raises."""
    layer: Any = get_channel_layer()
    sent = {"type": "crossing", "id": uuid.uuid4().hex}
    try:
        async with asyncio.timeout(timeout_s):
            channel = await layer.new_channel("health")
            await layer.send(channel, sent)
            return bool(await layer.receive(channel) == sent)
    except Exception as error:  # any broken transport
        logger.warning("layer_failed", error=type(error).__name__)
        return False


async def _send(session_id: str, seq: int) -> None:
    layer: Any = get_channel_layer()  # the stubs know of no groups
    message = {"type": "poke", "session": session_id, "seq": seq}
    await layer.group_send(session_group(session_id), message)
    await layer.group_send(SESSIONS, message)


def _start_anew() -> None:
    """After a fork: threads do not come along, and the lock may be held by one of them."""
    global _sender  # noqa: PLW0603  one for the process, and this is another process
    _sender = Sender()


_sender = Sender()
os.register_at_fork(after_in_child=_start_anew)
atexit.register(lambda: _sender.flush(LAST_S))
