"""What a compaction would do, before anybody asks for it: the plan that the attempt makes, from stored sums and a short tail."""

import math
import uuid
from dataclasses import dataclass

import msgspec

from sessions_app.engine import chunks as packing
from sessions_app.engine.boundary import Boundary, keep_budget
from sessions_app.engine.entries import Checkpoint, Segment
from sessions_app.engine.explanations import EXPLANATIONS
from sessions_app.engine.plan import block_budget
from sessions_app.engine.rounds import group_rounds
from sessions_app.engine.terms import SegmentKind, SkipReason
from sessions_app.models import Session
from sessions_app.providers.registry import summarisers_for
from sessions_app.selectors import cuts, plans

MAX_INSTRUCTIONS_CHARS = 2_000
MAX_PACKED = 5_000
"""Beyond so many entries to be folded the number of chunks is worked out from their tokens."""


@dataclass(frozen=True)
class CompactPreview:
    """Numbers of the plan, in entries and estimated tokens; or `refusal`, in words, with everything else at its default."""

    refusal: str = ""
    boundary_index: int = 0
    folded: int = 0
    folded_tokens: int = 0
    kept: int = 0
    kept_tokens: int = 0
    carried: tuple[int, ...] = ()
    pinned: int = 0  # entries before the boundary that stay because they are pinned
    excluded: int = 0  # entries that are not sent
    view_tokens: int = 0
    view_after: int = 0
    chunk_count: int = 0
    is_exact: bool = True  # False: the chunks are worked out from tokens, since there are too many entries to pack
    generation: int | None = None
    profile: str = ""
    profile_source: str = ""
    summariser: str = ""

    @property
    def folded_width(self) -> int:
        """The folded part of a bar of 1000, by tokens."""
        return round(1000 * self.folded_tokens / max(1, self.folded_tokens + self.kept_tokens))

    @property
    def kept_width(self) -> int:
        return 1000 - self.folded_width


def compact_preview(session: Session) -> CompactPreview:
    """The plan of a manual compaction as it would be made now.

    No text is read, and of the shapes only those around the cut: the time that it takes does not grow with the history.
    """
    resolved = plans.effective_policy(session)
    policy = resolved.policy
    chain = plans.load_chain(session)
    previous = chain[-1] if chain else None
    cut = cuts.manual_cut(session.pk, previous, policy, keep_budget(policy, session.window, session.signal_tokens or 0, manual=True))
    if isinstance(cut, SkipReason):
        return CompactPreview(refusal=EXPLANATIONS[cut])
    summariser = summarisers_for(policy)[0]
    system, system_tokens = cuts.leading_system(session.pk)
    kept_tokens = cut.kept_tokens + system_tokens
    fold = _fold(session.pk, previous, cut, kept_tokens, summariser.window, policy.max_summary_calls)
    block_tokens = block_budget(policy, session.window, fold.tokens, kept_tokens, manual=True)
    view_tokens = plans.view_tokens(session, previous)
    return CompactPreview(
        boundary_index=cut.index,
        folded=fold.entries,
        folded_tokens=fold.tokens,
        kept=cut.kept + system,
        kept_tokens=kept_tokens,
        carried=cut.carried,
        pinned=len(cut.pinned),
        excluded=len(previous.excluded) if previous else 0,
        view_tokens=view_tokens,
        view_after=min(view_tokens, kept_tokens + block_tokens),
        chunk_count=fold.chunks,
        is_exact=fold.is_exact,
        generation=(previous.generation or None) if previous else None,
        profile=policy.profile,
        profile_source=str(resolved.sources.get("profile", "default")),
        summariser=summariser.name,
    )


@dataclass(frozen=True)
class _Fold:
    """What leaves the view: entries, their tokens with those of the block before, and the chunks that they make."""

    entries: int
    tokens: int
    chunks: int
    is_exact: bool


def _fold(session_id: uuid.UUID, previous: Checkpoint | None, cut: Boundary, kept_tokens: int, window: int, max_calls: int) -> _Fold:
    places = _places_before(previous, cut.index, cuts.after_system(session_id))
    replaced = plans.synthetic_tokens(previous)
    if sum(last - first + 1 for first, last in places) <= MAX_PACKED:
        shapes = [shape for first, last in places for shape in plans.load_shapes(session_id, first, last)]
        stays = {*cut.carried, *cut.pinned, *(previous.excluded if previous else ())}
        folded = [shape for shape in shapes if shape.is_sent and shape.index not in stays]
        tokens = sum(shape.tokens for shape in folded) + replaced
        return _Fold(len(folded), tokens, len(packing.pack(group_rounds(folded), window, max_calls)), is_exact=True)
    left = sum(first <= index <= last for index in (previous.excluded if previous else ()) for first, last in places)
    entries = sum(cuts.count_sent(session_id, first, last) for first, last in places) - len({*cut.carried, *cut.pinned}) - left
    # What is folded loses its placeholders too: a cleared result counts with the size that it had.
    held = msgspec.structs.replace(previous, cleared=frozenset()) if previous else None
    tokens = plans.entry_tokens(session_id, held) - kept_tokens
    chunk_tokens = max(1, min(int(window * packing.WINDOW_SHARE), packing.CHUNK_TOKENS))
    return _Fold(entries, tokens + replaced, math.ceil(tokens / chunk_tokens), is_exact=False)


def _places_before(previous: Checkpoint | None, cut: int, first: int) -> list[tuple[int, int]]:
    """What of a view lies from entry `first` on and before the cut: ranges of indexes, inclusive, apart and in order."""
    segments = previous.segments if previous else (Segment(kind=SegmentKind.RANGE, first=0),)
    held = []
    for segment in segments:
        if segment.first is not None:
            last = segment.first if segment.kind is SegmentKind.ENTRY else cut if segment.last is None else segment.last
            held.append((max(segment.first, first), min(last, cut - 1)))
    places: list[tuple[int, int]] = []
    for start, end in sorted(held):
        if start > end:
            continue
        if places and start <= places[-1][1] + 1:
            places[-1] = (places[-1][0], max(end, places[-1][1]))
        else:
            places.append((start, end))
    return places
