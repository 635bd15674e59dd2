"""Calls and their results, and the sub-agents that calls started."""

import re

from sessions_app.engine.terms import PartKind
from sessions_app.readers.base import ParsedEntry, Problem, ProblemKind
from sessions_app.readers.report import Place

_AGENT_ID = re.compile(r'"(?:agent_id|new_thread_id|thread_id)":\s*"([^"\\]{1,100})"')


class Calls:
    """Fed with the entries in order."""

    def __init__(self) -> None:
        self.agents: dict[str, str] = {}  # sub-agent → the call that started it
        self._open: dict[str, tuple[int, int]] = {}

    def note(self, entry: ParsedEntry, place: Place) -> None:
        """Takes an entry's calls and results; notes a result that answers nothing."""
        for part in entry.parts:
            if part.kind is PartKind.CALL:
                self._open[part.call_id] = (place.line, place.offset)
            elif part.kind is PartKind.RESULT:
                if self._open.pop(part.call_id, None) is None:
                    place.note(ProblemKind.ORPHAN_RESULT)
                if part.name == "spawn_agent" and (match := _AGENT_ID.search(part.text)):
                    self.note_agent(match[1], part.call_id)

    def note_agent(self, agent_id: str, call_id: str) -> None:
        if agent_id and call_id:
            self.agents.setdefault(agent_id[:100], call_id[:200])

    def unanswered(self) -> list[Problem]:
        """A problem for each call that has no result."""
        return [Problem(kind=ProblemKind.UNANSWERED_CALL, line=line, offset=offset) for line, offset in self._open.values()]
