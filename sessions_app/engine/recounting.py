"""Counting a view anew by a vocabulary, before an attempt plans with it."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from sessions_app.engine.counting import ENTRY_OVERHEAD, estimate_part
from sessions_app.engine.entries import Checkpoint, Entry, Part
from sessions_app.engine.shapes import EntryShape, in_view
from sessions_app.engine.steps import ShouldStop, Stopped
from sessions_app.engine.terms import PartKind

AT_ONCE = 200
"""Entries between two questions whether to stop: a fraction of a second of counting."""


def recounted(
    shapes: Sequence[EntryShape],
    checkpoint: Checkpoint | None,
    load: Callable[[int, int], Iterator[Entry]],
    count: Callable[[str], int],
    should_stop: ShouldStop,
) -> list[EntryShape]:
    """The shapes of a whole history, those in the view of the checkpoint with the tokens that `count` finds in their texts.

    Reads the entries from the first to the last that stand in the view, once. Of a text that lies in a blob its beginning is
    counted, and tells how dense the rest is; pictures, documents and ciphertext are estimated as ever. Raises `Stopped`.
    """
    held = in_view(shapes, checkpoint)
    if not held:
        return list(shapes)
    wanted = {shape.index for shape in held}
    counted: dict[int, int] = {}
    for place, entry in enumerate(load(held[0].index, held[-1].index)):
        if place % AT_ONCE == 0 and (stop := should_stop()) is not None:
            raise Stopped(stop)
        if entry.index in wanted:
            counted[entry.index] = _tokens(entry, count)
    return [
        msgspec.structs.replace(shape, tokens=counted[shape.index]) if counted.get(shape.index, shape.tokens) != shape.tokens else shape
        for shape in shapes
    ]


def _tokens(entry: Entry, count: Callable[[str], int]) -> int:
    tokens = sum(_part_tokens(part, count) for part in entry.parts)
    return tokens + ENTRY_OVERHEAD if tokens else 0


def _part_tokens(part: Part, count: Callable[[str], int]) -> int:
    if part.kind is PartKind.IMAGE or part.encrypted or (part.kind is PartKind.DOCUMENT and not part.length):
        return estimate_part(part)
    name = count(part.name) if part.kind is PartKind.CALL else 0
    shown = count(part.text)
    return name + (-(-shown * part.chars // max(len(part.text), 1)) if part.chars else shown)
