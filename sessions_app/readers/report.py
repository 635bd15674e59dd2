"""The parse report of a source, filled while it is read."""

import re

from sessions_app.readers.base import MAX_LISTED_PROBLEMS, ParsedEntry, ParseReport, Problem, ProblemKind, Record
from sessions_app.readers.lines import Piece
from sessions_app.readers.times import TIME, TIME_IN_DOUBT, Clock

MAX_KINDS = 1_000
"""Kinds of records that are counted each by itself, and kinds of findings that are listed; of a source that means no good."""

OTHER_KINDS = "(other kinds)"
_ZONED = re.compile(r"(?:Z|[+-]\d\d:?\d\d)$")
_LISTED_ONCE = frozenset(
    {ProblemKind.UNKNOWN_TYPE, ProblemKind.FOREIGN_SESSION, ProblemKind.NAIVE_TIME, ProblemKind.BAD_SHAPE, ProblemKind.TIME_IN_DOUBT}
)
_LOST_KINDS = (ProblemKind.TOO_LONG, ProblemKind.TRUNCATED, ProblemKind.NOT_AN_OBJECT, ProblemKind.UNREADABLE, ProblemKind.NUL_BYTES)


class Place:
    """Where a piece stands, and what was found wrong with it."""

    __slots__ = ("line", "offset", "problems")

    def __init__(self, piece: Piece) -> None:
        self.line, self.offset = piece.line, piece.offset
        self.problems: list[Problem] = []
        for kind in piece.problems:
            self.note(kind)

    def note(self, kind: ProblemKind, detail: str = "") -> None:
        self.problems.append(Problem(kind=kind, line=self.line, offset=self.offset, detail=detail))


class Reporter:
    """Makes records and counts them. Lists each problem, but those of one kind and detail that come in masses only once."""

    def __init__(self, reader: str, version: int) -> None:
        self.report = ParseReport(reader=reader, reader_version=version)
        self._listed: set[tuple[ProblemKind, str]] = set()
        self._last_time = ""
        self.clock = Clock()
        self._before_end: tuple[dict[str, int], int, list[str]] | None = None

    @property
    def next_place(self) -> tuple[int, int]:
        """(line, offset) of the next piece, where all that was read so far were whole lines."""
        return (self.report.lines + 1 if self.report.bytes_read else 1), self.report.bytes_read

    def end(self) -> None:
        """What is noted from now on is true of the source as it ends now: `go_on` takes it back."""
        report = self.report
        self._before_end = (dict(report.by_problem), len(report.problems), list(report.notes))

    def go_on(self) -> None:
        """Takes back what was noted since `end`: the source has grown."""
        self.clock.look()
        if self._before_end is not None:
            self.report.by_problem, kept, self.report.notes = self._before_end
            del self.report.problems[kept:]
            self._before_end = None

    def record(self, piece: Piece, kind: str, entry: ParsedEntry | None, problems: list[Problem]) -> Record:
        """The record of a piece, counted. `problems` are all of it, those of its bytes included."""
        report, raw = self.report, piece.raw
        report.bytes_read += len(raw)
        report.lines = piece.line + max(0, raw.count(b"\n") - raw.endswith(b"\n"))
        report.records += 1
        counted = kind if kind in report.by_kind or len(report.by_kind) < MAX_KINDS else OTHER_KINDS
        report.by_kind[counted] = report.by_kind.get(counted, 0) + 1
        if entry is not None:
            report.entries += 1
            report.side_chain_entries += bool(entry.child_key)
        if problems:
            self.note_problems(problems)
        return Record(line=piece.line, offset=piece.offset, length=len(raw), kind=kind, raw=raw, entry=entry, problems=tuple(problems))

    def note_problems(self, problems: list[Problem]) -> None:
        report = self.report
        for problem in problems:
            report.by_problem[problem.kind] = report.by_problem.get(problem.kind, 0) + 1
            report.duplicates += problem.kind is ProblemKind.DUPLICATE
            if problem.kind in _LISTED_ONCE:
                if (problem.kind, problem.detail) in self._listed or len(self._listed) >= MAX_KINDS:
                    continue
                self._listed.add((problem.kind, problem.detail))
            if len(report.problems) < MAX_LISTED_PROBLEMS:
                report.problems.append(problem)

    def set_time(self, entry: ParsedEntry, told: str, place: Place) -> None:
        """Gives an entry its row's time; without a usable one that of the last entry that had one."""
        if TIME.match(told):
            if not _ZONED.search(told[10:]):
                place.note(ProblemKind.NAIVE_TIME)
            entry.timestamp = told[:40]
            if self.clock.believes(entry.timestamp):
                self._last_time = entry.timestamp
            else:
                place.note(ProblemKind.TIME_IN_DOUBT, entry.timestamp[:4])
                entry.annex = {**entry.annex, TIME_IN_DOUBT: True}
        else:
            entry.timestamp, entry.synthetic_time = self._last_time, True


def lost_kind(piece: Piece) -> str:
    """The kind of a record that holds no object."""
    return next((kind.value for kind in _LOST_KINDS if kind in piece.problems), "blank")
