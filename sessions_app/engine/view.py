"""The model view: the messages that a plan and the entries make, byte for byte the same wherever it is built."""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import msgspec

from sessions_app.engine.assembly import NO_RESULT, Assembly
from sessions_app.engine.entries import Checkpoint, Entry, SyntheticMessage
from sessions_app.engine.legality import problems
from sessions_app.engine.messages import ViewMessage, ViewPart, sent_parts
from sessions_app.engine.terms import SegmentKind

__all__ = ["NO_RESULT", "ViewMessage", "ViewPart", "build", "problems", "sent_parts", "stream", "view_hash"]

HELD_BACK = 100
"""Exchanges that a stream holds back: results and further pieces of a message come nearly always within so many."""


def build(entries: Iterable[Entry], checkpoint: Checkpoint | None) -> tuple[ViewMessage, ...]:
    """The view of a plan; without one, of everything on the live branch.

    `entries` need to hold only what the plan names, in any order; others are passed over. All user-side entries
    between two assistant messages become one message: results, then reminders, then texts. Every result stands right
    after its call. A result without its call is left out, and a call without a result gets a synthetic one, so that
    every view is legal.
    """
    assembly = Assembly(checkpoint.cleared, checkpoint.pinned) if checkpoint else Assembly(frozenset())
    for item in _plan_order(entries, checkpoint):
        if isinstance(item, SyntheticMessage):
            assembly.add_synthetic(item)
        else:
            assembly.add(item)
    return tuple(assembly.messages())


def stream(
    items: Iterable[Entry | SyntheticMessage],
    checkpoint: Checkpoint | None,
    is_awaited: Callable[[Collection[str], Collection[str]], bool],
    *,
    keep: int = HELD_BACK,
) -> Iterator[ViewMessage]:
    """The messages of `build`, one by one, from what a plan names in its order, exclusions left out: holds only what may still change.

    `is_awaited` says of message keys and call ids whether an entry more than `keep` entries later goes with them.
    """
    assembly = Assembly(checkpoint.cleared, checkpoint.pinned) if checkpoint else Assembly(frozenset())
    excluded = checkpoint.excluded if checkpoint else frozenset()
    for item in items:
        if isinstance(item, SyntheticMessage):
            assembly.add_synthetic(item)
        elif item.is_sendable and not item.off_branch and item.index not in excluded:
            assembly.add(item)
            yield from assembly.settled(keep, is_awaited)
    yield from assembly.messages()


def view_hash(messages: Sequence[ViewMessage]) -> str:
    """sha256, in hex, over what a model would read. Where it comes from does not count."""
    said = [(message.role, [(part.part, part.glued, part.newline) for part in message.parts]) for message in messages]
    return hashlib.sha256(msgspec.json.encode(said)).hexdigest()


def _plan_order(entries: Iterable[Entry], checkpoint: Checkpoint | None) -> Iterator[Entry | SyntheticMessage]:
    by_index = {entry.index: entry for entry in entries if entry.is_sendable and not entry.off_branch}
    if checkpoint is None:
        yield from (by_index[index] for index in sorted(by_index))
        return
    for index in checkpoint.excluded:
        by_index.pop(index, None)
    in_order = sorted(by_index)
    # An entry that a plan names by itself stands there, not in a range around it.
    singles = {segment.first for segment in checkpoint.segments if segment.kind is SegmentKind.ENTRY}
    placed: set[int] = set()
    for segment in checkpoint.segments:
        if segment.payload is not None:
            yield segment.payload
        if segment.first is None:
            continue
        last = segment.first if segment.kind is SegmentKind.ENTRY else segment.last
        end = len(in_order) if last is None else bisect_right(in_order, last)
        for index in in_order[bisect_left(in_order, segment.first) : end]:
            if index not in placed and (segment.kind is SegmentKind.ENTRY or index not in singles):
                placed.add(index)
                yield by_index[index]
