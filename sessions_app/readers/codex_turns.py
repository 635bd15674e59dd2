"""Where prompts stand, what was taken back, and which turns another session had before."""

from typing import Any

from sessions_app.engine.terms import Kind, Role
from sessions_app.readers.base import ParsedEntry
from sessions_app.readers.codex_identity import Origin, turns_of


class Turns:
    """Fed with the entries in order. All numbers are ordinals."""

    def __init__(self) -> None:
        self.off_branch: list[int] = []
        self._prompts: list[int] = []
        self._sent: list[int] = []  # on the branch
        self._has_spoken = False  # something was said in this session
        self._has_prompt = False  # a person's text came since the assistant spoke last
        self._items: list[str] = []  # prompts of items that no event has repeated yet
        self._events: list[str] = []  # the other way round

    def is_told(self, text: str) -> bool:
        """Whether an item held the prompt of an event before; else the event is the prompt's only row so far.

        An item may say more than its event: surroundings of an editor, marks around images.
        """
        if self._items:
            self._items.pop(self._items.index(text) if text in self._items else 0)
            return True
        self._events.append(text)
        return False

    def is_repeated(self, text: str) -> bool:
        """Whether an event held the prompt of an item before."""
        if text in self._events:
            self._events.remove(text)
            return True
        self._items = [*self._items[-20:], text]
        return False

    def place(self, entry: ParsedEntry) -> None:
        """Fits the agent's own messages in where they stand.

        Instructions at the beginning are the system's. Later ones are on the user's side; behind a prompt they stay
        there, while a reminder would be put before it.
        """
        if entry.role is Role.SYSTEM and (self._has_spoken or self._has_prompt):
            entry.role = Role.USER
            entry.annex = {**entry.annex, "role": "developer"}
        if entry.role is Role.USER and entry.kind is Kind.REMINDER and self._has_prompt:
            entry.kind = Kind.OTHER

    def note_said(self) -> None:
        """A plan may end in a prompt: what the agent adds behind it stays there."""
        self._has_prompt = True

    def note(self, entry: ParsedEntry, ordinal: int) -> None:
        """Takes an entry that was given its place."""
        if entry.role is Role.NOTICE:
            return
        self._sent.append(ordinal)
        if entry.role is Role.USER and entry.kind is Kind.MESSAGE:
            self._prompts.append(ordinal)
            self._has_prompt = True
        elif entry.role in (Role.ASSISTANT, Role.TOOL):
            self._has_spoken, self._has_prompt = True, False

    def roll_back(self, turns: Any) -> int | None:
        """Takes the last turns off the branch; returns the first entry that left it, or `None` when none did."""
        if not isinstance(turns, int) or turns < 1 or not self._prompts:
            return None
        start = self._prompts[-turns] if turns <= len(self._prompts) else self._prompts[0]
        self._prompts = [prompt for prompt in self._prompts if prompt < start]
        self.off_branch += [ordinal for ordinal in self._sent if ordinal >= start]
        self._sent = [ordinal for ordinal in self._sent if ordinal < start]
        return start


class Inheritance:
    """Tells rows that a fork or a sub-agent copied from another session apart from its own.

    Copies have times of their own, so only the ids of turns tell: those that the other session has, too, are
    inherited, and the first one that it has not is the session's own. Without that session's file nothing can be told.
    """

    def __init__(self, origin: Origin, path: str) -> None:
        self.source = origin.copied_from
        self.is_inherited = False
        self.count = 0  # of entries that are copies
        self._path = path
        self._theirs: frozenset[str] | None = None
        self._is_copy = False
        self._is_own = False

    def note_copy(self, thread_id: str) -> None:
        """A `session_meta` row of another session: its rows follow."""
        if self._is_copy or not thread_id:
            return
        self._is_copy = True
        self.source = self.source or thread_id
        self._theirs = turns_of(self.source, self._path) or turns_of(thread_id, self._path)
        self.is_inherited = bool(self._theirs) and not self._is_own

    def note_turn(self, turn: str) -> None:
        """Takes the turn that a row names."""
        if self.is_inherited and turn and self._theirs is not None and turn not in self._theirs:
            self.is_inherited, self._is_own = False, True

    def notes(self) -> list[str]:
        """What the report says about it."""
        if not self._is_copy:
            return []
        if not self._theirs:
            return [
                f"The file begins with rows of the session {self.source}, whose own file was not found beside it. "
                "Which rows were copied can't be told, so all of them are kept and counted as this session's.",
            ]
        return [f"{self.count} entries were copied from the session {self.source}. They are marked, and what they cost is counted there."]
