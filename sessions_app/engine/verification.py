"""The check of a checkpoint before it is committed: retention and grounding, on what was read for its summary."""

from collections.abc import Iterator, Sequence
from itertools import chain

import msgspec

from sessions_app.engine import grounding, retention
from sessions_app.engine.entries import Checkpoint, Entry
from sessions_app.engine.grounding import Checked
from sessions_app.engine.shapes import EntryShape
from sessions_app.engine.state import MechanicalState
from sessions_app.engine.steps import Commit
from sessions_app.engine.summarising import Reading
from sessions_app.engine.terms import Kind, SegmentKind, SummarySource

MAX_TAIL_CHARS = 2_000_000
"""Of what stands word for word after the block; a fact that only stands further on counts as dropped."""


def of(made: Commit, shapes: Sequence[EntryShape], previous: Checkpoint | None, reading: Reading, previous_summary: str) -> Commit:
    """The checkpoint with its retention report, its unsupported claims and what they come to."""
    carried = frozenset(segment.first for segment in made.segments if segment.kind is SegmentKind.ENTRY and segment.first is not None)
    system_last = max((segment.last for segment in made.segments if segment.last is not None), default=-1)
    folded = frozenset(
        shape.index
        for shape in shapes[system_last + 1 : made.boundary_index]
        if shape.index not in carried and (previous is None or previous.holds(shape.index))
    )
    report = retention.report(
        reading.facts(),
        summary=made.summary if made.summary_source is not SummarySource.TRIM else "",
        block=made.block,
        tail_texts=_tail(reading, carried, made.boundary_index),
        span=folded,
    )
    checked = grounded(made.summary, reading, previous_summary)
    return msgspec.structs.replace(
        made,
        retention=report,
        unsupported=checked.unsupported,
        coverage_status=retention.coverage_status(report, len(checked.unsupported)),
    )


def grounded(text: str, reading: Reading, previous_summary: str) -> Checked:
    """Whether all that a summary names and quotes stands in what was read."""
    state = reading.known()
    return grounding.check(text, reading.again(), known=f"{_known(state)}\n{previous_summary}", roots=(state.cwd,))


def _known(state: MechanicalState) -> str:
    """What code took from the entries: most names of a summary stand in it."""
    names = (file.path for file in state.files)
    said = (message.text for message in state.user_messages)
    mentioned = (mention.text for mention in chain(state.urls, state.identifiers, state.answers))
    ran = (command.command for command in state.commands)
    refused = (refusal.said for refusal in state.refusals)
    return "\n".join(
        chain((state.cwd, state.branch), state.tools, names, mentioned, ran, said, refused, (commit.sha for commit in state.commits))
    )


def _tail(reading: Reading, carried: frozenset[int], boundary: int) -> Iterator[str]:
    left = MAX_TAIL_CHARS
    for entry in reading.tail(carried, boundary):
        for text in _texts(entry):
            left -= len(text)
            if left < 0:
                return
            yield text


def _texts(entry: Entry) -> Iterator[str]:
    if entry.is_sendable and not entry.off_branch and entry.kind is not Kind.COMPACTED:
        yield from (part.text for part in entry.parts if part.text)
