"""What other processes commit to the same database: told to this process's followers, and taken up by its workers.

A channel layer in memory ends at the process. SQLite counts the commits of others, and that is asked many times a second.
"""

import uuid

from django.db import DatabaseError, connection

from sessions_app import queue
from sessions_app.live import poke
from sessions_app.selectors import followed

EVERY_S = 0.025


class CommitsOfOthers:
    """Looks whether others wrote, from the event on that was the last when it was made. All looks belong to one thread."""

    def __init__(self) -> None:
        self._version: int | None = None  # of the connection of the thread that looks
        self._cursor = followed.list_cursor()
        self._answers: dict[uuid.UUID, tuple[str, int]] = {}  # turn → (session, characters of its answer so far)

    def look(self) -> int:
        """Pokes each session whose stream went on without this process, and queues what was requested. Returns how many.

        One statement when nobody wrote. Raises `DatabaseError`; the next look then starts where this one did.
        """
        before, self._version = self._version, None  # after a failure the connection may be another, whose count is its own
        version = followed.database_version()
        if version is not None and version == before:
            self._version = version
            return 0
        found = followed.events_after(self._cursor)
        others = [(session, seq) for session, seq in found.sessions if not poke.is_told(session, seq)]
        for session, seq in others:
            poke.poke_session(session, seq)
        self._tell_of_answers()
        told = {session for session, _ in others}
        for session_id, compaction_id in followed.still_requested(found.requested):
            if str(session_id) in told:
                queue.enqueue(queue.RUN_COMPACTION, str(compaction_id))
        self._version, self._cursor = version, found.cursor
        return len(others)

    def _tell_of_answers(self) -> None:
        """What comes of an answer has no events. One that comes in this process is told twice, which its followers take as once."""
        before, self._answers = self._answers, followed.answers_under_way()
        for turn_id, (session, length) in self._answers.items():
            if length and before.get(turn_id) != (session, length):
                poke.poke_session(session, 0)


def are_noticeable() -> bool:
    """Whether this database counts the commits of others. Where it does not, the channel layer crosses processes."""
    try:
        return followed.database_version() is not None
    except DatabaseError:
        return connection.vendor == "sqlite"
