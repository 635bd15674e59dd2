"""Counts what a reader of chat messages finds, and says what it had to make up."""

from sessions_app.readers.base import ParsedEntry, Problem, Record
from sessions_app.readers.lines import Piece
from sessions_app.readers.report import Place, Reporter


class ReportKeeper(Reporter):
    """Keeps besides how much a source leaves out."""

    def __init__(self, name: str, version: int) -> None:
        super().__init__(name, version)
        self.without_id = self.without_time = self.tools = self.failed_compactions = self.conversations = 0

    def keep(self, piece: Piece, kind: str, entry: ParsedEntry | None, problems: list[Problem] | None = None) -> Record:
        """The record of a piece, counted. `problems` come on top of those of its bytes."""
        return self.record(piece, kind, entry, [*Place(piece).problems, *(problems or ())])

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
