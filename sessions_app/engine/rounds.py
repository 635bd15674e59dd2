"""Rounds: the units of a history that no cut may split, found in one pass over its shapes."""

from bisect import bisect_left
from collections.abc import Sequence

import msgspec

from sessions_app.engine.shapes import EntryShape
from sessions_app.engine.terms import Kind, Role

# Looking a member up in its class costs a call in Python 3.11, and planning asks this of every entry.
_NOTICE, _SYSTEM, _ASSISTANT, _CALL, _RESULT = Role.NOTICE, Role.SYSTEM, Role.ASSISTANT, Kind.CALL, Kind.RESULT


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """A user message, or one assistant message with its calls and all their results, and what travels with it.

    `first` and `last` are entry indexes, inclusive; rounds cover the shapes without a gap. `head` is the entry that
    makes it a round: reminders that lead up to a user message stand before it.
    """

    first: int
    last: int
    head: int
    starts_turn: bool  # it is a user message
    is_pending: bool  # a call of it has no result yet, and nobody has written since
    tokens: int  # of everything in it that may be sent
    messages: int  # messages that it becomes: an assistant's calls and their results are two


class Links(msgspec.Struct, frozen=True, kw_only=True):
    """What ties entries together. All numbers are positions in the sequence of shapes, not entry indexes."""

    starts: list[tuple[int, int]]  # (first, head) of every user and assistant message
    reach: dict[int, int]  # head of an assistant message → the last position that belongs to it
    results: list[int]  # positions of results
    unanswered: list[tuple[int, str]]  # (position, call id) of calls without a result
    stray_reach: int  # last position of a result whose call lies before the shapes, or -1
    last_user: int  # position of the last user message, or -1
    sums: list[int]  # tokens of what may be sent before each position; one more for the whole


def link(shapes: Sequence[EntryShape], *, midway: bool = False) -> Links:
    """Finds the messages, and pairs calls with results. One pass.

    A result answers the latest open call of its id, so an id that an agent uses again is no trouble. `midway`: the
    shapes begin anywhere, not at a legal cut, so that a result without a call may belong to a call before them.
    """
    scan = _Scan(midway=midway)
    sums = [0]
    tokens = 0
    for position, shape in enumerate(shapes):
        role = shape.role
        if role is not _NOTICE and not shape.off_branch:
            tokens += shape.tokens
            if role is _ASSISTANT:
                scan.add_assistant(position, shape)
            elif shape.kind is _RESULT:
                scan.add_result(position, shape)
            elif role is not _SYSTEM:
                scan.add_user_side(position, shape)
        sums.append(tokens)
    return Links(
        starts=scan.starts,
        reach=scan.reach,
        results=scan.results,
        unanswered=sorted((position, call_id) for call_id, calls in scan.open_calls.items() for position, _ in calls),
        stray_reach=scan.stray_reach,
        last_user=scan.last_user,
        sums=sums,
    )


class _Scan:
    def __init__(self, *, midway: bool) -> None:
        self.starts: list[tuple[int, int]] = []
        self.reach: dict[int, int] = {}
        self.results: list[int] = []
        self.open_calls: dict[str, list[tuple[int, int]]] = {}  # call id → (position, head of its message)
        self.stray_reach = -1
        self.last_user = -1
        self._answered: dict[str, int] = {}  # call id → head of the message that made it
        self._midway = midway
        self._head_by_key: dict[str, int] = {}
        self._lead = -1  # first of the reminders that may lead up to a user message
        self._claimed = False  # whether reminders belong to the user message or result that they follow

    def add_user_side(self, position: int, shape: EntryShape) -> None:
        if shape.is_user_message:
            self.starts.append((self._lead if self._lead >= 0 else position, position))
            self.last_user = position
            self._lead, self._claimed = -1, True
        elif not self._claimed and self._lead < 0:
            self._lead = position

    def add_assistant(self, position: int, shape: EntryShape) -> None:
        key = shape.message_key
        head = self._head_by_key.get(key, -1) if key else -1
        if head < 0:
            head = position
            self.starts.append((position, position))
            if key:
                self._head_by_key[key] = position
        self.reach[head] = position
        if shape.kind is _CALL:
            for call_id in shape.call_ids:
                self.open_calls.setdefault(call_id, []).append((position, head))
        self._lead, self._claimed = -1, False

    def add_result(self, position: int, shape: EntryShape) -> None:
        self.results.append(position)
        for call_id in shape.call_ids:
            if calls := self.open_calls.get(call_id):
                self._answered[call_id] = calls.pop()[1]
                if not calls:
                    del self.open_calls[call_id]
            head = self._answered.get(call_id)
            if head is not None:
                self.reach[head] = position
            elif self._midway:
                self.stray_reach = position
        self._lead, self._claimed = -1, True


def group_rounds(shapes: Sequence[EntryShape], *, midway: bool = False) -> list[Round]:
    """The rounds of a history, or of its tail, in order. Linear.

    Reminders, attachments and meta rows start no round: they stay with the user message or the result that they
    follow, or else with the user message that they lead up to. Rows off the branch and notices lie where they lie.
    Where the shapes begin `midway`, a result of an earlier call ties everything before it together: no cut is legal there.
    """
    return rounds_of(shapes, link(shapes, midway=midway))


def rounds_of(shapes: Sequence[EntryShape], links: Links) -> list[Round]:
    """`group_rounds` for links that are known already."""
    if not shapes:
        return []
    heads: list[tuple[int, int]] = []
    reach = links.stray_reach
    for first, head in links.starts:
        if first > reach or not heads:
            heads.append((first if heads else 0, head))
        reach = max(reach, links.reach.get(head, head))
    heads = heads or [(0, 0)]
    pending = sorted({position for position, _ in links.unanswered if position > links.last_user})
    ends = [first for first, _ in heads[1:]] + [len(shapes)]
    return [
        Round(
            first=shapes[first].index,
            last=shapes[end - 1].index,
            head=shapes[head].index,
            starts_turn=shapes[head].is_user_message,
            is_pending=_any_within(pending, first, end),
            tokens=links.sums[end] - links.sums[first],
            messages=1 + _any_within(links.results, first, end),
        )
        for (first, head), end in zip(heads, ends, strict=True)
    ]


def _any_within(positions: Sequence[int], first: int, end: int) -> bool:
    """Whether one of the ascending positions lies from `first` on and before `end`."""
    place = bisect_left(positions, first)
    return place < len(positions) and positions[place] < end
