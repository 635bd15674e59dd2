"""An agent's own summary beside the extractive one of the same entries, at the same length: what each kept of their facts."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from sessions_app.engine import grounding, retention
from sessions_app.engine.counting import estimate_text
from sessions_app.engine.entries import Entry
from sessions_app.engine.extractive import ExtractiveSummariser
from sessions_app.engine.grounding import Unsupported
from sessions_app.engine.mechanical import Collector
from sessions_app.engine.redaction import redact_entries
from sessions_app.engine.retention import Count
from sessions_app.engine.state import MechanicalState
from sessions_app.engine.steps import SummaryRequest

LEAST_TOKENS = 100
"""A summary under this is a stub of a recording, not a summary."""


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One summary. `claims`: names and quotes that were looked up."""

    text: str
    tokens: int
    count: Count
    claims: int
    unsupported: tuple[Unsupported, ...]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Both summaries of the entries from `first` to `last`, inclusive."""

    first: int
    last: int
    theirs: Side
    ours: Side


def compare(entries: Iterable[Entry], summaries: Sequence[tuple[int, str]]) -> Iterator[Comparison]:
    """For each of the agent's summaries (index of the entry before which it ends, text; in order) the two side by side.

    `entries` is the history from index 0. One pass.
    """
    collector = Collector()
    seen: list[list[Entry]] = []
    span: list[Entry] = []
    left = list(summaries)
    previous = ""
    for entry in entries:
        while left and entry.index >= left[0][0]:
            _, text = left.pop(0)
            if span and estimate_text(text) >= LEAST_TOKENS:
                seen.append(span)
                yield _compared(collector, span, seen, text, previous)
                span, previous = [], text
        (clean,), _ = redact_entries([entry])
        collector.add(clean)
        span.append(clean)


def _compared(collector: Collector, span: list[Entry], seen: list[list[Entry]], theirs: str, previous: str) -> Comparison:
    state = collector.state()
    request = SummaryRequest(entries=tuple(span), previous_summary=previous, state=state, max_tokens=estimate_text(theirs))
    ours = ExtractiveSummariser().summarise(request, lambda: None).text
    return Comparison(
        first=span[0].index,
        last=span[-1].index,
        theirs=_side(theirs, collector, span, seen, previous, state),
        ours=_side(ours, collector, span, seen, previous, state),
    )


def _side(text: str, collector: Collector, span: list[Entry], seen: list[list[Entry]], previous: str, state: MechanicalState) -> Side:
    indexes = frozenset(entry.index for entry in span)
    checked = grounding.check(text, seen, known=previous, roots=(state.cwd,))
    report = retention.report(collector.facts(), summary=text, block="", span=indexes)
    return Side(text=text, tokens=estimate_text(text), count=report.total, claims=checked.claims, unsupported=checked.unsupported)
