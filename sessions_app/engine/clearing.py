"""The cheapest rung: old results and binaries give way to placeholders that say where to read them back."""

from collections.abc import Sequence

import msgspec

from sessions_app.engine.entries import Checkpoint
from sessions_app.engine.shapes import EntryShape, in_view
from sessions_app.engine.terms import Kind

PLACEHOLDER_TOKENS = 25
"""About what the placeholder of a cleared entry takes."""

LEAST_TOKENS = 200
"""A smaller result is not worth its placeholder."""

_CLEARED_KINDS = frozenset({Kind.RESULT, Kind.ATTACHMENT})


class Clearing(msgspec.Struct, frozen=True, kw_only=True):
    """Entries of a view to clear, by index, and the tokens that their placeholders save."""

    indexes: frozenset[int]
    saved_tokens: int


def clearable(shapes: Sequence[EntryShape], previous: Checkpoint | None, before: int) -> Clearing:
    """What may be cleared of the view of `previous` in front of the entry `before`: nothing that is pinned. One pass."""
    cleared, pinned = (previous.cleared, previous.pinned) if previous else (frozenset(), frozenset())
    found = [
        shape
        for shape in in_view(shapes[:before], previous)
        if shape.kind in _CLEARED_KINDS and shape.tokens >= LEAST_TOKENS and shape.index not in cleared and shape.index not in pinned
    ]
    return Clearing(
        indexes=frozenset(shape.index for shape in found), saved_tokens=sum(shape.tokens - PLACEHOLDER_TOKENS for shape in found)
    )


def as_cleared(shapes: Sequence[EntryShape], checkpoint: Checkpoint | None) -> Sequence[EntryShape]:
    """The shapes with the size that they have in the checkpoint's view: a placeholder's, where one stands for them."""
    if checkpoint is None or not checkpoint.cleared:
        return shapes
    return [msgspec.structs.replace(shape, tokens=PLACEHOLDER_TOKENS) if shape.index in checkpoint.cleared else shape for shape in shapes]
