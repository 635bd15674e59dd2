"""Facts that are worth keeping beyond a session, taken by code from what its person said, chose and ran again and again."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from sessions_app.engine import asks, commands, flush_words, mentions, sentences
from sessions_app.engine.asks import AskKind
from sessions_app.engine.redaction import redact
from sessions_app.engine.retention import content_words
from sessions_app.engine.state import MechanicalState, UserMessage
from sessions_app.engine.terms import MemoryKind

MOST_CANDIDATES = 200
"""Of one flush: the newest. What lies further back stays in the history alone."""

MOST_OBLIGATIONS = 50
MAX_FACT_CHARS = 400
MOST_COMMANDS = 10
LEAST_RUNS = 2
"""So often a command must have worked to be worth keeping."""

TOLD_SHARE = 0.6
"""Of a line's content words, in one candidate, from which on that candidate tells it."""

_MOST_OF_A_MESSAGE = 20  # a message with more rules than this is a document that was pasted
_LONGEST_COMMAND = 120


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One fact on one line, without credentials. `indexes`: the entries that state it, ascending; never none."""

    kind: MemoryKind
    text: str
    indexes: tuple[int, ...]
    by_model: bool = False

    @property
    def digest(self) -> str:
        """sha256 (hex) of its words alone: two that differ only in marks, case and spaces say the same."""
        return digest_of(self.text)


class Candidates(msgspec.Struct, frozen=True, kw_only=True):
    """Each once, in order. `obligations` are digests of those that must be kept; `beyond`, how many older ones there were."""

    found: tuple[Candidate, ...] = ()
    obligations: tuple[str, ...] = ()
    beyond: int = 0
    redactions: int = 0


def digest_of(text: str) -> str:
    """See `Candidate.digest`."""
    words = re.sub(r"[\W_]+", "", text.casefold()) or " ".join(text.split())
    return hashlib.sha256(words.encode(errors="surrogatepass")).hexdigest()


def from_state(state: MechanicalState, first: int, last: int) -> Candidates:
    """What the entries from `first` to `last`, inclusive, state that is worth keeping. Linear in what the state holds of them."""
    told = [*_said(state.user_messages, first, last), *_chosen(state, first, last), *_ran(state, first, last)]
    redactions, once = 0, dict[str, Candidate]()
    for kind, text, indexes in told:
        plain, count = redact(text)
        redactions += count
        candidate = Candidate(kind=kind, text=one_line(plain), indexes=indexes)
        if candidate.text:
            once.setdefault(candidate.digest, candidate)
    found = sorted(once.values(), key=lambda one: one.indexes)
    kept = found[-MOST_CANDIDATES:]
    binding = [candidate.digest for candidate in kept if candidate.kind.is_binding]
    return Candidates(
        found=tuple(kept), obligations=tuple(binding[-MOST_OBLIGATIONS:]), beyond=len(found) - len(kept), redactions=redactions
    )


def joined(by_model: Iterable[Candidate], mechanical: Candidates) -> tuple[tuple[Candidate, ...], int]:
    """What a model found, and what code found and the model does not tell; and how many of those had to be kept."""
    found = {candidate.digest: candidate for candidate in by_model}
    tellings = [content_words(candidate.text) for candidate in found.values()]
    added = 0
    for candidate in mechanical.found:
        if candidate.digest not in found and not _is_told(candidate.text, tellings):
            found[candidate.digest] = candidate
            added += candidate.digest in mechanical.obligations
    return tuple(sorted(found.values(), key=lambda one: one.indexes)), added


def _is_told(text: str, tellings: Iterable[frozenset[str]]) -> bool:
    words = content_words(text)
    return bool(words) and any(len(words & told) >= TOLD_SHARE * len(words) for told in tellings)


def one_line(text: str) -> str:
    """A fact as it is kept: one line, no control characters, at most `MAX_FACT_CHARS`."""
    plain = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return plain if len(plain) <= MAX_FACT_CHARS else plain[: MAX_FACT_CHARS - 1].rstrip() + "…"


Told = tuple[MemoryKind, str, tuple[int, ...]]


def _said(messages: Iterable[UserMessage], first: int, last: int) -> Iterator[Told]:
    for message in messages:
        if not first <= message.index <= last:
            continue
        if not flush_words.may_hold(message.text):
            continue
        ask = asks.read(message.text)
        if ask.kind is not AskKind.WORDS:
            continue
        found = list(_rules(list(sentences.split(ask.text))))
        if len(found) <= _MOST_OF_A_MESSAGE:
            yield from ((kind, sentence, (message.index,)) for kind, sentence in found)


def _rules(said: list[str]) -> Iterator[tuple[MemoryKind, str]]:
    """Sentences worth keeping, each with the one before it where it points back to that."""
    for place, sentence in enumerate(said):
        kind = _kind_of(sentence)
        if kind is None:
            continue
        both = f"{said[place - 1]} {sentence}" if place and flush_words.points_back(sentence) else sentence
        yield kind, both if len(both) <= MAX_FACT_CHARS else sentence


def _kind_of(sentence: str) -> MemoryKind | None:
    """What a sentence of a person is worth keeping as; None for most."""
    if flush_words.length_of(sentence) < sentences.SHORTEST or len(sentence) > MAX_FACT_CHARS:
        return None
    if not flush_words.asks(sentence):
        for kind, shapes in _SHAPES:
            if any(shape.search(sentence) for shape in shapes):
                return kind
    if next(mentions.urls(sentence), ""):
        return MemoryKind.REFERENCE
    return MemoryKind.IDENTIFIER if flush_words.TICKET.search(sentence) else None


_SHAPES = (
    (MemoryKind.PREFERENCE, flush_words.PREFERENCE),
    (MemoryKind.DECISION, flush_words.DECISION),
    (MemoryKind.CONSTRAINT, flush_words.STANDING),
)


def _chosen(state: MechanicalState, first: int, last: int) -> Iterator[Told]:
    """What the person answered where the agent asked them to choose."""
    for answer in state.answers:
        if first <= answer.index <= last and any(letter.isalpha() for letter in answer.text):
            yield MemoryKind.DECISION, answer.text, (answer.index,)


def _ran(state: MechanicalState, first: int, last: int) -> Iterator[Told]:
    """Commands that worked more than once: how this project is built, tried and checked."""
    runs: dict[str, list[int]] = {}
    for command in state.commands:
        text = commands.essence(command.command)
        is_short = 0 < len(text) <= _LONGEST_COMMAND and not text.endswith("…")
        if first <= command.index <= last and command.status == "ok" and is_short and not commands.is_look_up(text):
            runs.setdefault(text, []).append(command.index)
    counts = Counter({text: len(indexes) for text, indexes in runs.items() if len(indexes) >= LEAST_RUNS})
    for text, _ in counts.most_common(MOST_COMMANDS):
        yield MemoryKind.COMMAND, text, tuple(runs[text][:MOST_COMMANDS])
