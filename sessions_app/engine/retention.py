"""What became of the facts of a history in a new view: kept, told in other words, or dropped; and thanks to whom."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import chain, count
from typing import NamedTuple

import msgspec

from sessions_app.engine import mentions
from sessions_app.engine.facts import Fact, FactClass, Facts
from sessions_app.engine.terms import CoverageStatus

LEAST_SHARE = 0.6
"""Of a fact's content words, in one sentence, from which on that sentence tells it."""

LEAST_WORDS = 3
"""A sentence with fewer content words than this can't be told in others: it stands there, or it does not."""

MAX_LISTED = 60
"""Facts of a class that a report names, those that were dropped before the others. All are counted."""

_WORD = re.compile(r"\w+")
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？])|\n+")
_MARKS = "`*“”\"’‘'"
_EMPTY_WORDS = frozenset(
    word
    for line in (
        "about after again also and any are been before being but can could did does for from had has have here how into its just",
        "like made make more most much not now off once one only other our out over own please should some such than that the their",
        "them then there these they this those through too under until use used using very want was were what when where which while",
        "who why will with would you your",
    )
    for word in line.split()
)
_FILES = frozenset({FactClass.FILE_EDITED, FactClass.FILE_READ})
_LONGEST_SENTENCE = 600  # characters; what goes on longer is no sentence but data, and is taken in pieces


class FactFate(StrEnum):
    """What became of a fact. The place says where the view holds it."""

    KEPT = "kept"
    PARAPHRASED = "paraphrased"
    DROPPED = "dropped"


class Place(StrEnum):
    SUMMARY = "summary"
    CODE = "code"  # what code adds to the block: mechanical state, the user's messages
    TAIL = "tail"  # what stands word for word around the block


class Found(msgspec.Struct, frozen=True, omit_defaults=True):
    """One fact and its fate; `place` is empty for one that was dropped."""

    fact: Fact
    fate: FactFate
    place: Place | None = None


class Count(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Facts by fate. `kept` and `paraphrased` by the summary itself; the others count apart, so that code can't flatter it."""

    kept: int = 0
    paraphrased: int = 0
    by_code: int = 0
    in_tail: int = 0
    dropped: int = 0

    @property
    def total(self) -> int:
        return self.kept + self.paraphrased + self.by_code + self.in_tail + self.dropped

    @property
    def by_summary(self) -> int:
        return self.kept + self.paraphrased

    @property
    def in_view(self) -> int:
        return self.total - self.dropped


class Retention(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The report. `facts` is a selection; `classes` and `earlier` count all.

    `earlier`: facts of what was folded before, which this view must not lose either. `beyond`: facts too many to look up.
    """

    classes: dict[FactClass, Count] = {}
    facts: tuple[Found, ...] = ()
    earlier: Count = Count()
    beyond: int = 0

    @property
    def total(self) -> Count:
        return _sum(self.classes.values())


class _Sought(NamedTuple):
    """A fact as it is looked for."""

    fact: Fact
    value: str = ""  # what must stand there for it to be kept: itself, or, of a file, its base name alone; in plain text
    words: Sequence[str] = ()  # of the value
    content: frozenset[str] = frozenset()  # the words of a sentence that another one would have to hold


class _Text:
    """A text in which facts are looked up; what that takes is made once, on first need."""

    def __init__(self, text: str, wanted: frozenset[str]) -> None:
        self._text = text
        self._wanted = wanted  # content words of all sentences that are looked for

    @cached_property
    def _plain(self) -> str:
        return plain(self._text)

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(_WORD.findall(self._plain))

    @cached_property
    def _quantities(self) -> frozenset[str]:
        return frozenset(number.lower() for number in mentions.quantities(self._text))

    @cached_property
    def _sentences_with(self) -> dict[str, list[int]]:
        """For each wanted word the numbers of the sentences in which it stands, ascending."""
        found: dict[str, list[int]] = {}
        number = count()
        for sentence in _SENTENCE_END.split(_unmarked(self._text)):
            for start in range(0, len(sentence), _LONGEST_SENTENCE):
                place = next(number)
                for word in self._wanted.intersection(_WORD.findall(sentence[start : start + _LONGEST_SENTENCE])):
                    found.setdefault(word, []).append(place)
        return found

    def fate(self, sought: _Sought) -> FactFate | None:
        """How the text holds the fact, or None."""
        if sought.fact.kind is FactClass.NUMBER:
            return FactFate.KEPT if sought.fact.text.lower() in self._quantities else None
        if sought.value and self._words.issuperset(sought.words) and self._holds(sought.value, sought.words):
            return FactFate.KEPT
        return FactFate.PARAPHRASED if sought.content and self._tells(sought.content) else None

    def _holds(self, value: str, words: Sequence[str]) -> bool:
        """Whether a value of these words stands in the text, not as a piece of a longer word."""
        if len(words) == 1 and words[0] == value:
            return True
        start, text = self._plain.find(value), self._plain
        while start >= 0:
            end = start + len(value)
            if not (start and _joins(text[start - 1], value[0])) and not (end < len(text) and _joins(value[-1], text[end])):
                return True
            start = text.find(value, start + 1)
        return False

    def _tells(self, content: frozenset[str]) -> bool:
        """Whether one sentence holds enough of the content words."""
        least = LEAST_SHARE * len(content)
        there = content & self._words
        if len(content) < LEAST_WORDS or len(there) < least:
            return False  # not even the whole text holds enough of them
        held = Counter(chain.from_iterable([self._sentences_with.get(word, ()) for word in there]))
        return max(held.values(), default=0) >= least


def report(facts: Facts, *, summary: str, block: str, tail_texts: Iterable[str] = (), span: frozenset[int] | None = None) -> Retention:
    """Looks each fact up in the new view: in its summary, in what code adds to the block, in what stands word for word.

    `span`: indexes of the entries that this compaction folds; None when that is all of them. Linear in the facts and
    in the length of the view.
    """
    here, earlier = facts.among(span) if span is not None else (facts.found, ())
    sought, sought_earlier = [_sought(fact) for fact in here], [_sought(fact) for fact in earlier]
    wanted = frozenset[str]().union(*(one.content for one in (*sought, *sought_earlier)))
    view = (
        (Place.SUMMARY, _Text(summary, wanted)),
        (Place.CODE, _Text(block.replace(summary.strip(), "\n", 1) if summary.strip() else block, wanted)),
        (Place.TAIL, _Text("\n".join(tail_texts), wanted)),
    )
    found = [_found(one, view) for one in sought]
    return Retention(
        classes={kind: count_of(one for one in found if one.fact.kind is kind) for kind in _classes(found)},
        facts=_listed(found),
        earlier=count_of(_found(one, view) for one in sought_earlier),
        beyond=sum(facts.beyond.values()),
    )


def coverage_status(retention: Retention, unsupported: int) -> CoverageStatus:
    """What the report comes to. Only what work goes wrong without counts: requests, constraints, to-dos, changed files."""
    counts = [one for kind, one in retention.classes.items() if kind.is_essential]
    essential = _sum(counts)
    if not retention.total.total and not unsupported:
        return CoverageStatus.UNKNOWN
    if unsupported or essential.dropped:
        return CoverageStatus.WARN
    return CoverageStatus.PASS if essential.total == essential.by_summary else CoverageStatus.PASS_WITH_BACKFILL


def count_of(found: Iterable[Found]) -> Count:
    """Facts by fate and place."""
    seen = Counter((one.fate if one.place is Place.SUMMARY else None, one.place) for one in found)
    return Count(
        kept=seen[FactFate.KEPT, Place.SUMMARY],
        paraphrased=seen[FactFate.PARAPHRASED, Place.SUMMARY],
        by_code=seen[None, Place.CODE],
        in_tail=seen[None, Place.TAIL],
        dropped=seen[None, None],
    )


def plain(text: str) -> str:
    """The text in lower case, on one line, without quotation marks and the marks of emphasis and code."""
    return " ".join(_unmarked(text).split())


def _unmarked(text: str) -> str:
    for mark in _MARKS:
        text = text.replace(mark, "")  # eight times through is faster than one translation
    return text.lower()


def content_words(text: str) -> frozenset[str]:
    """Words that carry meaning, in lower case: every number, and every other word of three letters or more but the empty ones."""
    words = _WORD.findall(text.lower())
    return frozenset(word for word in words if word.isdigit() or (len(word) > 2 and word not in _EMPTY_WORDS))


def _joins(before: str, after: str) -> bool:
    return (before.isalnum() or before == "_") and (after.isalnum() or after == "_")


def _sought(fact: Fact) -> _Sought:
    if fact.kind is FactClass.NUMBER:
        return _Sought(fact)
    value = plain(fact.text)
    if fact.kind in _FILES:
        value = value.rstrip("/").rpartition("/")[2] or value
    return _Sought(fact, value, _WORD.findall(value), content_words(value) if fact.kind.is_said else frozenset())


def _found(sought: _Sought, view: Sequence[tuple[Place, _Text]]) -> Found:
    """Where the view holds the fact best. What the summary tells in its own words counts before what code repeats."""
    for place, text in view:
        fate = text.fate(sought)
        if fate is not None:
            return Found(sought.fact, fate, place)
    return Found(sought.fact, FactFate.DROPPED)


def _classes(found: Sequence[Found]) -> list[FactClass]:
    there = {one.fact.kind for one in found}
    return [kind for kind in FactClass if kind in there]


def _listed(found: Sequence[Found]) -> tuple[Found, ...]:
    """Of each class the dropped ones first, then what is not the summary's merit, the newest of each."""
    ranks = {None: 0, Place.TAIL: 1, Place.CODE: 2, Place.SUMMARY: 3}
    listed: list[Found] = []
    for kind in _classes(found):
        of_kind = sorted((one for one in found if one.fact.kind is kind), key=lambda one: (ranks[one.place], -one.fact.index))
        listed += of_kind[:MAX_LISTED]
    return tuple(listed)


def _sum(counts: Iterable[Count]) -> Count:
    total = Counter[str]()
    for one in counts:
        total.update(msgspec.structs.asdict(one))
    return Count(**total)
