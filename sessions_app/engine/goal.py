"""What a session is for, as a person set it or code finds it: it stands beside every summary, in the same words at every generation."""

import re
from collections.abc import Iterable

import msgspec

from sessions_app.engine import asks
from sessions_app.engine.asks import AskKind
from sessions_app.engine.retention import content_words
from sessions_app.engine.state import MechanicalState, UserMessage
from sessions_app.engine.texts import is_storable

MAX_CHARS = 600
"""Of what a message says; the whole of it stays in the history."""

_LEAST_WORDS = 2  # content words of a first request that says what is wanted: a greeting has fewer
_WORDS = "goal|objective|ziel|objectif|objetivo|цель|目标|目標|目的"
_STATED = re.compile(
    rf"^[ \t]{{0,3}}(?:\*\*)?(?:(?:my|our|the|session) )?(?:{_WORDS})(?:\*\*)?\s{{0,2}}(?:is)?[:：]\s{{0,3}}(?:\*\*)?\s{{0,3}}"
    r"(?P<goal>\S.*(?:\n(?!\s*\n).+)*)",
    re.IGNORECASE | re.MULTILINE,
)
_COMMAND = re.compile(r"ran /goal\b\s*(?P<goal>.*)", re.DOTALL)
_TAKEN_BACK = frozenset({"", "clear", "none", "off", "reset"})


class Goal(msgspec.Struct, frozen=True):
    """`index` is the message that says it; None: somebody set it. `is_stated`: it calls it the goal, and is not only the first request."""

    text: str
    index: int | None
    is_stated: bool

    @property
    def quoted(self) -> str:
        """Line for line as a quotation, so that nothing in it begins a line of its own."""
        return "\n".join(f"> {line}".rstrip() for line in self.text.splitlines())


def of(state: MechanicalState) -> Goal | None:
    """The goal that somebody set for the session, else the one that its messages tell."""
    return Goal(state.goal, None, is_stated=True) if state.goal else find(state.user_messages)


def cleaned(text: str) -> str:
    """A goal as it is kept: lines without blanks around them. Raises `ValueError`, in words, where it can't be one."""
    plain = "\n".join(line.strip() for line in text.strip().splitlines())
    if len(plain) > MAX_CHARS:
        raise ValueError(f"A goal may have {MAX_CHARS} characters; this one has {len(plain):,}.")
    if not is_storable(plain):
        raise ValueError("A goal may not hold a character that no database stores.")
    return plain


def find(messages: Iterable[UserMessage]) -> Goal | None:
    """The goal that a person stated last, else the first request that wants something; None where nobody asked for anything."""
    first: Goal | None = None
    stated: Goal | None = None
    for message in messages:
        ask = asks.read(message.text)
        if ask.kind is AskKind.COMMAND and (command := _COMMAND.fullmatch(ask.text)):
            said = command["goal"].strip()
            stated = None if said.lower() in _TAKEN_BACK else Goal(_clipped(said), message.index, is_stated=True)
        elif ask.kind is AskKind.WORDS and ask.text:
            if found := _STATED.search(ask.text):
                stated = Goal(_clipped(found["goal"]), message.index, is_stated=True)
            if first is None or (len(content_words(first.text)) < _LEAST_WORDS <= len(content_words(ask.text[:MAX_CHARS]))):
                first = Goal(_clipped(ask.text), message.index, is_stated=False)
    return stated or first


def _clipped(text: str) -> str:
    plain = text.strip()
    return plain if len(plain) <= MAX_CHARS else f"{plain[: MAX_CHARS - 1].rstrip()}…"
