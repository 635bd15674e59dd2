"""Where to cut: the first entry that stays verbatim. Legal cuts are the starts of rounds."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence

import msgspec

from sessions_app.engine.calibration import NONE, Calibration
from sessions_app.engine.policy import Policy
from sessions_app.engine.rounds import Links, Round, Starts, link, messages_of_round, pending, rounds_of
from sessions_app.engine.shapes import EntryShape
from sessions_app.engine.terms import Kind, Role, SkipReason

MANUAL_KEEP_FRACTION = 0.25
"""Of the signal: a person who asks on a small session wants something to happen."""

FEWEST_ROUNDS = 3


class Boundary(msgspec.Struct, frozen=True, kw_only=True):
    """A legal cut. Entries before `index` are folded, but for `carried`; that and all later ones stay verbatim."""

    index: int
    source_id: str
    carried: tuple[int, ...]  # entries before the cut that stay verbatim: the user message of the turn that it falls into
    pinned: tuple[int, ...] = ()  # entries before the cut that stay because somebody pinned them
    folded: int  # entries that a block replaces
    kept: int  # entries that stay, carried ones included
    kept_tokens: int
    folded_tokens: int
    starts_turn: bool  # it stands at a user message


class IllegalBoundary(ValueError):  # noqa: N818  it says what is the matter with the boundary
    """A boundary that a person asked for would break the history. The text says what it would split."""


def keep_budget(policy: Policy, window: int, signal_tokens: int, *, manual: bool, calibration: Calibration = NONE) -> int:
    """How much may stay verbatim, as the estimate of entries."""
    budget = int(policy.keep_recent_fraction * policy.trigger_tokens(window))
    return calibration.estimate(min(budget, int(MANUAL_KEEP_FRACTION * signal_tokens)) if manual else budget)


def choose(
    shapes: Sequence[EntryShape],
    *,
    keep_tokens: int,
    floor_tokens: int = 0,
    protected_messages: int = 0,
    wanted: int | None = None,
    force: bool = False,
    midway: bool = False,
    pinned: Collection[int] = (),
    links: Links | None = None,
) -> Boundary | SkipReason:
    """The cut of a history, or of its tail, or the reason why there is none. Linear.

    It is the earliest user message whose suffix fits `keep_tokens`; if none fits, the earliest assistant step after
    the last user message that does, with that user message carried; if none does, the latest legal one. Never past a
    pending call, never into the last `protected_messages` messages, never the last round.

    `floor_tokens`: what the block will need at least; folding no more than that would not shrink the view.
    `force` ignores both budgets, never legality. `wanted` is a boundary that a person asked for: it is validated and
    never moved; protection and budgets do not apply to it. Raises `IllegalBoundary`. `midway`: the shapes are a tail
    that begins anywhere, not at a legal cut; no cut may then leave a result behind whose call lies before them.
    `pinned`: indexes of entries that stay, wherever the cut falls. `links`: of these shapes, where they are known.
    """
    links = links or link(shapes, midway=midway)
    if 1 not in links.sent:
        return SkipReason.EMPTY_SESSION
    if wanted is not None:
        return _validate(shapes, links, rounds_of(links), wanted, pinned)
    starts = links.round_starts
    if len(starts.firsts) < FEWEST_ROUNDS:
        return SkipReason.FEWER_THAN_THREE_ROUNDS
    keep_tokens = 0 if force else keep_tokens
    if links.sums[-1] <= keep_tokens:
        return SkipReason.NOTHING_TO_FOLD
    last = _last_allowed(links, starts, protected_messages)
    if last < 1:
        return SkipReason.NO_LEGAL_BOUNDARY
    chosen = _pick(links, starts, last, keep_tokens)
    boundary = _boundary(shapes, links, shapes[starts.firsts[chosen]].index, pinned, starts_turn=starts.are_users[chosen])
    if not boundary.folded:
        return SkipReason.NOTHING_TO_FOLD
    if not force and boundary.folded_tokens <= floor_tokens:
        return SkipReason.WOULD_NOT_SHRINK
    return boundary


def latest_cut(shapes: Sequence[EntryShape], protected_messages: int) -> int:
    """Index of the latest entry before which a cut may stand: what comes after it is protected, or waits for a result."""
    links = link(shapes)
    starts = links.round_starts
    return links.indexes[starts.firsts[_last_allowed(links, starts, protected_messages)]] if starts.firsts else 0


def _last_allowed(links: Links, starts: Starts, protected_messages: int) -> int:
    """The number of the latest round that a cut may stand before."""
    last = len(starts.firsts) - 1
    messages = messages_of_round(links, starts, last)
    while last > 0 and messages < protected_messages:
        last -= 1
        messages += messages_of_round(links, starts, last)
    waiting = pending(links)
    return min(last, bisect_right(starts.firsts, waiting[0]) - 1) if waiting else last


def _pick(links: Links, starts: Starts, last: int, keep_tokens: int) -> int:
    """The number of the round to cut before, from 1 to `last`. All rounds together exceed the budget."""
    # Sums only grow, so that one search finds from where on the rest fits.
    fits_from = bisect_left(starts.firsts, links.sums[-1] - keep_tokens, key=links.sums.__getitem__)
    turn = next((place for place in range(fits_from, last + 1) if starts.are_users[place]), None)
    # No turn fits: so what fits first is a step of the last one.
    return min(fits_from, last) if turn is None else turn


def _boundary(shapes: Sequence[EntryShape], links: Links, index: int, pinned: Collection[int], *, starts_turn: bool) -> Boundary:
    cut = index - shapes[0].index
    carried = () if starts_turn else turn_message(shapes, cut)
    stays = (*carried, *(pins := [position for position in _pins(shapes, pinned, cut) if position not in carried]))
    stays_tokens = sum(shapes[position].tokens for position in stays)
    system = [shapes[position].tokens for position in links.system[: bisect_left(links.system, cut)]]
    return Boundary(
        index=index,
        source_id=shapes[cut].source_id,
        carried=tuple(shapes[position].index for position in carried),
        pinned=tuple(shapes[position].index for position in pins),
        folded=links.sent.count(1, 0, cut) - len(system) - len(stays),
        kept=links.sent.count(1, cut) + len(stays),
        kept_tokens=links.sums[-1] - links.sums[cut] + stays_tokens,
        folded_tokens=links.sums[cut] - sum(system) - stays_tokens,
        starts_turn=starts_turn,
    )


def _pins(shapes: Sequence[EntryShape], pinned: Collection[int], cut: int) -> list[int]:
    """Positions of the pinned entries before the cut. System entries are counted apart, pinned or not."""
    positions = sorted(index - shapes[0].index for index in pinned)
    return [place for place in positions if 0 <= place < cut and shapes[place].is_sent and shapes[place].role is not Role.SYSTEM]


def turn_message(shapes: Sequence[EntryShape], cut: int) -> tuple[int, ...]:
    """Positions of the rows of the last user message before the cut."""
    position = next((position for position in range(cut - 1, -1, -1) if shapes[position].is_user_message), None)
    if position is None:
        return ()
    key = shapes[position].message_key
    first = position
    while key and first > 0 and shapes[first - 1].is_user_message and shapes[first - 1].message_key == key:
        first -= 1
    return tuple(range(first, position + 1))


def _validate(
    shapes: Sequence[EntryShape], links: Links, rounds: Sequence[Round], wanted: int, pinned: Collection[int]
) -> Boundary | SkipReason:
    offset = shapes[0].index
    if not offset <= wanted <= shapes[-1].index:
        raise IllegalBoundary(f"Entry {wanted} is not in the range that can be folded ({offset} to {shapes[-1].index}).")
    if offset < wanted <= offset + links.stray_reach:
        raise IllegalBoundary(f"A cut at entry {wanted} would leave a result behind whose call was folded earlier.")
    pending = next((round_ for round_ in rounds if round_.is_pending), None)
    if pending is not None and wanted > pending.head:
        position, call_id = next(call for call in links.unanswered if call[0] > links.last_user)
        raise IllegalBoundary(
            f"The call {call_id} (entry {shapes[position].index}) has no result yet: a cut at entry {wanted} would separate them."
        )
    round_ = rounds[bisect_left(rounds, wanted + 1, key=lambda round_: round_.first) - 1]
    if wanted > round_.head:
        raise IllegalBoundary(_what_it_splits(shapes, round_, wanted))
    boundary = _boundary(shapes, links, wanted, pinned, starts_turn=round_.starts_turn)
    return boundary if boundary.folded else SkipReason.NOTHING_TO_FOLD


def _what_it_splits(shapes: Sequence[EntryShape], round_: Round, wanted: int) -> str:
    offset = shapes[0].index
    calls: dict[str, int] = {}
    for shape in shapes[round_.first - offset : round_.last + 1 - offset]:
        if not shape.is_sent:
            continue
        if shape.kind is Kind.CALL and shape.index < wanted:
            calls.update(dict.fromkeys(shape.call_ids, shape.index))
        if shape.kind is Kind.RESULT and shape.index >= wanted:
            for call_id in shape.call_ids:
                if call_id in calls:
                    return (
                        f"A cut at entry {wanted} would split the call {call_id} (entry {calls[call_id]}) "
                        f"from its result (entry {shape.index}). A cut at entry {round_.first} would not."
                    )
    return f"Entry {wanted} lies inside the message that starts at entry {round_.head}: a cut there would split it."
