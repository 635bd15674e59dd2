"""What the rows of a Claude Code file say about the session as a whole."""

from typing import Any

from sessions_app.engine.terms import Kind, Role
from sessions_app.readers.base import ParsedEntry, SessionFacts
from sessions_app.readers.claude_code_parts import text_of
from sessions_app.readers.claude_code_rows import first_text

AGENT = "claude-code"
MAX_TITLE = 120
_NO_PROMPT = (
    "<local-command-",
    "<session-start-hook>",
    "<tick>",
    "<goal>",
    "[Request interrupted",
    "<ide_opened_file>",
    "<command-",
)
_TITLE_FIELDS = {"custom-title": "customTitle", "ai-title": "aiTitle", "last-prompt": "lastPrompt", "summary": "summary"}
_TITLE_ORDER = ("custom-title", "ai-title", "last-prompt", "summary", "first-prompt")


class FactCollector:
    """Fed with every row; answers with the facts when the file has been read."""

    def __init__(self) -> None:
        self._titles: dict[str, str] = {}
        self._facts = SessionFacts(agent=AGENT)
        self._open_turn = False

    def note(self, row: dict[str, Any], kind: str) -> None:
        """Takes titles, folder, branch and version from a row of any kind."""
        if field := _TITLE_FIELDS.get(kind):
            title = text_of(row.get(field)).strip()
            if title or kind == "custom-title":
                self._titles[kind] = title
        if row.get("isSidechain") is True and self._facts.cwd:
            return
        self._facts.cwd = self._facts.cwd or text_of(row.get("cwd"))[:500]
        self._facts.branch = text_of(row.get("gitBranch"))[:200] or self._facts.branch
        self._facts.version = text_of(row.get("version"))[:40] or self._facts.version

    def note_entry(self, entry: ParsedEntry) -> None:
        """Takes prompt, model, times and the open turn from an entry of the main lane."""
        if at := entry.own_time:
            self._facts.started = self._facts.started or at
            self._facts.last_activity = max(self._facts.last_activity, at)
        if entry.role is Role.ASSISTANT:
            self._facts.model = entry.model or self._facts.model
            self._open_turn = entry.kind is Kind.CALL
        elif entry.kind in {Kind.MESSAGE, Kind.RESULT}:
            self._open_turn = self._open_turn if entry.meta else True
            if "first-prompt" not in self._titles and entry.kind is Kind.MESSAGE and not entry.meta:
                prompt = first_text(entry.parts).strip()
                if prompt and not prompt.startswith(_NO_PROMPT):
                    self._titles["first-prompt"] = prompt
        elif entry.kind is Kind.COMPACTED:
            self._open_turn = False

    def facts(self) -> SessionFacts:
        """The facts so far. `title` is one line, at most `MAX_TITLE` characters, empty when nothing gives one."""
        for source in _TITLE_ORDER:
            if title := self._titles.get(source):
                self._facts.title, self._facts.title_source = one_line(title), source
                break
        self._facts.open_turn = self._open_turn
        return self._facts


def one_line(text: str) -> str:
    """The text on one line, cut to `MAX_TITLE` characters."""
    line = " ".join(text[: MAX_TITLE * 4].split())
    return line if len(line) <= MAX_TITLE else line[: MAX_TITLE - 1] + "…"
