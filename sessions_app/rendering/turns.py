"""The panel of turns with every text made visible: messages and answers may hold anything."""

import uuid
from dataclasses import replace

from sessions_app.rendering.plain import visible
from sessions_app.selectors.turn_panel import TurnPanel, turn_panel


def shown_turns(session_id: uuid.UUID) -> TurnPanel:
    """The panel of a session as it is now, ready for a template. One query."""
    panel = turn_panel(session_id)
    running = replace(panel.running, text=visible(panel.running.text)) if panel.running else None
    return replace(panel, running=running, queued=tuple(replace(waiting, text=visible(waiting.text)) for waiting in panel.queued))
