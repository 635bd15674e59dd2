"""Results that a view leaves out because no call of it is theirs: a provider would refuse the request with them."""

import uuid
from collections.abc import Iterator, Sequence

from sessions_app.engine.entries import Checkpoint
from sessions_app.engine.shapes import EntryShape
from sessions_app.engine.terms import Kind
from sessions_app.models import Entry

REACH = 2_000
"""So far before a result its call is looked for among those of a message that makes several."""


def left_out(session_id: uuid.UUID, shapes: Sequence[EntryShape], checkpoint: Checkpoint | None) -> frozenset[int]:
    """Which of these entries, in order, they are. No query where each result stands behind its call, as nearly all do; else two at most."""
    called: set[str] = set()
    lone: list[EntryShape] = []
    for shape in shapes:
        if shape.kind is Kind.CALL and shape.is_sent:
            called.update(shape.call_ids)
        elif shape.kind is Kind.RESULT and shape.is_sent and called.isdisjoint(shape.call_ids) and _stands(shape.index, checkpoint):
            lone.append(shape)
    if not lone:
        return frozenset()
    first, last = lone[0].index, lone[-1].index
    found = dict.fromkeys((call_id for shape in lone for call_id in shape.call_ids), last + 1)
    for call_id, index in _calls(session_id, list(found), first, last):
        if call_id in found and _stands(index, checkpoint):
            found[call_id] = min(found[call_id], index)
    return frozenset(shape.index for shape in lone if all(found[call_id] > shape.index for call_id in shape.call_ids))


def _stands(index: int, checkpoint: Checkpoint | None) -> bool:
    return checkpoint is None or checkpoint.holds(index)


def _calls(session_id: uuid.UUID, call_ids: list[str], first: int, last: int) -> Iterator[tuple[str, int]]:
    """(id, index) of calls of these ids before the last of the results."""
    calls = Entry.objects.filter(session_id=session_id, kind=Kind.CALL, off_branch=False)
    # The index of calls is used where its own condition is named, and no range that another index might be used for.
    by_id = calls.filter(call_id__in=call_ids).exclude(call_id="").values_list("call_id", "index")
    yield from ((call_id, index) for call_id, index in by_id if index < last)
    several = calls.filter(index__range=(max(0, first - REACH), last - 1)).exclude(more_call_ids=[])
    for more, index in several.values_list("more_call_ids", "index"):
        yield from ((call_id, index) for call_id in more)
