"""Rounds: the units of a history that no cut may split, found in one pass over its shapes."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate
from operator import mul
from typing import NamedTuple

import msgspec

from sessions_app.engine.shapes import EntryShape
from sessions_app.engine.terms import Kind, Role

# Looking a member up in its class costs a call in Python 3.11, and planning asks this of every entry.
_NOTICE, _SYSTEM, _ASSISTANT, _USER = Role.NOTICE, Role.SYSTEM, Role.ASSISTANT, Role.USER
_CALL, _RESULT, _MESSAGE = Kind.CALL, Kind.RESULT, Kind.MESSAGE


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


class Starts(msgspec.Struct, frozen=True):
    """Where messages or rounds begin, as parallel lists: tuples would make a long history the garbage collector's business."""

    firsts: list[int]  # with the reminders that lead up to it
    heads: list[int]
    are_users: list[bool]


class Links(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What ties entries together. All numbers are positions in the sequence of shapes, not entry indexes."""

    starts: Starts  # of every user and assistant message
    reach: Sequence[int]  # at the head of an assistant message the last position that belongs to it, where that is a later one; else 0
    results: list[int]  # positions of results
    unanswered: list[tuple[int, str]]  # (position, call id) of calls without a result
    stray_reach: int  # last position of a result whose call lies before the shapes, or -1
    last_user: int  # position of the last user message, or -1
    indexes: Sequence[int]  # entry index at each position
    sums: Sequence[int]  # tokens of what may be sent before each position; one more for the whole
    sent: bytes  # 1 at the position of each entry that may be sent
    system: list[int]  # positions of system entries

    @cached_property
    def round_starts(self) -> Starts:
        """Where rounds begin: the starts of messages that nothing before them reaches over. The first position is one of them."""
        if not self.indexes:
            return Starts([], [], [])
        firsts: list[int] = []
        heads: list[int] = []
        are_users: list[bool] = []
        reach, starts = self.stray_reach, self.starts
        for first, head, is_user in zip(starts.firsts, starts.heads, starts.are_users, strict=True):
            if first > reach or not firsts:
                firsts.append(first)
                heads.append(head)
                are_users.append(is_user)
            if (last := self.reach[head] or head) > reach:
                reach = last
        if not firsts:
            return Starts([0], [0], [False])
        firsts[0] = 0  # what stands before the first message belongs to it
        return Starts(firsts, heads, are_users)


def link(shapes: Sequence[EntryShape], *, midway: bool = False) -> Links:
    """Finds the messages, and pairs calls with results. Linear.

    A result answers the latest open call of its id, so an id that an agent uses again is no trouble. `midway`: the
    shapes begin anywhere, not at a legal cut, so that a result without a call may belong to a call before them.
    """
    scan = _Scan(len(shapes), midway=midway)
    scan.read(shapes)
    if scan.is_unsure:
        scan = _Scan(len(shapes), midway=midway, answered={})
        scan.read(shapes)
    sent = bytes([shape.role is not _NOTICE and not shape.off_branch for shape in shapes])
    tokens: Iterable[int] = [shape.tokens for shape in shapes]
    if 0 in sent:
        tokens = map(mul, tokens, sent)
    return Links(
        starts=scan.starts,
        reach=scan.reach,
        results=scan.results,
        unanswered=scan.unanswered(),
        stray_reach=scan.stray_reach,
        last_user=scan.last_user,
        indexes=_indexes(shapes),
        sums=array("q", accumulate(tokens, initial=0)),  # no list: a long history's numbers stay close together in memory
        sent=sent,
        system=scan.system,
    )


def _indexes(shapes: Sequence[EntryShape]) -> Sequence[int]:
    if shapes and shapes[-1].index - shapes[0].index == len(shapes) - 1:
        return range(shapes[0].index, shapes[-1].index + 1)
    return [shape.index for shape in shapes]


class _Scan:
    """`answered`: call id → head of the message whose call of that id was answered last. Only a second result of a call needs it,
    which hardly any history holds, and a table of all its calls makes a pass over a long one half as long again."""

    def __init__(self, length: int, *, midway: bool, answered: dict[str, int] | None = None) -> None:
        self.starts = Starts([], [], [])
        self.reach = array("q", bytes(8 * length))
        self.results: list[int] = []
        self.system: list[int] = []
        self.stray_reach = -1
        self.last_user = -1
        self.is_unsure = False  # there is a result without an open call, and without `answered` it can't be said what it belongs to
        self._midway = midway
        self._answered = answered
        self._open: dict[str, int] = {}  # call id → position of its latest call that has no result
        self._open_before: dict[str, list[int]] = {}  # earlier open ones, where an id was used again before its result came
        self._head_of: dict[int, int] = {}  # position of an open call → head of its message, where that is another

    def unanswered(self) -> list[tuple[int, str]]:
        """(position, call id) of calls without a result, in order."""
        before = [(position, call_id) for call_id, positions in self._open_before.items() for position in positions]
        return sorted([*((position, call_id) for call_id, position in self._open.items()), *before])

    def read(self, shapes: Sequence[EntryShape]) -> None:
        """One pass over the shapes, whose usual ways are written out: no part of the plan of a long history takes longer."""
        add_first, add_head, add_is_user = self.starts.firsts.append, self.starts.heads.append, self.starts.are_users.append
        head_by_key: dict[str, int] = {}
        lead = -1  # first of the reminders that may lead up to a user message
        is_claimed = False  # whether reminders belong to the user message or result that they follow
        for position, shape in enumerate(shapes):
            role = shape.role
            if role is _NOTICE or shape.off_branch:
                continue
            kind = shape.kind
            if role is _ASSISTANT:
                key = shape.message_key
                head = head_by_key.setdefault(key, position) if key else position
                if head == position:
                    add_first(position)
                    add_head(position)
                    add_is_user(False)  # noqa: FBT003
                else:
                    self.reach[head] = position
                if kind is _CALL:
                    self._add_calls(position, head, shape.call_ids)
                lead, is_claimed = -1, False
            elif kind is _RESULT:
                self._add_result(position, shape.call_ids)
                lead, is_claimed = -1, True
            elif role is _SYSTEM:
                self.system.append(position)
            elif role is _USER and kind is _MESSAGE and not shape.meta:
                add_first(lead if lead >= 0 else position)
                add_head(position)
                add_is_user(True)  # noqa: FBT003
                self.last_user = position
                lead, is_claimed = -1, True
            elif not is_claimed and lead < 0:
                lead = position

    def _add_calls(self, position: int, head: int, call_ids: Sequence[str]) -> None:
        if head != position:
            self._head_of[position] = head
        for call_id in call_ids:
            if call_id in self._open:
                self._open_before.setdefault(call_id, []).append(self._open[call_id])
            self._open[call_id] = position

    def _add_result(self, position: int, call_ids: Sequence[str]) -> None:
        self.results.append(position)
        for call_id in call_ids:
            call = self._open.pop(call_id, -1)
            if call >= 0:
                head = self._head_of.get(call, call)
                if self._open_before and (earlier := self._open_before.get(call_id)):
                    self._open[call_id] = earlier.pop()
                if self._answered is not None:
                    self._answered[call_id] = head
            else:
                self.is_unsure = self._answered is None
                head = self._answered.get(call_id, -1) if self._answered is not None else -1
            if head >= 0:
                self.reach[head] = position
            elif self._midway:
                self.stray_reach = position


def group_rounds(shapes: Sequence[EntryShape], *, midway: bool = False) -> list[Round]:
    """The rounds of a history, or of its tail, in order. Linear.

    Reminders, attachments and meta rows start no round: they stay with the user message or the result that they
    follow, or else with the user message that they lead up to. Rows off the branch and notices lie where they lie.
    Where the shapes begin `midway`, a result of an earlier call ties everything before it together: no cut is legal there.
    """
    return rounds_of(link(shapes, midway=midway))


class Stretches(NamedTuple):
    """Rounds by where they lie and how large they are together, as parallel lists: packing needs no more of them.

    `sums`: tokens of all before each round; one more for the whole.
    """

    firsts: Sequence[int]  # entry indexes, as are `lasts`
    lasts: Sequence[int]
    sums: Sequence[int]


def stretches_of(rounds: Sequence[Round]) -> Stretches:
    """These rounds."""
    sums = list(accumulate([found.tokens for found in rounds], initial=0))
    return Stretches([found.first for found in rounds], [found.last for found in rounds], sums)


def stretches_before(links: Links, cut: int, tokens: Iterable[int]) -> Stretches | None:
    """The rounds before a position, with other sizes: `tokens` of each shape before it. None where no round starts there."""
    starts = links.round_starts.firsts
    count = bisect_left(starts, cut)
    if count == len(starts) or starts[count] != cut:
        return None
    sums = list(accumulate(tokens, initial=0))
    places = starts[: count + 1]
    firsts, indexes = places[:-1], links.indexes
    if indexes[0] == 0 and isinstance(indexes, range):  # as in a whole history: positions are indexes
        lasts = [end - 1 for end in places[1:]]
    else:
        firsts, lasts = [indexes[first] for first in firsts], [indexes[end - 1] for end in places[1:]]
    return Stretches(firsts, lasts, [sums[first] for first in places])


def rounds_of(links: Links) -> list[Round]:
    """`group_rounds` for links that are known already."""
    starts, waiting = links.round_starts, pending(links)
    return [_round_at(links, starts, place, waiting) for place in range(len(starts.firsts))]


def _round_at(links: Links, starts: Starts, place: int, waiting: Sequence[int]) -> Round:
    first, end = starts.firsts[place], end_of_round(links, starts, place)
    return Round(
        first=links.indexes[first],
        last=links.indexes[end - 1],
        head=links.indexes[starts.heads[place]],
        starts_turn=starts.are_users[place],
        is_pending=_any_within(waiting, first, end),
        tokens=links.sums[end] - links.sums[first],
        messages=messages_of_round(links, starts, place),
    )


def end_of_round(links: Links, starts: Starts, place: int) -> int:
    """The position after a round."""
    return starts.firsts[place + 1] if place + 1 < len(starts.firsts) else len(links.indexes)


def messages_of_round(links: Links, starts: Starts, place: int) -> int:
    """Messages that a round becomes."""
    return 1 + _any_within(links.results, starts.firsts[place], end_of_round(links, starts, place))


def pending(links: Links) -> list[int]:
    """Positions of the calls without a result after which nobody has written."""
    return [position for position, _ in links.unanswered if position > links.last_user]


def _any_within(positions: Sequence[int], first: int, end: int) -> bool:
    """Whether one of the ascending positions lies from `first` on and before `end`."""
    place = bisect_left(positions, first)
    return place < len(positions) and positions[place] < end
