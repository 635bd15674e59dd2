"""Where a manual compaction would cut, found in the end of a history: the cost does not grow with its length."""

import uuid
from collections.abc import Collection, Sequence

import msgspec
from django.db.models import Max, QuerySet

from sessions_app.engine import boundary, overrides
from sessions_app.engine.boundary import Boundary
from sessions_app.engine.entries import Checkpoint
from sessions_app.engine.plan import LEAST_BLOCK_TOKENS
from sessions_app.engine.policy import Policy
from sessions_app.engine.rounds import link, rounds_of
from sessions_app.engine.shapes import EntryShape
from sessions_app.engine.terms import Kind, Role, SkipReason
from sessions_app.models import Entry
from sessions_app.selectors import plans

TAIL_STEP = 400
"""Entries of the first tail in which a cut is looked for; each further one is four times longer."""


def manual_cut(session_id: uuid.UUID | str, previous: Checkpoint | None, policy: Policy, keep_tokens: int) -> Boundary | SkipReason:
    """The cut that the plan of a manual compaction makes, looked for in a tail that grows until it holds one or is the whole view.

    `carried`, `kept` and `kept_tokens` are those of the plan, but for the leading system entries; `folded` is of the tail alone.
    A call that was left open before the tail, in the turn that is still under way, is not seen: the attempt itself says so then.
    """
    start = previous.boundary_index if previous and previous.boundary_index else after_system(session_id)
    pinned, excluded = (previous.pinned, previous.excluded) if previous else (frozenset[int](), frozenset[int]())
    newest = Entry.objects.filter(session_id=session_id).aggregate(newest=Max("index"))["newest"]
    if newest is None:
        return SkipReason.EMPTY_SESSION
    length = TAIL_STEP
    while True:
        first = max(start, newest + 1 - length)
        is_whole = first == start
        if not is_whole and plans.tokens_between(session_id, first, None) <= keep_tokens:
            length *= 4
            continue
        chosen = boundary.choose(
            overrides.without(plans.load_shapes(session_id, first), excluded),
            keep_tokens=keep_tokens,
            floor_tokens=LEAST_BLOCK_TOKENS if is_whole else 0,
            protected_messages=policy.protected_messages,
            midway=not is_whole,
            pinned=pinned,
        )
        if isinstance(chosen, Boundary) and not is_whole:
            chosen = _with_request(session_id, chosen, start, excluded)
            if plans.tokens_between(session_id, start, None) - chosen.kept_tokens <= LEAST_BLOCK_TOKENS:
                length *= 4  # next to nothing lies before it: the whole view is short, and says why it can't be folded
                continue
        if isinstance(chosen, Boundary):
            return _with_pins(session_id, _carrying_again(session_id, chosen, previous), pinned, first)
        if is_whole:
            return chosen
        length *= 4


def view_start(session_id: uuid.UUID | str, previous: Checkpoint | None) -> int:
    """Index of the first entry that a compaction may fold: where the verbatim part of the view begins."""
    return previous.boundary_index if previous and previous.boundary_index else after_system(session_id)


def wanted_cut(session_id: uuid.UUID | str, previous: Checkpoint | None, wanted: int) -> Boundary:
    """The cut at an entry that somebody asked for, with the numbers that `manual_cut` gives. Raises `IllegalBoundary`."""
    start = view_start(session_id, previous)
    pinned, excluded = (previous.pinned, previous.excluded) if previous else (frozenset[int](), frozenset[int]())
    newest = Entry.objects.filter(session_id=session_id).aggregate(newest=Max("index"))["newest"] or 0
    if not start < wanted <= newest:
        where = f"from {start + 1:,} to {newest:,}" if start < newest else "behind the first, and there is none"
        raise boundary.IllegalBoundary(f"A boundary is the index of an entry {where}.")
    check_boundary(session_id, start, wanted)
    shapes = overrides.without(plans.load_shapes(session_id, max(start, wanted - TAIL_STEP), wanted + TAIL_STEP), excluded)
    head = next((shape for shape in shapes if shape.index >= wanted and shape.is_sent), None)
    after = [index for index in excluded if index >= wanted]
    chosen = Boundary(
        index=wanted,
        source_id=next(shape.source_id for shape in shapes if shape.index == wanted),
        carried=(),
        folded=0,
        kept=count_sent(session_id, wanted, newest) - len(after),
        kept_tokens=plans.tokens_between(session_id, wanted, None) - sum(plans.tokens_between(session_id, index, index) for index in after),
        folded_tokens=0,
        starts_turn=head is not None and head.is_user_message,
    )
    chosen = _carrying_again(session_id, _with_request(session_id, chosen, start, excluded), previous)
    return _with_pins(session_id, chosen, pinned, wanted)


def legal_cuts(session_id: uuid.UUID | str, previous: Checkpoint | None, around: int) -> list[tuple[int, bool]]:
    """(index, whether it starts a turn) of the legal cuts within some hundred entries of one, in order."""
    start = view_start(session_id, previous)
    first = max(start, around - TAIL_STEP)
    shapes = overrides.without(plans.load_shapes(session_id, first, around + TAIL_STEP), previous.excluded if previous else frozenset())
    if not shapes:
        return []
    links = link(shapes, midway=first > start)
    found = []
    for round_ in rounds_of(links):
        if round_.first > max(start, shapes[0].index + links.stray_reach):
            found.append((round_.first, round_.starts_turn))
        if round_.is_pending:
            break
    return found


def check_boundary(session_id: uuid.UUID | str, start: int, wanted: int) -> None:
    """Raises `IllegalBoundary` where a cut at entry `wanted` would break the view, whose verbatim part begins at `start`.

    Reads a stretch around the cut. Where that forbids it, a call or result outside may be why: then a longer one, at last the whole.
    """
    newest = Entry.objects.filter(session_id=session_id).aggregate(newest=Max("index"))["newest"] or 0
    reach = TAIL_STEP
    while True:
        first, last = max(start, wanted - reach), min(newest, wanted + reach)
        shapes = plans.load_shapes(session_id, first, last)
        try:
            boundary.choose(shapes, keep_tokens=0, wanted=wanted, midway=first > start)
        except boundary.IllegalBoundary:
            if (first, last) == (start, newest):
                raise
        else:
            if last == newest or not _is_answered_later(session_id, shapes, wanted, last):
                return
        reach *= 4


def _is_answered_later(session_id: uuid.UUID | str, shapes: Sequence[EntryShape], wanted: int, last: int) -> bool:
    """Whether a call before the cut has its result behind the stretch."""
    waiting = {call_id for position, call_id in link(shapes, midway=True).unanswered if shapes[position].index < wanted}
    return Entry.objects.filter(session_id=session_id, call_id__in=waiting, kind=Kind.RESULT, index__gt=last).exists()


def after_system(session_id: uuid.UUID | str) -> int:
    """Index after the leading system entries: they are never folded."""
    other = Entry.objects.filter(session_id=session_id).exclude(role__in=[Role.SYSTEM, Role.NOTICE]).order_by("index")
    return other.values_list("index", flat=True).first() or 0


def leading_system(session_id: uuid.UUID | str) -> tuple[int, int]:
    """How many system entries a history begins with, and their tokens."""
    end = after_system(session_id)
    return (count_sent(session_id, 0, end - 1), plans.tokens_between(session_id, 0, end - 1)) if end else (0, 0)


def count_sent(session_id: uuid.UUID | str, first: int, last: int) -> int:
    """How many entries from `first` to `last`, inclusive, may stand in a view."""
    rows = Entry.objects.filter(session_id=session_id, index__range=(first, last), off_branch=False)
    return rows.exclude(role=Role.NOTICE).order_by().count()


def _with_request(session_id: uuid.UUID | str, chosen: Boundary, start: int, excluded: Collection[int]) -> Boundary:
    """The cut with the user message of its turn, where that lies before the tail."""
    if chosen.starts_turn or chosen.carried:
        return chosen
    return _carrying(chosen, _request_before(session_id, chosen.index, start, excluded))


def _request_before(session_id: uuid.UUID | str, cut: int, start: int, excluded: Collection[int]) -> list[tuple[int, int]]:
    """Index and tokens of the rows of the last user message from `start` on and before the cut."""
    before = _turns(session_id).filter(index__range=(start, cut - 1)).exclude(index__in=excluded).order_by("-index")
    last = before.values_list("index", "tokens", "message_key").first()
    return _whole_message(session_id, *last) if last else []


def _with_pins(session_id: uuid.UUID | str, chosen: Boundary, pinned: Collection[int], tail: int) -> Boundary:
    """The cut with what is pinned before the tail in which it was found."""
    before = [index for index in pinned if index < tail and index not in chosen.carried]
    if not before:
        return chosen
    rows = Entry.objects.filter(session_id=session_id, index__in=before, off_branch=False).exclude(role__in=[Role.SYSTEM, Role.NOTICE])
    found = list(rows.order_by("index").values_list("index", "tokens"))
    return msgspec.structs.replace(
        chosen,
        pinned=(*(index for index, _ in found), *chosen.pinned),
        kept=chosen.kept + len(found),
        kept_tokens=chosen.kept_tokens + sum(tokens for _, tokens in found),
    )


def _carrying_again(session_id: uuid.UUID | str, chosen: Boundary, previous: Checkpoint | None) -> Boundary:
    """The cut with what the view in force carries, when it falls into that same turn once more."""
    if previous is None or chosen.starts_turn or chosen.carried:
        return chosen
    singles, _ = previous.places()
    if not any(index < chosen.index for index in singles):
        return chosen
    rows = _request_before(session_id, chosen.index, 0, previous.excluded)
    again = [row for row in rows if row[0] in singles and row[0] not in chosen.pinned]
    return _carrying(chosen, again)


def _turns(session_id: uuid.UUID | str) -> QuerySet[Entry]:
    turns = Entry.objects.filter(session_id=session_id, role=Role.USER, kind=Kind.MESSAGE, meta=False, off_branch=False)
    return turns.order_by("index")


def _whole_message(session_id: uuid.UUID | str, index: int, tokens: int, key: str) -> list[tuple[int, int]]:
    """Index and tokens of the rows of a user's message that end at `index`."""
    found = [(index, tokens)]
    if not key:
        return found
    before = Entry.objects.filter(session_id=session_id, index__range=(max(0, index - TAIL_STEP), index - 1)).order_by("-index")
    for row in before.values_list("index", "tokens", "message_key", "role", "kind", "meta", "off_branch"):
        if row[2:] != (key, Role.USER, Kind.MESSAGE, False, False):
            break
        found.insert(0, (row[0], row[1]))
    return found


def _carrying(chosen: Boundary, rows: Sequence[tuple[int, int]]) -> Boundary:
    carried = tuple(index for index, _ in rows)
    added = sum(tokens for _, tokens in rows)
    return msgspec.structs.replace(chosen, carried=carried, kept=chosen.kept + len(rows), kept_tokens=chosen.kept_tokens + added)
