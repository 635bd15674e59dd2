"""Names of the channel groups."""

import uuid

SESSIONS = "sessions"


def session_group(session_id: uuid.UUID | str) -> str:
    """The group of the sockets that follow one session."""
    return f"session.{session_id}"
