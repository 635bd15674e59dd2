"""The plan of an attempt: where it cuts, what it folds, in which calls, within which budget. No text is read."""

from collections.abc import Collection, Iterable, Sequence
from itertools import takewhile
from typing import NamedTuple

import msgspec

from sessions_app.engine import boundary as boundaries
from sessions_app.engine import chunks as packing
from sessions_app.engine.block import SUMMARY_SHARE
from sessions_app.engine.boundary import Boundary
from sessions_app.engine.calibration import NONE, Calibration
from sessions_app.engine.chunks import Chunk
from sessions_app.engine.clearing import PLACEHOLDER_TOKENS
from sessions_app.engine.counting import ENTRY_OVERHEAD, estimate_text
from sessions_app.engine.entries import Checkpoint, Segment, SyntheticMessage
from sessions_app.engine.policy import Policy
from sessions_app.engine.rounds import Links, Stretches, group_rounds, link, stretches_before, stretches_of
from sessions_app.engine.shapes import EntryShape, in_view
from sessions_app.engine.terms import Kind, Role, SegmentKind, SkipReason

LEAST_BLOCK_TOKENS = 500
"""A block under this cannot hold its own frame and eight headings."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """`span`: indexes of the entries that leave the view. `kept_tokens`: everything that stays, system entries included."""

    boundary_index: int
    boundary_source_id: str
    system_last: int | None  # index of the last of the leading system entries, None when there are none
    system_entries: int  # how many of them are sent
    carried: tuple[int, ...]
    pinned: tuple[int, ...]  # entries before the boundary that stay because somebody pinned them
    excluded: tuple[int, ...]  # entries before the boundary that are not sent: not folded either, so that they can come back
    span: frozenset[int]
    span_tokens: int  # of these entries and of the previous block: what the new block replaces
    kept: int
    kept_tokens: int
    tokens_before: int
    block_tokens: int  # budget of the whole block
    summary_tokens: int  # the summary's share of it
    chunks: tuple[Chunk, ...]

    def segments(self, block: str) -> tuple[Segment, ...]:
        """The view: system entries, the block, what was not folded, and everything from the boundary on."""
        unfolded = sorted({*self.carried, *self.pinned, *self.excluded})
        system = () if self.system_last is None else (Segment(kind=SegmentKind.RANGE, first=0, last=self.system_last),)
        return (
            *system,
            Segment(kind=SegmentKind.SYNTHETIC, payload=SyntheticMessage(role=Role.USER, text=block)),
            *(Segment(kind=SegmentKind.ENTRY, first=index) for index in unfolded),
            Segment(kind=SegmentKind.RANGE, first=self.boundary_index),
        )


def view_tokens(shapes: Sequence[EntryShape], checkpoint: Checkpoint | None) -> int:
    """Estimated tokens of a view: its entries, and the messages that a plan adds itself. One pass."""
    held = in_view(shapes, checkpoint)
    cleared = checkpoint.cleared if checkpoint else frozenset()
    sizes = [PLACEHOLDER_TOKENS if shape.index in cleared else shape.tokens for shape in held] if cleared else _sizes(held)
    return sum(sizes) + added_tokens(checkpoint)


def _sizes(shapes: Iterable[EntryShape]) -> list[int]:
    return [shape.tokens for shape in shapes]


def added_tokens(checkpoint: Checkpoint | None) -> int:
    """Estimated tokens of the messages that a plan adds itself."""
    added = [segment.payload for segment in checkpoint.segments if segment.payload] if checkpoint else []
    return sum(estimate_text(message.text) + ENTRY_OVERHEAD for message in added)


def sizes(shapes: Sequence[EntryShape], checkpoint: Checkpoint | None) -> dict[str, int]:
    """Estimated tokens of each part of a view, by the words for it. One pass."""
    found = {"the system prompt": 0, "pinned entries": 0, "the compacted block": added_tokens(checkpoint), "calls and their results": 0}
    found["messages"] = 0
    cleared, pinned = (checkpoint.cleared, checkpoint.pinned) if checkpoint else (frozenset(), frozenset())
    for shape in in_view(shapes, checkpoint):
        if shape.role is Role.SYSTEM:
            part = "the system prompt"
        elif shape.index in pinned:
            part = "pinned entries"
        else:
            part = "calls and their results" if shape.kind in (Kind.CALL, Kind.RESULT) else "messages"
        found[part] += PLACEHOLDER_TOKENS if shape.index in cleared else shape.tokens
    return found


def make(
    shapes: Sequence[EntryShape],
    *,
    previous: Checkpoint | None,
    policy: Policy,
    window: int,
    summariser_window: int,
    signal_tokens: int,
    manual: bool,
    force: bool,
    wanted: int | None = None,
    calibration: Calibration = NONE,
) -> Plan | SkipReason:
    """The plan for a history of which `shapes` is the whole, and `previous` the checkpoint in force.

    What that one's view still holds is folded or carried again; what it says is pinned stays, what it says is excluded
    counts as off the branch (`overrides.without`). Raises `IllegalBoundary` where `wanted` splits a round. Its numbers are
    estimates; `calibration` tells how much of them the policy's budgets allow.
    """
    system_last = _system_last(shapes)
    after_system = 0 if system_last is None else system_last + 1
    start = max(previous.boundary_index if previous else 0, after_system)
    tokens_before = view_tokens(shapes, previous)
    pinned = [shapes[index] for index in previous.pinned if index < len(shapes)] if previous else []
    floor = sum(_sizes(shape for shape in (*shapes[:after_system], *pinned) if shape.is_sent))
    foldable = shapes[start:]
    links = link(foldable)
    chosen = boundaries.choose(
        foldable,
        links=links,
        keep_tokens=_keep_tokens(policy, window, signal_tokens, tokens_before, floor, calibration, manual=manual),
        floor_tokens=LEAST_BLOCK_TOKENS,
        protected_messages=policy.protected_messages,
        wanted=wanted,
        force=force,
        pinned=previous.pinned if previous else (),
    )
    if isinstance(chosen, SkipReason):
        return chosen
    budgets = _Budgets(policy, window, summariser_window, calibration, manual or force)
    plan = _plan(shapes, links, chosen, previous, system_last, tokens_before, budgets)
    return plan if plan.block_tokens >= LEAST_BLOCK_TOKENS else SkipReason.NON_HISTORY_ENVELOPE_EXHAUSTS_BUDGET


class _Budgets(NamedTuple):
    """What the parts of a plan are measured by."""

    policy: Policy
    window: int
    summariser_window: int
    calibration: Calibration
    is_manual: bool


def _plan(
    shapes: Sequence[EntryShape],
    links: Links,  # of the shapes that may be folded
    chosen: Boundary,
    previous: Checkpoint | None,
    system_last: int | None,
    tokens_before: int,
    budgets: "_Budgets",
) -> Plan:
    """The plan of a cut, whatever is left for its block."""
    after_system = 0 if system_last is None else system_last + 1
    carried = chosen.carried or _carried_again(shapes, previous, chosen.index)
    pinned, excluded = _decided(shapes, previous, after_system, chosen.index)
    stays = {*carried, *pinned, *range(after_system)}
    folded, kept = _divide(shapes, previous, chosen.index, stays)
    kept_tokens, span_tokens = sum(_sizes(kept)), sum(_sizes(folded)) + added_tokens(previous)
    policy = budgets.policy
    block_tokens = block_budget(policy, budgets.window, span_tokens, kept_tokens, manual=budgets.is_manual, calibration=budgets.calibration)
    return Plan(
        boundary_index=chosen.index,
        boundary_source_id=chosen.source_id,
        system_last=system_last,
        system_entries=sum(shape.is_sent for shape in shapes[:after_system]),
        carried=carried,
        pinned=pinned,
        excluded=excluded,
        span=frozenset([shape.index for shape in folded]),
        span_tokens=span_tokens,
        kept=len(kept),
        kept_tokens=kept_tokens,
        tokens_before=tokens_before,
        block_tokens=block_tokens,
        summary_tokens=min(policy.summary_max_tokens, int(block_tokens * SUMMARY_SHARE)),
        chunks=tuple(packing.pack(_rounds(folded, links, chosen.index), budgets.summariser_window, policy.max_summary_calls)),
    )


def _rounds(folded: Sequence[EntryShape], links: Links, cut: int) -> Stretches:
    """The rounds that are folded, with the sizes that a summariser is sent."""
    sent = packing.as_sent(folded)
    if folded and (first := links.indexes[0]) == folded[0].index and cut - first == len(folded):
        # All that lies before the cut: where its rounds begin is known.
        known = stretches_before(links, len(folded), _sizes(sent))
        if known is not None:
            return known
    return stretches_of(group_rounds(sent))


def tail_start(shapes: Sequence[EntryShape], policy: Policy, window: int, calibration: Calibration = NONE) -> int:
    """Index of the first of the latest entries that an automatic compaction leaves alone, wherever it may cut."""
    left = boundaries.keep_budget(policy, window, 0, manual=False, calibration=calibration)
    position = len(shapes)
    while position and (left := left - (shapes[position - 1].tokens if shapes[position - 1].is_sent else 0)) >= 0:
        position -= 1
    return min(position, boundaries.latest_cut(shapes, policy.protected_messages))


def _keep_tokens(
    policy: Policy, window: int, signal_tokens: int, tokens_before: int, floor_tokens: int, calibration: Calibration, *, manual: bool
) -> int:
    """How much of the view may stay, by estimate, beside the `floor_tokens` that never leave it."""
    keep_tokens = boundaries.keep_budget(policy, window, signal_tokens, manual=manual, calibration=calibration)
    if manual:
        return keep_tokens
    if calibration.prompts:
        # Neither tools nor pins can be folded: where they are much, the tail gives way, so that the view comes down to its target.
        between = calibration.estimate(policy.target_tokens(window)) - keep_tokens
        for_block = max(min(_wanted_block(policy), between), LEAST_BLOCK_TOKENS)
        return max(0, min(keep_tokens, calibration.view_within(policy.target_tokens(window)) - for_block - floor_tokens))
    if signal_tokens > tokens_before:
        # What fills the view is more than its estimate says: kept by estimate, all of it might stay.
        return keep_tokens * tokens_before // signal_tokens
    return keep_tokens


def _divide(
    shapes: Sequence[EntryShape], previous: Checkpoint | None, cut: int, stays: Collection[int]
) -> tuple[list[EntryShape], list[EntryShape]]:
    """What leaves the view, and what stands in the next one."""
    folded = in_view(shapes[:cut], previous)
    if stays:
        folded = [shape for shape in folded if shape.index not in stays]
    return folded, [shape for shape in (*(shapes[index] for index in sorted(stays)), *shapes[cut:]) if shape.is_sent]


def _decided(shapes: Sequence[EntryShape], previous: Checkpoint | None, first: int, cut: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What is pinned and what is excluded of the entries that might be folded."""
    if previous is None:
        return (), ()
    pinned = (index for index in sorted(previous.pinned) if first <= index < cut and shapes[index].is_sent)
    return tuple(pinned), tuple(index for index in sorted(previous.excluded) if first <= index < cut)


def _system_last(shapes: Sequence[EntryShape]) -> int | None:
    leading = list(takewhile(lambda shape: shape.role in (Role.SYSTEM, Role.NOTICE), shapes))
    return max((shape.index for shape in leading if shape.role is Role.SYSTEM), default=None)


def _carried_again(shapes: Sequence[EntryShape], previous: Checkpoint | None, cut: int) -> tuple[int, ...]:
    """What the previous view carried, when the cut falls inside that same turn once more."""
    if previous is None:
        return ()
    if any(shape.is_user_message for shape in shapes[previous.boundary_index : cut]):
        return ()
    opens = next((shape for shape in shapes[cut:] if shape.is_user_message or (shape.is_sent and shape.role is Role.ASSISTANT)), None)
    if opens is None or opens.is_user_message:
        return ()
    return tuple(position for position in boundaries.turn_message(shapes, cut) if previous.holds(position))


def block_budget(policy: Policy, window: int, span_tokens: int, kept_tokens: int, *, manual: bool, calibration: Calibration = NONE) -> int:
    """Tokens of the block: by default what its summary is a fit share of, more for a long span, less for a short one.

    It never takes more than half of what it replaces, and, when nobody asked for it, no more than the target leaves.
    """
    target = calibration.view_within(policy.target_tokens(window))
    budget = min(max(_wanted_block(policy), span_tokens // 10), max(span_tokens // 2, LEAST_BLOCK_TOKENS), target)
    return max(budget, LEAST_BLOCK_TOKENS) if manual else min(budget, target - kept_tokens)


def _wanted_block(policy: Policy) -> int:
    return int(policy.summary_max_tokens / SUMMARY_SHARE)
