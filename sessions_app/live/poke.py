"""The notice that something is stored. It says only that, and up to where; losing one is harmless."""

import structlog
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer

from sessions_app.live.groups import SESSIONS, session_group

logger = structlog.get_logger(__name__)


def poke_session(session_id: str, seq: int) -> None:
    """Tells the followers of a session, and of the list, that its stream reached `seq`. Call after commit.

    Never raises: what is stored is stored, and every follower looks again by itself.
    """
    layer = get_channel_layer()
    try:
        async_to_sync(_send)(layer, session_id, seq)
    except Exception as error:  # any broken transport: the notice is only a hint
        logger.warning("poke_failed", session=session_id, seq=seq, error=type(error).__name__)


async def _send(layer: object, session_id: str, seq: int) -> None:
    message = {"type": "poke", "session": session_id, "seq": seq}
    await layer.group_send(session_group(session_id), message)  # type: ignore[attr-defined]
    await layer.group_send(SESSIONS, message)  # type: ignore[attr-defined]
