"""What an earlier checkpoint stands for whose own summary nobody here can read: told anew from the entries, without a model."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from sessions_app.engine.chunks import SURPLUS_TOKENS
from sessions_app.engine.entries import Checkpoint
from sessions_app.engine.extractive import ExtractiveSummariser
from sessions_app.engine.shapes import EntryShape
from sessions_app.engine.steps import SummaryRequest
from sessions_app.engine.summarising import Reading
from sessions_app.engine.terms import Role


def covered(shapes: Sequence[EntryShape], previous: Checkpoint | None) -> list[EntryShape]:
    """The entries before a checkpoint's boundary, where its view holds some of them in no form but its summary; else none."""
    if previous is None:
        return []
    found = [shape for shape in shapes[: previous.boundary_index] if shape.is_sent and shape.role is not Role.SYSTEM]
    return found if any(not previous.holds(shape.index) for shape in found) else []


def told_anew(reading: Reading, found: Sequence[EntryShape], boundary_index: int, max_tokens: int) -> str:
    """A summary of these entries, all of which lie before the boundary. Reads the history up to there. Raises `Stopped`."""
    writer, should_stop = ExtractiveSummariser(), reading.should_stop
    partials = []
    for first, last in _pieces(found):
        entries = reading.taken({shape.index for shape in found if first <= shape.index <= last}, last)
        partials.append(writer.summarise(SummaryRequest(entries=entries, max_tokens=max_tokens), should_stop).text)
    whole = SummaryRequest(partial_summaries=tuple(partials), state=reading.state_before(boundary_index), max_tokens=max_tokens)
    return writer.summarise(whole, should_stop).text


def warning(count: int) -> str:
    """What is said of it on the checkpoint."""
    return (
        "The summary of the checkpoint before can't be read here. What it stood for was told anew from the "
        f"{count:,} entries that it covers, without a model."
    )


def _pieces(shapes: Sequence[EntryShape]) -> Iterator[tuple[int, int]]:
    """First and last index of pieces that are small enough to be held at once."""
    first, tokens = shapes[0].index, 0
    for before, shape in pairwise(shapes):
        tokens += before.tokens
        if tokens + shape.tokens > SURPLUS_TOKENS:
            yield first, before.index
            first, tokens = shape.index, 0
    yield first, shapes[-1].index
