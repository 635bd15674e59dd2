"""Whole rounds are packed into calls of a summariser, so that each fits its window and progress is real."""

from collections.abc import Sequence

import msgspec

from sessions_app.engine.rounds import Round

CHUNK_TOKENS = 40_000
"""A chunk holds at most this many tokens, however large the window: each finished chunk is a step of progress."""

MAX_CHUNKS = 64
"""More calls than this are never made: beyond it the chunks grow instead."""

WINDOW_SHARE = 0.7  # the rest of a summariser's window is for its instructions and its answer


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """Rounds from the entry `first` to the entry `last`, inclusive."""

    first: int
    last: int
    tokens: int


def pack(rounds: Sequence[Round], window: int) -> list[Chunk]:
    """Chunks in order, each of whole rounds. Only a round that is larger than the limit on its own exceeds it."""
    total = sum(round_.tokens for round_ in rounds)
    limit = max(min(int(window * WINDOW_SHARE), CHUNK_TOKENS), 1)
    while (chunks := _pack(rounds, limit)) and len(chunks) > MAX_CHUNKS:
        limit = max(limit + limit // 4 + 1, total // MAX_CHUNKS)
    return chunks


def _pack(rounds: Sequence[Round], limit: int) -> list[Chunk]:
    chunks: list[Chunk] = []
    for round_ in rounds:
        last = chunks[-1] if chunks else None
        if last is not None and last.tokens + round_.tokens <= limit:
            chunks[-1] = Chunk(first=last.first, last=round_.last, tokens=last.tokens + round_.tokens)
        else:
            chunks.append(Chunk(first=round_.first, last=round_.last, tokens=round_.tokens))
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
