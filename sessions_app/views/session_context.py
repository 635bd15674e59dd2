"""What every tab of a session needs: the row, through its gate, and the head of the page."""

import uuid

from sessions_app import permissions
from sessions_app.models import Session
from sessions_app.permissions import Action
from sessions_app.selectors import compaction_panel, followed, session_page
from sessions_app.services.access import record_view
from sessions_app.views.pages import PageRequest, wants_fragment

Context = dict[str, object]


def open_session(request: PageRequest, session_id: uuid.UUID, tab: str) -> tuple[Session, Context]:
    """The session for a reader, noted as viewed, with the context of its shell. Raises what the gate raises."""
    actor = permissions.actor_of(request)
    # The cursor is read before everything else: what follows can only be newer, so the socket repeats, and never misses.
    seq = followed.session_cursor(session_id)
    session = permissions.access_session(actor, session_id, Action.READ)
    record_view(actor=actor, session=session)
    return session, {
        "header": session_page.header_of(session, seq),
        "kin": session_page.kin_of(session),
        "panel": compaction_panel.panel(session.pk) if session.last_attempt else None,
        "tab": tab,
        "session_id": session.pk,
        "is_fragment": wants_fragment(request),
        "may_steer": permissions.allows(actor, Action.COMPACT),
    }
