"""What a summary still calls for although code recorded that it is done: its open and next steps against the record.

A model that sees a step named in what it reads may call for it again. A completed to-do is taken out of what is open and next;
a command that ran, or a request that was answered, may well come again, and so is only marked.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sessions_app.engine import asks, commands, sections, summary
from sessions_app.engine.asks import AskKind
from sessions_app.engine.extractors import one_line
from sessions_app.engine.retention import content_words
from sessions_app.engine.state import MechanicalState, Mention, UserMessage
from sessions_app.engine.summary import Section

LEAST_WORDS = 2
"""A to-do with fewer content words can't be told from others."""

COVERED, ABOUT = 0.8, 0.6
"""How much of a to-do's words a step must hold, and of the step's own words must be the to-do's, for both to be the same."""

MAX_NOTED = 3
MOST_RECENT = 50
"""Requests that are looked for by their words; older ones are known by their position."""

_NEXT_TOKENS = 150
_CALLED_FOR = (Section.PENDING, Section.NEXT)
_BULLET = re.compile(r"^\s*(?:[-*•+]|\d{1,3}[.)])\s+")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？])")
_COMMAND = re.compile(r"`([^`\n]{3,200})`")
_POSITION = re.compile(r"#(\d{1,9})\b")
_NOTHING_OPEN = "Nothing else is open, by the record."


class Settled(NamedTuple):
    """The summary, and what was taken out of its open steps, as to-dos with the entry that says that they are done."""

    text: str
    done: tuple[Mention, ...] = ()


def settle(text: str, state: MechanicalState) -> Settled:
    """The summary without steps that are recorded as done, and with what the record says of those that it calls for.

    What has no sections is left as it is, and so is every summary to which the record has nothing to say, byte for byte.
    """
    bodies = dict(summary.parse(text).bodies)
    if not any(section in bodies for section in _CALLED_FOR):
        return Settled(text)
    done = _done(state)
    still_open = [content_words(todo.text) for todo in state.open_todos]
    changed: dict[Section, str] = {}
    found: dict[str, Mention] = {}
    for section in _CALLED_FOR:
        kept, taken = _without(bodies.get(section, ""), done, still_open)
        if taken:
            found |= {mention.text: mention for mention in taken}
            left = sections.next_step(state, [], _NEXT_TOKENS) if section is Section.NEXT else _NOTHING_OPEN
            changed[section] = kept or left
    if found:
        told = "; ".join(f"“{mention.text}” (#{mention.index})" for mention in found.values())
        changed[Section.CURRENT] = f"{bodies.get(Section.CURRENT, '')}\n\nRecorded as done, and not to be done again: {told}.".strip()
    if notes := _notes(changed.get(Section.NEXT, bodies.get(Section.NEXT, "")), state):
        changed[Section.NEXT] = f"{changed.get(Section.NEXT, bodies.get(Section.NEXT, ''))}\n\nBy the record, {'; '.join(notes)}."
    return Settled(summary.with_bodies(text, changed), tuple(found.values())) if changed else Settled(text)


def _done(state: MechanicalState) -> list[tuple[Mention, frozenset[str]]]:
    """The to-dos that are done, with their content words, newest first. One that is open again is not among them."""
    still_open = {todo.text for todo in state.open_todos}
    found = [(mention, content_words(mention.text)) for mention in reversed(state.done) if mention.text not in still_open]
    return [(mention, words) for mention, words in found if len(words) >= LEAST_WORDS]


def _without(body: str, done: Sequence[tuple[Mention, frozenset[str]]], still_open: Sequence[frozenset[str]]) -> tuple[str, list[Mention]]:
    """A section without the steps that are done, and these."""
    lines: list[str] = []
    taken: list[Mention] = []
    for line in body.splitlines() if done else ():
        bullet = _BULLET.match(line)
        steps = [line] if bullet else _SENTENCE.split(line)
        kept = []
        for step in steps:
            match = _match(step, done, still_open)
            if match is None:
                kept.append(step)
            else:
                taken.append(match)
        if kept or not line.strip():
            lines.append(" ".join(kept))
    return ("\n".join(lines).strip(), taken) if taken else (body, [])


def _match(step: str, done: Sequence[tuple[Mention, frozenset[str]]], still_open: Sequence[frozenset[str]]) -> Mention | None:
    """The done to-do that a step is, unless it is as much an open one."""
    words = content_words(_BULLET.sub("", step))
    best: Mention | None = None
    best_share = 0.0
    for mention, wanted in done:
        shared = len(wanted & words)
        if shared >= COVERED * len(wanted) and shared >= ABOUT * len(words) and shared / len(wanted | words) > best_share:
            best, best_share = mention, shared / len(wanted | words)
    rival = max((len(wanted & words) / len(wanted | words) for wanted in still_open if wanted), default=0.0)
    return best if best_share > rival else None


def _notes(body: str, state: MechanicalState) -> list[str]:
    """What the record says of the commands and requests that a section names."""
    notes = [
        f"`{one_line(said, 100)}` last ran at #{ran.index} ({ran.status})"
        for said in dict.fromkeys(_COMMAND.findall(body))
        if (ran := next((command for command in reversed(state.commands) if _same(said, command.command)), None)) is not None
    ]
    named = {int(number) for number in _POSITION.findall(body)}
    notes += [f"the request #{message.index} was answered at #{message.answered_index}" for message in _answered(state, named, body)]
    return [note for note in notes if note not in body][:MAX_NOTED]


def _same(said: str, ran: str) -> bool:
    return commands.essence(said) == commands.essence(ran)


def _answered(state: MechanicalState, named: set[int], body: str) -> Iterable[UserMessage]:
    """The answered requests that a section names by their position, or says once more."""
    said = content_words(body)
    recent_from = len(state.user_messages) - MOST_RECENT
    for place, message in enumerate(state.user_messages):
        if message.answered_index is None or (place < recent_from and message.index not in named):
            continue
        if message.index in named:
            yield message
            continue
        ask = asks.read(message.text)
        words = content_words(ask.text[:600]) if ask.kind is AskKind.WORDS else frozenset()
        if len(words) > LEAST_WORDS and len(words & said) >= COVERED * len(words):
            yield message
