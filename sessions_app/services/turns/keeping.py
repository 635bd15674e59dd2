"""Beside a running turn: its lease, its stop, and what has come of its answer, stored four times a second."""

import threading
from collections.abc import Callable

from sessions_app.engine.steps import Stop
from sessions_app.engine.texts import storable
from sessions_app.live.poke import poke_session
from sessions_app.models import Turn
from sessions_app.services.compactions.keeper import KeeperThread
from sessions_app.services.turns import claims
from sessions_app.services.turns.claims import TurnClaim


class Incoming:
    """The text of an answer as it comes. Pieces come from the provider's loop, and are stored by the keeper's thread."""

    def __init__(self, held: TurnClaim) -> None:
        self._held = held
        self._lock = threading.Lock()
        self._pieces: list[str] = []
        self._stored = 0

    def add(self, piece: str) -> None:
        with self._lock:
            self._pieces.append(piece)

    def begin_anew(self) -> None:
        """Forgets what came of a request that is made again."""
        with self._lock:
            self._pieces = []
            self._stored = -1

    def store(self) -> None:
        """Stores what came since the last time, and tells the followers. Raises `LeaseLost`."""
        with self._lock:
            count = len(self._pieces)
            if count == self._stored:
                return
            pieces, text = self._pieces, "".join(self._pieces)
        claims.write_answer(self._held, storable(text))
        with self._lock:
            if self._pieces is pieces:  # else it began anew meanwhile, and what was stored is to be written over
                self._stored = count
        # The row itself says how far it is: an event for each piece would drown the log in them.
        poke_session(str(self._held.session_id), 0)


class TurnKeeper(KeeperThread):
    """Holds the claim of a turn while it runs."""

    def __init__(self, held: TurnClaim, incoming: Incoming, must_end: Callable[[], bool]) -> None:
        super().__init__(f"turn-{held.turn_id}", incoming.store, must_end)
        self.held = held

    def give_up(self) -> None:
        claims.give_up(self.held)

    def _renew(self) -> bool:
        return claims.renew(self.held)

    def _look(self) -> Stop | None:
        row = Turn.objects.filter(pk=self.held.turn_id, lease_token=self.held.token).values_list("cancel_requested", flat=True).first()
        if row is None:
            return Stop.LEASE_LOST
        return Stop.CANCELLED if row else None
