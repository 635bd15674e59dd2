"""Whole rounds are packed into calls of a summariser, so that each fits its window and progress is real."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import msgspec

from sessions_app.engine.rounds import Stretches
from sessions_app.engine.shapes import EntryShape
from sessions_app.engine.terms import Kind

# Looking a member up in its class costs a call in Python 3.11, and packing asks this of every entry.
_RESULT, _CALL, _THINKING = Kind.RESULT, Kind.CALL, Kind.THINKING

CHUNK_TOKENS = 40_000
"""A chunk holds at most this many tokens, however large the window: each finished chunk is a step of progress."""

FOLDS = 16
"""For each so many chunks, a call is kept back to fold what they gave."""

SURPLUS_TOKENS = 400_000
"""The oldest chunks for which no call is left are put together up to this size, and summarised without a model."""

WINDOW_SHARE = 0.7  # the rest of a summariser's window is for its instructions and its answer


RESULT_TOKENS, CALL_TOKENS, THINKING_TOKENS = 2_000, 600, 0
"""About what a summariser is sent of a result, of a call and of thinking, however long they are (`prompts.CLIPS`)."""


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """Rounds from the entry `first` to the entry `last`, inclusive."""

    first: int
    last: int
    tokens: int
    is_surplus: bool = False  # no call of a model is left for it


def as_sent(shapes: Sequence[EntryShape]) -> list[EntryShape]:
    """The shapes with the size that they have for a summariser. One pass; only those are copied that are larger."""
    return [
        shape
        if (shape.tokens <= CALL_TOKENS and shape.kind is not _THINKING) or shape.tokens <= (most := _most(shape))
        else msgspec.structs.replace(shape, tokens=most)
        for shape in shapes
    ]


def _most(shape: EntryShape) -> int:
    if shape.kind is _RESULT:
        return RESULT_TOKENS * max(1, len(shape.call_ids))
    if shape.kind is _CALL:
        return CALL_TOKENS * max(1, len(shape.call_ids))
    return THINKING_TOKENS if shape.kind is _THINKING else shape.tokens


def pack(rounds: Stretches, window: int, max_calls: int) -> list[Chunk]:
    """Chunks in order, each of whole rounds. Only a round that is larger than the limit on its own exceeds it.

    With the calls that fold them, those that a model summarises take at most `max_calls`.
    """
    count = len(rounds.firsts)
    chunks = _pack(rounds, count, chunk_limit(window))
    most = most_chunks(max_calls)
    if len(chunks) <= most:
        return chunks
    newest = chunks[-most:]
    older = _pack(rounds, bisect_left(rounds.firsts, newest[0].first), SURPLUS_TOKENS)
    return [msgspec.structs.replace(chunk, is_surplus=True) for chunk in older] + newest


def chunk_limit(window: int) -> int:
    """Tokens that a chunk for a summariser with this window may hold."""
    return max(min(int(window * WINDOW_SHARE), CHUNK_TOKENS), 1)


def most_chunks(max_calls: int) -> int:
    """How many chunks a model may summarise within so many calls."""
    return max(1, max_calls - 1 - max_calls // FOLDS)


def _pack(rounds: Stretches, count: int, limit: int) -> list[Chunk]:
    """The first so many rounds in chunks. Sums only grow, so that one search finds the end of each."""
    chunks: list[Chunk] = []
    start, sums = 0, rounds.sums
    while start < count:
        end = min(max(start + 1, bisect_right(sums, sums[start] + limit, start + 1) - 1), count)
        chunks.append(Chunk(first=rounds.firsts[start], last=rounds.lasts[end - 1], tokens=sums[end] - sums[start]))
        start = end
    return chunks


def fold_groups(sizes: Sequence[int], window: int) -> list[tuple[int, int]]:
    """Which neighbouring partial summaries (given by their tokens) one fold takes: pairs (start, end), end excluded.

    Every group but a last lone one holds at least two, so that folding always ends.
    """
    limit = int(window * WINDOW_SHARE)
    groups: list[tuple[int, int]] = []
    start, held = 0, 0
    for position, size in enumerate(sizes):
        if position - start >= 2 and held + size > limit:
            groups.append((start, position))
            start, held = position, 0
        held += size
    groups.append((start, len(sizes)))
    return groups
