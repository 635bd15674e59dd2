"""What a compaction kept of the facts that it folded, as pages show it: numbers, a table by class, lists by fate."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from sessions_app.engine.facts import FactClass
from sessions_app.engine.grounding import Unsupported
from sessions_app.engine.retention import Count, FactFate, Found, Place, Retention
from sessions_app.engine.terms import CoverageStatus, Status
from sessions_app.models import Compaction

OPEN_LINES = 6
"""Facts of a class that stand open in a list; the others fold behind them."""

_NAMES = {
    FactClass.ASK: "requests of the user",
    FactClass.CONSTRAINT: "constraints that they stated",
    FactClass.TO_DO: "open to-dos",
    FactClass.FILE_EDITED: "files changed",
    FactClass.FILE_READ: "files only read",
    FactClass.COMMAND: "commands and how they ended",
    FactClass.ERROR: "lines of errors",
    FactClass.URL: "addresses",
    FactClass.IDENTIFIER: "identifiers",
    FactClass.NUMBER: "numbers with a unit",
}
_TONES = {
    CoverageStatus.PASS: "ok",
    CoverageStatus.PASS_WITH_BACKFILL: "ok",
    CoverageStatus.WARN: "warn",
    CoverageStatus.FAIL_BLOCKED: "bad",
}
_MEANS = {
    CoverageStatus.PASS: "The summary itself tells all requests, constraints, to-dos and changed files.",
    CoverageStatus.PASS_WITH_BACKFILL: "The summary lacks some requests, constraints, to-dos or changed files, but the view holds them.",
    CoverageStatus.WARN: "Something that matters is not in the view any more, or the summary says what no entry does.",
    CoverageStatus.FAIL_BLOCKED: "Too much of the summary is in no entry: it was not committed.",
    CoverageStatus.UNKNOWN: "There was nothing to check.",
}


@dataclass(frozen=True)
class ClassCount:
    name: str
    count: Count


@dataclass(frozen=True)
class FactLines:
    """Facts of one class with one fate: `first` open, `rest` behind a fold. `unlisted`: beyond what is stored."""

    name: str
    first: tuple[Found, ...]
    rest: tuple[Found, ...]
    unlisted: int


@dataclass(frozen=True)
class FateList:
    """All facts with one fate, by class."""

    words: str
    total: int
    classes: tuple[FactLines, ...]
    is_open: bool


@dataclass(frozen=True)
class RetentionReport:
    """`total` counts the facts of the span; `earlier` those of what was folded before."""

    coverage: CoverageStatus
    retention: Retention
    unsupported: tuple[Unsupported, ...]

    @cached_property
    def total(self) -> Count:
        return self.retention.total

    @property
    def tone(self) -> str:
        return _TONES.get(self.coverage, "line")

    @property
    def means(self) -> str:
        return _MEANS[self.coverage]

    @property
    def classes(self) -> tuple[ClassCount, ...]:
        return tuple(ClassCount(_NAMES[kind], count) for kind, count in self.retention.classes.items())

    @property
    def bar(self) -> tuple[tuple[str, int, int], ...]:
        """Fill, start and width of each piece of the bar, in facts."""
        total, start, pieces = self.total, 0, []
        for fill, width in (
            ("ok", total.kept), ("warn", total.paraphrased), ("system", total.by_code), ("verbatim", total.in_tail), ("bad", total.dropped),
        ):  # fmt: skip
            if width:
                pieces.append((fill, start, width))
            start += width
        return tuple(pieces)

    @property
    def lists(self) -> tuple[FateList, ...]:
        """What was lost first."""
        total = self.total
        lists = (
            self._list("Dropped", total.dropped, None, is_open=True),
            self._list("Told in other words by the summary", total.paraphrased, Place.SUMMARY, FactFate.PARAPHRASED),
            self._list("Not in the summary, added by code", total.by_code, Place.CODE),
            self._list("Not in the block, but word for word in the view", total.in_tail, Place.TAIL),
            self._list("Kept by the summary", total.kept, Place.SUMMARY, FactFate.KEPT),
        )
        return tuple(one for one in lists if one.total)

    def _list(self, words: str, total: int, place: Place | None, fate: FactFate | None = None, *, is_open: bool = False) -> FateList:
        of_fate = [found for found in self.retention.facts if found.place is place and (fate is None or found.fate is fate)]
        return FateList(words, total, tuple(self._lines(kind, of_fate, place, fate) for kind in self.retention.classes), is_open)

    def _lines(self, kind: FactClass, found: Sequence[Found], place: Place | None, fate: FactFate | None) -> FactLines:
        of_kind = tuple(one for one in found if one.fact.kind is kind)
        count = self.retention.classes[kind]
        all_of_kind = {
            None: count.dropped,
            Place.CODE: count.by_code,
            Place.TAIL: count.in_tail,
            Place.SUMMARY: count.paraphrased if fate is FactFate.PARAPHRASED else count.kept,
        }[place]
        first = of_kind if len(of_kind) <= OPEN_LINES + 1 else of_kind[:OPEN_LINES]
        return FactLines(_NAMES[kind], first, of_kind[len(first) :], all_of_kind - len(of_kind))


def report_of(compaction: Compaction) -> RetentionReport | None:
    """The report of a checkpoint that was checked; None for one that was not: an agent's own, or one of before there were checks."""
    if not compaction.retention or (compaction.generation is None and compaction.status != Status.DRAFTED):
        return None
    return RetentionReport(
        coverage=CoverageStatus(compaction.coverage_status or CoverageStatus.UNKNOWN),
        retention=msgspec.convert(compaction.retention, Retention),
        unsupported=msgspec.convert(tuple(compaction.unsupported), tuple[Unsupported, ...]),
    )


@dataclass(frozen=True)
class FactNumbers:
    """The numbers of a report in a line."""

    in_view: int
    total: int
    dropped: int
    unsupported: int


def numbers_of(total: object) -> FactNumbers | None:
    """From what a compaction stores as the total of its report; None where there is none."""
    if not isinstance(total, dict):
        return None
    count = msgspec.convert(total, Count)
    return FactNumbers(count.in_view, count.total, count.dropped, int(total.get("unsupported", 0))) if count.total else None
