"""What the rows of a Codex rollout say about the session as a whole."""

from typing import Any

from sessions_app.engine.terms import Kind, Role
from sessions_app.readers.base import ParsedEntry, SessionFacts
from sessions_app.readers.claude_code_facts import one_line
from sessions_app.readers.claude_code_parts import text_of
from sessions_app.readers.codex_rows import plain_text

AGENT = "codex"
REQUEST_HEADING = "## My request for Codex:"
_TURN_BEGINS = frozenset({"task_started", "turn_started"})
_TURN_ENDS = frozenset({"task_complete", "turn_complete", "turn_aborted"})


class FactCollector:
    """Fed with rows and entries; answers with the facts when the file has been read."""

    def __init__(self) -> None:
        self.model = ""
        self._facts = SessionFacts(agent=AGENT)
        self._name = ""
        self._first_prompt = ""
        self._open_turn = False
        self._has_turns = False  # the file says where turns begin and end

    def note_meta(self, meta: dict[str, Any]) -> None:
        """Takes folder, branch and version from the session's own `session_meta`."""
        git = meta.get("git")
        self._facts.cwd = text_of(meta.get("cwd"))[:500]
        self._facts.branch = text_of(git.get("branch"))[:200] if isinstance(git, dict) else ""
        self._facts.version = text_of(meta.get("cli_version"))[:40]

    def note_context(self, context: dict[str, Any]) -> None:
        """Takes the model, and the folder where `session_meta` named none, from a `turn_context`."""
        self.model = text_of(context.get("model"))[:100] or self.model
        self._facts.cwd = self._facts.cwd or text_of(context.get("cwd"))[:500]

    def note_event(self, event: dict[str, Any]) -> None:
        """Takes name and turns from an event."""
        kind = text_of(event.get("type"))
        if kind == "thread_name_updated":
            self._name = text_of(event.get("thread_name")).strip()
        elif kind in _TURN_BEGINS | _TURN_ENDS:
            self._has_turns = self._has_turns or kind in _TURN_BEGINS
            self._open_turn = kind in _TURN_BEGINS

    def note_entry(self, entry: ParsedEntry) -> None:
        """Takes prompt and times from an entry, and the open turn where no events tell of turns."""
        if at := entry.own_time:
            self._facts.started = self._facts.started or at
            self._facts.last_activity = max(self._facts.last_activity, at)
        is_prompt = entry.role is Role.USER and entry.kind is Kind.MESSAGE
        if is_prompt and not self._first_prompt:
            text = plain_text(entry.parts)
            self._first_prompt = text.rpartition(REQUEST_HEADING)[2].strip()
        if not self._has_turns and entry.role is not Role.NOTICE and not entry.meta:
            self._open_turn = is_prompt or entry.kind in (Kind.CALL, Kind.RESULT)

    def facts(self, window: int | None) -> SessionFacts:
        """The facts so far. `title` is one line, empty when nothing gives one. `window`: as the file last told it."""
        facts = self._facts
        facts.title, facts.title_source = (one_line(self._name), "custom-title") if self._name else (one_line(self._first_prompt), "")
        if facts.title and not facts.title_source:
            facts.title_source = "first-prompt"
        facts.model, facts.window, facts.open_turn = self.model, window, self._open_turn
        return facts


def begins_turn(kind: str) -> bool:
    """Whether an event of this type begins a turn."""
    return kind in _TURN_BEGINS


def ends_turn(kind: str) -> bool:
    """Whether an event of this type ends a turn."""
    return kind in _TURN_ENDS
