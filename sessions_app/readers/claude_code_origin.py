"""What a Claude Code file says about another session whose rows it begins with, or which it goes on from."""

import re
from typing import Any

from sessions_app.engine.terms import Kind
from sessions_app.readers.base import ParsedEntry, SessionFacts, SourceIdentity
from sessions_app.readers.claude_code_parts import text_of
from sessions_app.readers.claude_code_rows import CONTINUED, first_text

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TRANSCRIPT = re.compile(rf"({_UUID.pattern})\.jsonl\b")


class OriginCollector:
    """Fed with rows and entries in order. Copies come first: the first row of the session's own ends them."""

    def __init__(self, identity: SourceIdentity) -> None:
        self._own = identity.session_id
        self._is_agent_file = bool(identity.agent_id)
        self._source = ""
        self._goes_on_from = ""
        self._first_id = ""
        self._is_fork = self._is_own = self._is_continued = self._has_spoken = False
        self._is_copy = False  # the row under way
        self._inherited: dict[str, int] = {}

    def note(self, row: dict[str, Any], session: str) -> None:
        """Takes a row of the chain. `session` is the one that it names."""
        forked = row.get("forkedFrom")
        source = text_of(forked.get("sessionId")) if isinstance(forked, dict) else ""
        if source and source != self._own:
            self._is_fork = True
        elif session and session != self._own:
            source = session
        self._is_copy = bool(source) and source != self._own and not self._is_own and not self._is_agent_file
        if self._is_copy:
            self._source = self._source or source[:150]
        elif row.get("isSidechain") is not True:
            self._is_own = True

    def note_entry(self, entry: ParsedEntry) -> None:
        """Takes the entry of that row: marks it where it is a copy."""
        if self._is_copy:
            entry.annex = {**entry.annex, "inherited_from": self._source}
            self._inherited[entry.child_key] = self._inherited.get(entry.child_key, 0) + 1
        if entry.child_key or self._has_spoken:
            return
        if _UUID.fullmatch(entry.source_id):
            self._first_id = self._first_id or entry.source_id
        if entry.kind is Kind.SUMMARY or (entry.kind is Kind.MESSAGE and first_text(entry.parts).startswith(CONTINUED)):
            self._is_continued = True
            named = (match[1] for part in entry.parts for match in _TRANSCRIPT.finditer(part.text))
            self._goes_on_from = next((session for session in named if session != self._own), "")
        self._has_spoken = entry.kind not in (Kind.COMPACTED, Kind.OTHER)

    def tell(self, facts: SessionFacts) -> None:
        """Fills what the facts say of it."""
        if self._is_agent_file:
            return
        facts.copied_from, facts.is_fork, facts.inherited = self._source or self._goes_on_from, self._is_fork, self._inherited
        facts.first_source_id, facts.is_continued = self._first_id, self._is_continued
