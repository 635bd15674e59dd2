"""Counts what a reader of chat messages finds, and says what it had to make up."""

from sessions_app.readers.base import MAX_LISTED_PROBLEMS, ParsedEntry, ParseReport, Problem, ProblemKind, Record
from sessions_app.readers.lines import Piece

_LOST_KINDS = (
    ProblemKind.TOO_LONG, ProblemKind.TRUNCATED, ProblemKind.NOT_AN_OBJECT, ProblemKind.UNREADABLE, ProblemKind.NUL_BYTES,
)  # fmt: skip


def lost_kind(piece: Piece) -> str:
    """The record kind of a piece that holds no object."""
    return next((kind.value for kind in _LOST_KINDS if kind in piece.problems), "blank")


class ReportKeeper:
    """Makes records and keeps their report."""

    def __init__(self, name: str, version: int) -> None:
        self.report = ParseReport(reader=name, reader_version=version)
        self.without_id = self.without_time = self.tools = self.failed_compactions = self.conversations = 0
        self._listed: set[str] = set()

    def record(self, piece: Piece, kind: str, entry: ParsedEntry | None, problems: list[Problem] | None = None) -> Record:
        """The record of a piece, counted. `problems` come on top of those of its bytes."""
        found = [Problem(kind=problem, line=piece.line, offset=piece.offset) for problem in piece.problems] + (problems or [])
        report = self.report
        report.bytes_read += len(piece.raw)
        report.lines = piece.line + max(0, piece.raw.count(b"\n") - piece.raw.endswith(b"\n"))
        report.records += 1
        report.by_kind[kind] = report.by_kind.get(kind, 0) + 1
        if entry is not None:
            report.entries += 1
            report.side_chain_entries += bool(entry.child_key)
        self.note(found)
        return Record(
            line=piece.line, offset=piece.offset, length=len(piece.raw), kind=kind, raw=piece.raw, entry=entry, problems=tuple(found)
        )

    def note(self, problems: list[Problem]) -> None:
        """Counts every problem; lists each, but an unknown type only once."""
        report = self.report
        for problem in problems:
            report.by_problem[problem.kind] = report.by_problem.get(problem.kind, 0) + 1
            report.duplicates += problem.kind is ProblemKind.DUPLICATE
            if problem.kind is ProblemKind.UNKNOWN_TYPE:
                if problem.detail in self._listed:
                    continue
                self._listed.add(problem.detail)
            if len(report.problems) < MAX_LISTED_PROBLEMS:
                report.problems.append(problem)

    def finish(self, checkpoints: int) -> None:
        """Completes the report with what is known at the end."""
        self.report.checkpoints = checkpoints
        notes = (
            (self.conversations, "{} conversations: each is a session of its own, and a card of this one leads to it."),
            (self.without_id, "{} entries have no id in the source: theirs are made from what they say."),
            (self.without_time, "{} entries have no time in the source: none is shown as theirs."),
            (self.tools, "{} tool definitions stand beside the messages: they are kept in the raw records."),
            (self.failed_compactions, "{} compactions failed: they changed nothing of what the model sees."),
        )
        self.report.notes += [words.format(count) for count, words in notes if count]
