"""What the entries of a span say, sorted by turn: the raw material of an extractive summary."""

from collections.abc import Iterable

import msgspec

from sessions_app.engine import asks, extractors, sentences
from sessions_app.engine.asks import AskKind
from sessions_app.engine.entries import Entry, Part
from sessions_app.engine.extractors import one_line
from sessions_app.engine.sentences import Sentence
from sessions_app.engine.steps import ShouldStop, Stopped
from sessions_app.engine.terms import Kind, PartKind, Role

# Looking a member up in its class costs a call in Python 3.11, and a digest asks this of every entry.
_USER, _ASSISTANT, _MESSAGE, _SUMMARY = Role.USER, Role.ASSISTANT, Kind.MESSAGE, Kind.SUMMARY
_CALL, _RESULT = PartKind.CALL, PartKind.RESULT

STOP_EVERY = 200
OUTCOME_BONUS = 2.0
_OUTCOME_SENTENCES = 3
_CAUSE_SENTENCES, _CAUSE_REACH = 3, 12  # what is said that soon after a failure, in entries, is about it
_HEAD_CHARS = 140
PLAN_TOOL, PLAN_MALUS = "ExitPlanMode", 1.0  # what was planned counts less than what came of it

_AGENT_TOOLS = frozenset({"Task", "Agent"})
REPORT_MALUS = 1.0  # what a sub-agent says is second-hand


class Paragraph(msgspec.Struct):
    """Sentences that belong together. `head` says to what; empty for what an earlier summary says without a head."""

    head: str
    sentences: list[Sentence] = []


class Digest(msgspec.Struct, kw_only=True):
    """`causes`: by the index of a failed call's result, what the assistant said next. `summaries`: texts of summaries
    that the agent made itself. `closing`: the last words of the assistant, as sentences."""

    paragraphs: list[Paragraph] = []
    causes: dict[int, Sentence] = {}
    summaries: list[str] = []
    closing: list[Sentence] = []


def head_of(text: str, index: int) -> str:
    """The head of a turn's paragraph."""
    return f"On “{one_line(text, _HEAD_CHARS)}” (#{index}):"


def continued_at(index: int) -> str:
    """The head of a paragraph whose turn began before the span; `index` is the span's first entry."""
    return f"Continued at #{index}:"


def take(entries: Iterable[Entry], stressed: frozenset[str], should_stop: ShouldStop) -> Digest:
    """One pass over the entries. Raises `Stopped`."""
    reading = _Reading(stressed)
    for count, entry in enumerate(entries):
        if count % STOP_EVERY == 0 and (stop := should_stop()) is not None:
            raise Stopped(stop)
        if not entry.off_branch and entry.is_sendable:
            reading.add(entry)
    return reading.finish()


class _Reading:
    def __init__(self, stressed: frozenset[str]) -> None:
        self._stressed = stressed
        self._digest = Digest()
        self._turn = Paragraph("")
        self._reports: list[Paragraph] = []
        self._said: list[Sentence] = []  # of the assistant's latest message
        self._is_closing = False  # nothing was called since
        self._calls: dict[str, tuple[int, Part]] = {}
        self._failed: list[int] = []  # calls whose failure nobody has spoken about yet

    def add(self, entry: Entry) -> None:
        self._turn.head = self._turn.head or continued_at(entry.index)
        if entry.kind is _SUMMARY:
            self._digest.summaries.append(entry.text)
        elif entry.role is _USER and entry.kind is _MESSAGE and not entry.meta:
            self._user(entry)
        elif entry.role is _ASSISTANT and entry.kind is _MESSAGE:
            self._assistant(entry)
        for part in entry.parts:
            if part.kind is _CALL:
                self._calls[part.call_id] = entry.index, part
                self._is_closing = False
                self._plan(entry.index, part)
            elif part.kind is _RESULT and part.call_id in self._calls:
                self._result(entry.index, part, *self._calls.pop(part.call_id))

    def _result(self, index: int, result: Part, called_at: int, call: Part) -> None:
        if result.is_error:
            self._failed.append(called_at)
        elif call.name in _AGENT_TOOLS:
            task = extractors.call_facts(call.name, call.text).target
            said = sentences.candidates(result.text, index, self._stressed)
            malused = [msgspec.structs.replace(sentence, score=sentence.score - REPORT_MALUS) for sentence in said]
            self._reports.append(Paragraph(f"A sub-agent reported on “{one_line(task, _HEAD_CHARS)}” (#{index}):", malused))

    def _user(self, entry: Entry) -> None:
        ask = asks.read(entry.text)
        if ask.kind is not AskKind.WORDS or not ask.text:
            return
        self._close_turn()
        self._turn = Paragraph(head_of(ask.text, entry.index))

    def _assistant(self, entry: Entry) -> None:
        said = sentences.candidates(entry.text, entry.index, self._stressed)
        self._said, self._is_closing = said, True
        if not said:
            return
        self._turn.sentences.extend(said)
        best = max(said[:_CAUSE_SENTENCES], key=lambda sentence: sentence.score)
        self._digest.causes.update({failed: best for failed in self._failed if entry.index - failed <= _CAUSE_REACH})
        self._failed = []

    def _plan(self, index: int, call: Part) -> None:
        """A plan that the assistant laid before the user is as good as a statement."""
        if call.name == PLAN_TOOL and isinstance(plan := extractors.decode_arguments(call.text).get("plan"), str):
            said = sentences.candidates(plan, index, self._stressed)
            self._turn.sentences.extend(msgspec.structs.replace(sentence, score=sentence.score - PLAN_MALUS) for sentence in said)

    def _close_turn(self) -> None:
        """What the assistant said last, with nothing called after it, is the outcome of its turn."""
        if self._is_closing:
            raised = {id(sentence) for sentence in self._said[:_OUTCOME_SENTENCES]}
            self._turn.sentences = [
                msgspec.structs.replace(sentence, score=sentence.score + OUTCOME_BONUS) if id(sentence) in raised else sentence
                for sentence in self._turn.sentences
            ]
        self._digest.paragraphs += [paragraph for paragraph in (self._turn, *self._reports) if paragraph.sentences]
        self._reports = []
        self._failed, self._is_closing = [], False

    def finish(self) -> Digest:
        self._close_turn()
        self._digest.closing = self._said
        return self._digest
