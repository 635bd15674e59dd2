"""Whether a view is one that a provider accepts, and what had to be mended of its calls and results for that."""

from collections.abc import Iterable

import msgspec

from sessions_app.engine.entries import Entry
from sessions_app.engine.messages import ViewMessage
from sessions_app.engine.terms import PartKind, Role


def problems(messages: Iterable[ViewMessage]) -> list[str]:
    """What a provider would refuse in a view, one sentence each; nothing for a legal one.

    Each call needs its result in the message right after it and each result its call right before it, results stand
    first in their message, roles alternate, and only the first message may be the system's. Holds one message at a time.
    """
    found: list[str] = []
    open_calls: set[str] = set()
    previous: Role | None = None
    count = 0
    for place, message in enumerate(messages):
        count += 1
        if not message.parts:
            found.append(f"Message {place} is empty.")
        if message.role is Role.SYSTEM and place > 0:
            found.append(f"Message {place} is a system message after the first.")
        if message.role is previous:
            found.append(f"Messages {place - 1} and {place} have the same role, {message.role.value}.")
        previous = message.role
        if message.role is Role.ASSISTANT:
            found += _unanswered(open_calls, place)
            open_calls = _calls_of(message, place, found)
        elif message.role is Role.USER:
            found += _check_results(message, place, open_calls)
    return found + _unanswered(open_calls, count)


class Mended(msgspec.Struct, frozen=True, kw_only=True):
    """What a view says otherwise than its entries, so that a provider takes it.

    `left_out`: indexes of entries with a result whose call is not there or has one already, ascending. `answered`: (index of its
    entry, call id) of calls without a result, in order, which got one that says so; those whose result may still come do not count.
    """

    left_out: tuple[int, ...] = ()
    answered: tuple[tuple[int, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.left_out or self.answered)


class Mending:
    """Watches a view being built: `take` each entry that its plan names, in order, and `give` each message that comes of them."""

    def __init__(self) -> None:
        self._awaited: set[tuple[int, str]] = set()  # (index, call id) of results that no message has brought yet
        self._calls: dict[str, int] = {}  # call id → index, of the message before
        self._answered: list[tuple[int, str]] = []
        self._open: list[tuple[int, str]] = []  # the same of calls that nothing has followed yet

    def take(self, entry: Entry) -> None:
        self._awaited.update((entry.index, part.call_id) for part in entry.parts if part.kind is PartKind.RESULT)

    def give(self, message: ViewMessage) -> None:
        if message.role is Role.ASSISTANT:
            self._follow()
            self._calls = {}
        for view_part in message.parts:
            part, index = view_part.part, view_part.entry_index
            if part.kind is PartKind.RESULT:
                self._bring(index, part.call_id)
            elif part.kind is PartKind.CALL and index is not None:
                self._calls[part.call_id] = index
            elif message.role is Role.USER and not part.call_id:
                self._follow()

    def _follow(self) -> None:
        self._answered += self._open
        self._open = []

    def _bring(self, index: int | None, call_id: str) -> None:
        if index is None:
            self._open.append((self._calls.get(call_id, -1), call_id))
        else:
            self._awaited.discard((index, call_id))

    def end(self) -> Mended:
        """What was mended, once all messages have come."""
        return Mended(left_out=tuple(sorted({index for index, _ in self._awaited})), answered=tuple(self._answered))


def _unanswered(open_calls: set[str], place: int) -> list[str]:
    return [f"The call {call_id} has no result before message {place}." for call_id in sorted(open_calls)]


def _calls_of(message: ViewMessage, place: int, found: list[str]) -> set[str]:
    calls: set[str] = set()
    for view_part in message.parts:
        part = view_part.part
        if part.kind is PartKind.CALL:
            if part.call_id in calls:
                found.append(f"Message {place} makes the call {part.call_id} twice.")
            calls.add(part.call_id)
        elif part.kind is PartKind.RESULT:
            if part.call_id not in calls:
                found.append(f"The result of {part.call_id} in message {place} has no call.")
            calls.discard(part.call_id)
    return calls


def _check_results(message: ViewMessage, place: int, open_calls: set[str]) -> list[str]:
    found: list[str] = []
    in_results = True
    for view_part in message.parts:
        part = view_part.part
        if part.kind is not PartKind.RESULT:
            in_results = in_results and (view_part.glued or bool(part.call_id))
            continue
        if not in_results:
            found.append(f"The result of {part.call_id} stands behind other text in message {place}.")
        if part.call_id not in open_calls:
            found.append(f"The result of {part.call_id} in message {place} has no call right before it.")
        open_calls.discard(part.call_id)
    found += _unanswered(open_calls, place + 1)
    open_calls.clear()
    return found
