"""The parse report of a rollout, filled while it is read."""

import re

from sessions_app.readers.base import MAX_LISTED_PROBLEMS, ParsedEntry, ParseReport, Problem, ProblemKind
from sessions_app.readers.lines import Piece

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_ZONED = re.compile(r"(?:Z|[+-]\d\d:?\d\d)$")
_LISTED_ONCE = frozenset({ProblemKind.UNKNOWN_TYPE, ProblemKind.FOREIGN_SESSION, ProblemKind.NAIVE_TIME, ProblemKind.BAD_SHAPE})
_LOST_KINDS = (ProblemKind.TOO_LONG, ProblemKind.NOT_AN_OBJECT, ProblemKind.TRUNCATED, ProblemKind.UNREADABLE, ProblemKind.NUL_BYTES)


class Place:
    """Where a piece stands, and what was found wrong with it."""

    def __init__(self, piece: Piece) -> None:
        self.line, self.offset = piece.line, piece.offset
        self.problems: list[Problem] = []
        for kind in piece.problems:
            self.note(kind)

    def note(self, kind: ProblemKind, detail: str = "") -> None:
        self.problems.append(Problem(kind=kind, line=self.line, offset=self.offset, detail=detail))


class Reporter:
    """Counts records and problems; lists each problem, but those of one kind and detail that come in masses only once."""

    def __init__(self, reader: str, version: int) -> None:
        self.report = ParseReport(reader=reader, reader_version=version)
        self._listed: set[tuple[ProblemKind, str]] = set()
        self._last_time = ""

    def note_record(self, piece: Piece, kind: str, entry: ParsedEntry | None, problems: list[Problem]) -> None:
        report = self.report
        report.bytes_read += len(piece.raw)
        report.lines = piece.line
        report.records += 1
        report.by_kind[kind] = report.by_kind.get(kind, 0) + 1
        report.entries += entry is not None
        self.note_problems(problems)

    def note_problems(self, problems: list[Problem]) -> None:
        report = self.report
        for problem in problems:
            report.by_problem[problem.kind] = report.by_problem.get(problem.kind, 0) + 1
            if problem.kind in _LISTED_ONCE:
                if (problem.kind, problem.detail) in self._listed:
                    continue
                self._listed.add((problem.kind, problem.detail))
            if len(report.problems) < MAX_LISTED_PROBLEMS:
                report.problems.append(problem)

    def set_time(self, entry: ParsedEntry, told: str, place: Place) -> None:
        """Gives an entry its row's time; without a usable one that of the entry before."""
        if _TIME.match(told):
            if not _ZONED.search(told[10:]):
                place.note(ProblemKind.NAIVE_TIME)
            entry.timestamp = self._last_time = told[:40]
        else:
            entry.timestamp, entry.synthetic_time = self._last_time, True


def lost_kind(piece: Piece) -> str:
    """The kind of a record that holds no object."""
    return next((kind.value for kind in _LOST_KINDS if kind in piece.problems), "blank")
