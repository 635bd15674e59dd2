"""What a compaction would do, before anybody asks for it: the plan that the attempt makes, from stored sums and a short tail."""

import math
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from sessions_app.engine import calls, counting
from sessions_app.engine import chunks as packing
from sessions_app.engine.block import SUMMARY_SHARE
from sessions_app.engine.boundary import Boundary, IllegalBoundary, keep_budget
from sessions_app.engine.calibration import Calibration
from sessions_app.engine.calls import Calls, Material
from sessions_app.engine.chunks import Chunk
from sessions_app.engine.entries import Checkpoint, Segment
from sessions_app.engine.explanations import EXPLANATIONS
from sessions_app.engine.plan import block_budget
from sessions_app.engine.policy import Policy
from sessions_app.engine.rounds import group_rounds, stretches_of
from sessions_app.engine.steps import Summariser, SummaryRequest
from sessions_app.engine.terms import Profile, SegmentKind, SkipReason
from sessions_app.models import Compaction, Entry, Session
from sessions_app.providers.registry import is_usable, summarisers_for
from sessions_app.selectors import cuts, plans

MAX_INSTRUCTIONS_CHARS = 2_000
MAX_PACKED = 5_000
"""Beyond so many entries to be folded the chunks are worked out from their tokens, and from a sample of as many entries."""

STRETCHES = 20
"""Of the sample, evenly apart."""

BARS = 200
BAR_HEIGHT = 48
BESIDE_FORCE = "force"
"""The alternative that folds as much as is legal; the others are the profiles."""


@dataclass(frozen=True)
class PreviewOptions:
    """What a person asks for, as far as it changes the plan. Empty and None: as the policy says."""

    profile: str = ""
    boundary: int | None = None
    force: bool = False
    summariser: str = ""


@dataclass(frozen=True)
class Cuts:
    """The legal cuts around the one that is shown: the next on either side, and the next that start a turn."""

    earlier: int | None = None
    later: int | None = None
    earlier_turn: int | None = None
    later_turn: int | None = None


NO_CALLS = Calls()


@dataclass(frozen=True)
class CompactPreview:
    """Numbers of the plan, in entries and estimated tokens; or `refusal`, in words, with everything else at its default."""

    refusal: str = ""
    cuts: Cuts = Cuts()
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
    request_after: int | None = None  # the next request as its provider would count it; None where too little was measured
    chunk_count: int = 0
    calls: Calls = NO_CALLS  # of the summariser
    is_exact: bool = True  # False: chunks and calls are worked out from tokens, since there are too many entries to pack
    generation: int | None = None
    profile: str = ""
    profile_source: str = ""
    protected: int = 0  # latest messages that a suggested boundary leaves alone
    summariser: str = ""
    asks_model: bool = False


@dataclass(frozen=True)
class Bar:
    """A stretch of entries in a strip of 1000 by 48: as high as its tokens."""

    x: int
    width: int
    height: int
    is_folded: bool

    @property
    def y(self) -> int:
        return BAR_HEIGHT - self.height


def _request_after(session: Session, known: Calibration, before: int, after: int) -> int | None:
    return None if not known.prompts or session.signal_tokens is None else known.after(session.signal_tokens, before, after)


def compact_preview(session: Session, options: PreviewOptions = PreviewOptions()) -> CompactPreview:
    """The plan of a manual compaction as it would be made now.

    No text is read, and of the shapes only those around the cut: the time that it takes does not grow with the history.
    """
    resolved = plans.effective_policy(session)
    policy = _with_options(resolved.policy, options)
    chain = plans.load_chain(session)
    previous = chain[-1] if chain else None
    try:
        cut = _cut(session, previous, policy, options)
    except IllegalBoundary as error:
        near = _cuts(session, previous, options.boundary or 0)
        return CompactPreview(refusal=f"{error}{_nearest(near)}", cuts=near)
    if isinstance(cut, SkipReason):
        return CompactPreview(refusal=EXPLANATIONS[cut])
    chain_of_summarisers = summarisers_for(policy)
    summariser = _asked(policy, chain_of_summarisers)
    system, system_tokens = cuts.leading_system(session.pk)
    kept_tokens = cut.kept_tokens + system_tokens
    window = chain_of_summarisers[0].window  # by which the attempt packs its chunks, whoever answers
    fold = _fold(session.pk, previous, cut, kept_tokens, window, policy.max_summary_calls)
    known = plans.calibration_of(session)
    block_tokens = block_budget(policy, session.window, fold.tokens, kept_tokens, manual=True, calibration=known)
    view_tokens = plans.view_tokens(session, previous)
    return CompactPreview(
        cuts=_cuts(session, previous, cut.index),
        boundary_index=cut.index,
        folded=fold.entries,
        folded_tokens=fold.tokens,
        kept=cut.kept + system,
        kept_tokens=kept_tokens,
        carried=cut.carried,
        pinned=len(cut.pinned),
        excluded=len(previous.excluded) if previous else 0,
        view_tokens=view_tokens,
        view_after=(view_after := min(view_tokens, kept_tokens + block_tokens)),
        request_after=_request_after(session, known, view_tokens, view_after),
        chunk_count=len(fold.material.chunks),
        calls=_calls(session, policy, fold.material, window, min(policy.summary_max_tokens, int(block_tokens * SUMMARY_SHARE))),
        is_exact=fold.is_exact,
        generation=(previous.generation or None) if previous else None,
        profile=policy.profile,
        profile_source="this request" if options.profile else str(resolved.sources.get("profile", "default")),
        protected=policy.protected_messages,
        summariser=summariser.name,
        asks_model=summariser.is_model,
    )


def _asked(policy: Policy, chain: Sequence[Summariser]) -> Summariser:
    """The first that can be asked here: one without a key is passed over."""
    return next((one for name, one in zip(policy.summarisers, chain, strict=True) if is_usable(name)), chain[0])


def _calls(session: Session, policy: Policy, found: Material, window: int, summary_tokens: int) -> Calls:
    in_force = session.active_console_id or session.active_agent_id
    summaries = Compaction.objects.filter(pk=in_force).values_list("summary", flat=True) if in_force else ()
    earlier = next(iter(summaries), "")
    asked = SummaryRequest(profile=policy.profile, standing_instructions=policy.standing_instructions, max_tokens=summary_tokens)
    return calls.foresee(found, asked, window=window, earlier_tokens=counting.estimate_text(earlier))


def beside(options: PreviewOptions, alternative: str) -> PreviewOptions:
    """The options of an alternative to these: a profile, or as much as is legal. A boundary that was asked for is not kept."""
    if alternative == BESIDE_FORCE:
        return PreviewOptions(profile=options.profile, force=True, summariser=options.summariser)
    return PreviewOptions(profile=alternative, summariser=options.summariser)


def strip(session: Session, boundary_index: int) -> tuple[Bar, ...]:
    """The whole history as at most 200 bars, as high as their tokens. One query, whatever its length."""
    count = session.entry_count
    bars = min(BARS, count)
    if not bars:
        return ()
    places = [count * place // bars for place in range(bars)]
    rows = Entry.objects.filter(session_id=session.pk, index__in=[*places, count - 1]).order_by("index")
    sums = dict(rows.values_list("index", "prefix_tokens"))
    ends = [*places[1:], count - 1]
    sizes = [max(0, sums.get(end, 0) - sums.get(start, 0)) / max(1, end - start) for start, end in zip(places, ends, strict=True)]
    usual = sorted(sizes)[int(len(sizes) * 0.95)] or 1
    return tuple(
        Bar(
            x=1000 * place // bars,
            width=max(1, 1000 * (place + 1) // bars - 1000 * place // bars - 1),
            height=max(2, min(BAR_HEIGHT, round(BAR_HEIGHT * math.sqrt(size / usual)))),  # so that short entries show beside long ones
            is_folded=places[place] < boundary_index,
        )
        for place, size in enumerate(sizes)
    )


def _with_options(policy: Policy, options: PreviewOptions) -> Policy:
    if options.profile:
        policy = msgspec.structs.replace(policy, profile=Profile(options.profile))
    if options.summariser:
        others = [name for name in policy.summarisers if name != options.summariser]
        policy = msgspec.structs.replace(policy, summarisers=(options.summariser, *others))
    return policy


def _cut(session: Session, previous: Checkpoint | None, policy: Policy, options: PreviewOptions) -> Boundary | SkipReason:
    if options.boundary is not None:
        return cuts.wanted_cut(session.pk, previous, options.boundary)
    known = plans.calibration_of(session)
    budget = 0 if options.force else keep_budget(policy, session.window, session.signal_tokens or 0, manual=True, calibration=known)
    return cuts.manual_cut(session.pk, previous, policy, budget)


def _cuts(session: Session, previous: Checkpoint | None, at: int) -> Cuts:
    found = cuts.legal_cuts(session.pk, previous, at)
    turns = [index for index, starts_turn in found if starts_turn]
    every = [index for index, _ in found]
    return Cuts(
        earlier=max((index for index in every if index < at), default=None),
        later=min((index for index in every if index > at), default=None),
        earlier_turn=max((index for index in turns if index < at), default=None),
        later_turn=min((index for index in turns if index > at), default=None),
    )


def _nearest(near: Cuts) -> str:
    legal = [f"{index:,}" for index in (near.earlier, near.later) if index is not None]
    return (
        f" The nearest legal cuts are {' and '.join(legal)}."
        if len(legal) > 1
        else f" The nearest legal cut is {legal[0]}."
        if legal
        else ""
    )


@dataclass(frozen=True)
class _Fold:
    """What leaves the view: entries, their tokens with those of the block before, and what of them is read."""

    entries: int
    tokens: int
    material: Material
    is_exact: bool


def _fold(session_id: uuid.UUID, previous: Checkpoint | None, cut: Boundary, kept_tokens: int, window: int, max_calls: int) -> _Fold:
    places = _places_before(previous, cut.index, cuts.after_system(session_id))
    replaced = plans.synthetic_tokens(previous)
    if sum(last - first + 1 for first, last in places) <= MAX_PACKED:
        shapes = [shape for first, last in places for shape in plans.load_shapes(session_id, first, last)]
        stays = {*cut.carried, *cut.pinned, *(previous.excluded if previous else ())}
        folded = [shape for shape in shapes if shape.is_sent and shape.index not in stays]
        tokens = sum(shape.tokens for shape in folded) + replaced
        chunks = packing.pack(stretches_of(group_rounds(packing.as_sent(folded))), window, max_calls)
        return _Fold(len(folded), tokens, calls.material(folded, chunks), is_exact=True)
    left = sum(first <= index <= last for index in (previous.excluded if previous else ()) for first, last in places)
    entries = sum(cuts.count_sent(session_id, first, last) for first, last in places) - len({*cut.carried, *cut.pinned}) - left
    # What is folded loses its placeholders too: a cleared result counts with the size that it had.
    held = msgspec.structs.replace(previous, cleared=frozenset()) if previous else None
    tokens = plans.entry_tokens(session_id, held) - kept_tokens
    return _Fold(entries, tokens + replaced, _sampled(session_id, places, entries, tokens, window, max_calls), is_exact=False)


def _sampled(session_id: uuid.UUID, places: list[tuple[int, int]], entries: int, tokens: int, window: int, max_calls: int) -> Material:
    """What of many entries is read, by a sample: results are sent shortened, and how much that is differs from session to session."""
    first, last = places[0][0], places[-1][1]
    length = max(1, MAX_PACKED // STRETCHES)
    starts = [first + max(0, last + 1 - length - first) * place // (STRETCHES - 1) for place in range(STRETCHES)]
    shapes = [shape for start in starts for shape in plans.load_shapes(session_id, start, start + length - 1)]
    sample = [shape for shape in shapes if shape.is_sent and any(start <= shape.index <= end for start, end in places)]
    held = sum(shape.tokens for shape in sample)
    sent = tokens * sum(shape.tokens for shape in packing.as_sent(sample)) // held if held else tokens
    limit = packing.chunk_limit(window)
    most = packing.most_chunks(max_calls)
    count = max(1, math.ceil(sent / limit))
    surplus = math.ceil((count - most) * limit / packing.SURPLUS_TOKENS) if count > most else 0
    by_model = min(count, most)
    each = min(limit, sent // by_model)
    chunk, older = Chunk(first=first, last=last, tokens=each), Chunk(first=first, last=last, tokens=limit, is_surplus=True)
    frames = sum(map(calls.frame_tokens, sample)) * entries // max(1, len(sample))
    return Material(chunks=(*(older,) * surplus, *(chunk,) * by_model), frames=frames * by_model // count)


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
