"""Rounds: the units of a history that no cut may split, found in one pass over its shapes."""

from array import array
from bisect import bisect_left
from collections.abc import Sequence

import msgspec

from sessions_app.engine.shapes import EntryShape
from sessions_app.engine.terms import Kind, Role

# Looking a member up in its class costs a call in Python 3.11, and planning asks this of every entry.
_NOTICE, _SYSTEM, _ASSISTANT, _CALL, _RESULT = Role.NOTICE, Role.SYSTEM, Role.ASSISTANT, Kind.CALL, Kind.RESULT


class Round(msgspec.Struct, frozen=True, kw_only=True, gc=False):
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

    starts: list[tuple[int, int, bool]]  # first, head and "is a user's" of every user and assistant message
    reach: dict[int, int]  # head of an assistant message → the last position that belongs to it
    results: list[int]  # positions of results
    unanswered: list[tuple[int, str]]  # (position, call id) of calls without a result
    stray_reach: int  # last position of a result whose call lies before the shapes, or -1
    last_user: int  # position of the last user message, or -1
    indexes: Sequence[int]  # entry index at each position
    sums: Sequence[int]  # tokens of what may be sent before each position; one more for the whole
    counts: Sequence[int]  # entries that may be sent before each position; one more for the whole
    system: list[int]  # positions of system entries


def link(shapes: Sequence[EntryShape], *, midway: bool = False) -> Links:
    """Finds the messages, and pairs calls with results. One pass.

    A result answers the latest open call of its id, so an id that an agent uses again is no trouble. `midway`: the
    shapes begin anywhere, not at a legal cut, so that a result without a call may belong to a call before them.
    """
    scan = _Scan(midway=midway)
    # Arrays, not lists: a long history's numbers stay close together in memory.
    indexes, sums, counts = array("q"), array("q", [0]), array("q", [0])
    tokens = count = 0
    for position, shape in enumerate(shapes):
        role = shape.role
        if role is not _NOTICE and not shape.off_branch:
            tokens += shape.tokens
            count += 1
            if role is _ASSISTANT:
                scan.add_assistant(position, shape)
            elif shape.kind is _RESULT:
                scan.add_result(position, shape)
            elif role is _SYSTEM:
                scan.system.append(position)
            else:
                scan.add_user_side(position, shape)
        indexes.append(shape.index)
        sums.append(tokens)
        counts.append(count)
    unanswered = sorted((position, call_id) for call_id, calls in scan.open_calls.items() for position, _ in calls)
    return Links(
        starts=scan.starts,
        reach=scan.reach,
        results=scan.results,
        unanswered=unanswered,
        stray_reach=scan.stray_reach,
        last_user=scan.last_user,
        indexes=indexes,
        sums=sums,
        counts=counts,
        system=scan.system,
    )


class _Scan:
    def __init__(self, *, midway: bool) -> None:
        self.starts: list[tuple[int, int, bool]] = []
        self.reach: dict[int, int] = {}
        self.results: list[int] = []
        self.system: list[int] = []
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
            self.starts.append((self._lead if self._lead >= 0 else position, position, True))
            self.last_user = position
            self._lead, self._claimed = -1, True
        elif not self._claimed and self._lead < 0:
            self._lead = position

    def add_assistant(self, position: int, shape: EntryShape) -> None:
        key = shape.message_key
        head = self._head_by_key.get(key, -1) if key else -1
        if head < 0:
            head = position
            self.starts.append((position, position, False))
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
    return rounds_of(link(shapes, midway=midway))


def rounds_of(links: Links) -> list[Round]:
    """`group_rounds` for links that are known already."""
    size = len(links.indexes)
    if not size:
        return []
    heads: list[tuple[int, int, bool]] = []
    reach = links.stray_reach
    for start in links.starts:
        if start[0] > reach or not heads:
            heads.append(start)
        reach = max(reach, links.reach.get(start[1], start[1]))
    heads = heads or [(0, 0, False)]
    heads[0] = (0, *heads[0][1:])  # what stands before the first message belongs to it
    pending = sorted({position for position, _ in links.unanswered if position > links.last_user})
    indexes, sums = links.indexes, links.sums
    rounds: list[Round] = []
    for (first, head, starts_turn), end in zip(heads, [*(first for first, _, _ in heads[1:]), size], strict=True):
        rounds.append(
            Round(
                first=indexes[first],
                last=indexes[end - 1],
                head=indexes[head],
                starts_turn=starts_turn,
                is_pending=_any_within(pending, first, end),
                tokens=sums[end] - sums[first],
                messages=1 + _any_within(links.results, first, end),
            )
        )
    return rounds


def _any_within(positions: Sequence[int], first: int, end: int) -> bool:
    """Whether one of the ascending positions lies from `first` on and before `end`."""
    place = bisect_left(positions, first)
    return place < len(positions) and positions[place] < end
