"""What followers are sent: whole parts of a page, each replaced by its id, and the cursor up to which they hold.

Nothing in them depends on who looks: every socket gets the same bytes.
"""

import uuid
from dataclasses import dataclass
from typing import Generic, TypeVar

from django.template.loader import render_to_string

from sessions_app.engine.unseen import shown
from sessions_app.events.types import EventType
from sessions_app.models import SessionKind
from sessions_app.rendering.turns import shown_turns
from sessions_app.selectors import compaction_panel, followed, session_list, session_page

_HISTORY = "history"
_LEDGER = "ledger"
_EVENTS = "events"
_MEMORY = "memory"
_CHANGED_BY: dict[str, tuple[str, ...]] = {
    EventType.COMPACTION_PERSISTED: (_HISTORY, _LEDGER),
    EventType.COMPACTION_REVERTED: (_HISTORY, _LEDGER),
    EventType.COMPACTION_TRIGGERED: (_LEDGER,),
    EventType.ENTRY_PINNED: (_HISTORY,),
    EventType.ENTRY_UNPINNED: (_HISTORY,),
    EventType.ENTRY_EXCLUDED: (_HISTORY,),
    EventType.ENTRY_INCLUDED: (_HISTORY,),
    EventType.OVERRIDES_RESTORED: (_HISTORY,),
    EventType.COMPACTION_REQUESTED: (_LEDGER,),
    EventType.COMPACTION_REPORTED: (_HISTORY, _LEDGER),
    EventType.COMPACTION_DECIDED: (_LEDGER,),
    EventType.COMPACTION_DRAFTED: (_LEDGER,),
    EventType.DRAFT_EDITED: (_LEDGER,),
    EventType.DRAFT_COMMITTED: (_LEDGER,),
    EventType.DRAFT_DISCARDED: (_LEDGER,),
    EventType.MEMORY_FLUSHED: (_MEMORY,),
    EventType.MEMORY_FLUSH_FAILED: (_MEMORY,),
    EventType.ENTRIES_APPENDED: (_HISTORY,),
    EventType.SESSION_IMPORTED: (_HISTORY, _LEDGER),
}
"""Which parts of a page the follower fetches anew, by type of event."""


M = TypeVar("M")


@dataclass(frozen=True)
class Frame(Generic[M]):
    """Messages for a socket, in order, and the cursor after which the next frame begins."""

    messages: tuple[M, ...]
    cursor: int


def session_frame(session_id: uuid.UUID, after: int) -> Frame[str]:
    """The state of a session, if anything happened after `after`; else what has come of an answer under way, which has no events.

    Queries: two, and those of its parts.
    """
    changes = followed.changes_after(session_id, after)
    if not changes.types:
        return Frame(_answer_under_way(session_id), changes.seq)
    changed = {part for event_type in changes.types for part in _CHANGED_BY.get(event_type, ())} | {_EVENTS}
    header = session_page.header(session_id)
    context = {
        "panel": compaction_panel.panel(session_id),
        "header": header,
        "turns": shown_turns(session_id) if header.kind == SessionKind.INLINE else None,
        "seq": changes.seq,
        "changed": " ".join(sorted(changed)),
    }
    return Frame((shown(render_to_string("live/session.html", context)),), changes.seq)


def _answer_under_way(session_id: uuid.UUID) -> tuple[str, ...]:
    turns = shown_turns(session_id)
    return (shown(render_to_string("components/turns.html", {"turns": turns, "is_oob": True})),) if turns.running else ()


def list_frame(after: int) -> Frame[str]:
    """The rows of the sessions that changed after `after`, one message each: a page takes those that it shows. Two queries."""
    changed, cursor = followed.sessions_changed_after(after)
    rows = session_list.rows(changed)
    return Frame(tuple(shown(render_to_string("components/session_row.html", {"row": row})) for row in rows), cursor)
