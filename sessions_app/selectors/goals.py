"""The goal of a session: set by a person, or found in what its user said."""

from dataclasses import dataclass

from sessions_app.engine import goal as goals
from sessions_app.engine.entries import Entry
from sessions_app.engine.state import UserMessage
from sessions_app.engine.terms import Kind, PartKind, Role
from sessions_app.models import Entry as EntryRow
from sessions_app.models import Session
from sessions_app.selectors.entry_rows import readable_parts

FIRST, LATEST = 20, 200
"""Messages that are looked at from the start and from the end: a compaction reads all, a page need not."""


@dataclass(frozen=True)
class SessionGoal:
    """`text` is empty where there is none. `index`: the message that says it, where nobody set it."""

    text: str = ""
    is_set: bool = False
    index: int | None = None


def goal_of(session: Session) -> SessionGoal:
    """The goal that stands beside the next summary. Two queries where nobody set it, bounded whatever the length of the session."""
    if session.goal:
        return SessionGoal(session.goal, is_set=True)
    rows = EntryRow.objects.filter(session_id=session.pk, role=Role.USER, kind=Kind.MESSAGE, meta=False, off_branch=False)
    first = list(rows.order_by("index").values_list("index", "parts")[:FIRST])
    latest = list(rows.order_by("-index").values_list("index", "parts")[:LATEST])[::-1]
    held = dict(first) | dict(latest)
    found = goals.find(_message(index, held[index]) for index in sorted(held))
    return SessionGoal(found.text, index=found.index) if found else SessionGoal()


def _message(index: int, stored: str) -> UserMessage:
    parts = tuple(part for part in readable_parts(stored) if part.kind is PartKind.TEXT)
    text = Entry(index=index, role=Role.USER, kind=Kind.MESSAGE, parts=parts).text
    return UserMessage(index, text, len(text))
