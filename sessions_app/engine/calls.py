"""What an attempt will ask of its summariser, foreseen from its plan: how many calls, how much they read, what they may write."""

from collections.abc import Iterable, Sequence

import msgspec

from sessions_app.engine import chunks as packing
from sessions_app.engine import prompts
from sessions_app.engine.chunks import Chunk
from sessions_app.engine.counting import ENTRY_OVERHEAD
from sessions_app.engine.shapes import EntryShape
from sessions_app.engine.steps import SummaryRequest
from sessions_app.engine.terms import Kind

FRAME_TOKENS, CALL_FRAME_TOKENS, FENCE_TOKENS = 8, 12, 30
"""What a prompt writes around a text, a call and a result: whose it is, and that it is no instruction."""

PARTIAL_TOKENS = 6
"""What it writes before each partial summary."""

RECORDED_TOKENS = 300
"""About what the last call is told besides: the goal, what is done, what is open."""


class Calls(msgspec.Struct, frozen=True, kw_only=True):
    """Of an attempt in which every call is answered at once. Tokens by estimate; `written` is what the answers may come to at most."""

    count: int = 0
    read: int = 0
    written: int = 0


class Material(msgspec.Struct, frozen=True, kw_only=True):
    """The chunks of a plan, and what the frames of the entries in them come to. `surplus` of them, the oldest, no model is asked for."""

    chunks: tuple[Chunk, ...]
    frames: int = 0

    @property
    def surplus(self) -> int:
        return sum(chunk.is_surplus for chunk in self.chunks)


def material(folded: Iterable[EntryShape], chunks: Sequence[Chunk]) -> Material:
    """The material of a plan whose span is `folded`."""
    first = next((chunk.first for chunk in chunks if not chunk.is_surplus), 0)
    return Material(chunks=tuple(chunks), frames=sum(frame_tokens(shape) for shape in folded if shape.index >= first))


def frame_tokens(shape: EntryShape) -> int:
    """What a prompt writes around an entry, beyond what the entry's own number counts for its frame."""
    if shape.kind is Kind.THINKING:
        return 0  # none of it is sent
    around = FENCE_TOKENS if shape.kind is Kind.RESULT else CALL_FRAME_TOKENS if shape.kind is Kind.CALL else FRAME_TOKENS
    return around * max(1, len(shape.call_ids)) - ENTRY_OVERHEAD


def foresee(found: Material, asked: SummaryRequest, *, window: int, earlier_tokens: int = 0) -> Calls:
    """The calls that summarise this material.

    `asked` is any request of the attempt, for what all of them say: profile, instructions, and what an answer may have.
    `earlier_tokens` is the summary that the last call takes up.
    """
    by_model = [chunk for chunk in found.chunks if not chunk.is_surplus]
    fixed = prompts.sent_tokens(msgspec.structs.replace(asked, entries=(), partial_summaries=(), state=None, previous_summary=""))
    count = len(by_model)
    read = sum(chunk.tokens for chunk in by_model) + found.frames + count * fixed
    partials = [asked.max_tokens] * len(found.chunks)
    while len(partials) > 1:
        groups = packing.fold_groups(partials, window)
        read += len(groups) * fixed + sum(partials) + PARTIAL_TOKENS * len(partials)
        count += len(groups)
        partials = [asked.max_tokens] * len(groups)
    return Calls(count=count, read=read + earlier_tokens + RECORDED_TOKENS, written=count * asked.max_tokens)
