"""Puts entries together into legal messages, in the order of a plan."""

from collections.abc import Callable, Collection, Iterator
from itertools import pairwise

import msgspec

from sessions_app.engine import counting
from sessions_app.engine.entries import Entry, Part, SyntheticMessage
from sessions_app.engine.messages import ViewMessage, ViewPart
from sessions_app.engine.terms import Fate, Kind, PartKind, Role

NO_RESULT = "[No result was recorded]"

_REMINDER_KINDS = frozenset({Kind.REMINDER, Kind.ATTACHMENT})
_REMINDER, _TEXT, _FENCE = range(3)


class _Exchange:
    """An assistant message, and the user message that follows it."""

    def __init__(self) -> None:
        self.said: list[ViewPart] = []
        self.keys: set[str] = set()  # of the entries that make up what is said
        self.made: set[str] = set()  # ids of all its calls
        self.open_calls: dict[str, Part] = {}  # those without a result so far
        self.results: list[ViewPart] = []
        self.others: list[tuple[int, ViewPart]] = []

    @property
    def has_answer(self) -> bool:
        return bool(self.results or self.others)

    def answer(self) -> Iterator[ViewPart]:
        """The user message: results, what is glued to the last one, then reminders before texts."""
        yield from self.results
        others = self.others
        if self.results:
            yield from (msgspec.structs.replace(part, glued=True) for _, part in others if part.part.glued)
            others = [(rank, part) for rank, part in others if not part.part.glued]
        yield from (_no_result(call) for call in self.open_calls.values())
        yield from _with_newlines(_in_order(others))


class Assembly:
    """Takes the items of a plan in order, then gives the messages.

    A result goes right behind the message that made its call, wherever the source has it. An assistant's message may
    come in several entries of one key, also with results in between.
    """

    def __init__(self, cleared: frozenset[int], pinned: frozenset[int] = frozenset()) -> None:
        self._cleared = cleared
        self._pinned = pinned
        self._system: list[ViewPart] = []
        self._exchanges = [_Exchange()]
        self._by_key: dict[str, _Exchange] = {}
        self._callers: dict[str, list[_Exchange]] = {}  # call id → those that made it and wait for its result

    def add_synthetic(self, message: SyntheticMessage) -> None:
        part = Part(kind=PartKind.TEXT, text=message.text)
        view_part = ViewPart(part=part, entry_index=None, synthetic=True, tokens=counting.estimate_parts((part,)))
        if message.role is Role.ASSISTANT:
            self._exchange_for("").said.append(view_part)
        elif message.role is Role.SYSTEM and self._is_untouched:
            self._system.append(view_part)
        else:
            # Nothing may pass a message that a plan has put in its place.
            self._exchanges[-1].others.append((_FENCE, view_part))

    def add(self, entry: Entry) -> None:
        if entry.index in self._cleared:
            parts = _cleared_parts(entry)
        else:
            parts = _view_parts(entry, Fate.PINNED if entry.index in self._pinned else Fate.VERBATIM)
        if not parts:
            return
        if entry.role is Role.ASSISTANT:
            self._add_said(self._exchange_for(entry.message_key), parts)
        elif entry.role is Role.SYSTEM and self._is_untouched:
            self._system += parts
        else:
            is_reminder = entry.kind in _REMINDER_KINDS or entry.role is Role.SYSTEM
            self._add_answer(parts, _REMINDER if is_reminder else _TEXT)

    def messages(self) -> Iterator[ViewMessage]:
        """All messages, or those that `settled` has not given away."""
        yield from self._system_message()
        for exchange in self._exchanges:
            yield from _messages_of(exchange)

    def settled(self, keep: int, is_awaited: Callable[[Collection[str], Collection[str]], bool]) -> Iterator[ViewMessage]:
        """Gives away the oldest messages, but for the last `keep` exchanges (2 at least), up to one to which more may come.

        `is_awaited` is asked about the message keys of an assistant's message, and its calls that have no result so far.
        """
        while len(self._exchanges) > max(keep, 2):
            oldest = self._exchanges[0]
            if is_awaited(oldest.keys, oldest.open_calls):
                return
            yield from self._system_message()
            self._forget(self._exchanges.pop(0))
            yield from _messages_of(oldest)

    def _system_message(self) -> Iterator[ViewMessage]:
        if self._system:
            yield _message(Role.SYSTEM, self._system)
            self._system = []

    def _forget(self, exchange: _Exchange) -> None:
        for key in exchange.keys:
            del self._by_key[key]
        for call_id in exchange.open_calls:
            self._callers[call_id].remove(exchange)
        for call_id in exchange.made:
            if self._callers.get(call_id) == []:  # an id that is used again may be forgotten already
                del self._callers[call_id]

    @property
    def _is_untouched(self) -> bool:
        return len(self._exchanges) == 1 and not self._exchanges[0].said and not self._exchanges[0].has_answer

    def _exchange_for(self, key: str) -> _Exchange:
        exchange = self._by_key.get(key) if key else None
        if exchange is None:
            exchange = self._exchanges[-1]
            if exchange.has_answer:
                exchange = _Exchange()
                self._exchanges.append(exchange)
            if key:
                self._by_key[key] = exchange
                exchange.keys.add(key)
        return exchange

    def _add_said(self, exchange: _Exchange, parts: list[ViewPart]) -> None:
        for view_part in parts:
            part = view_part.part
            if part.kind is PartKind.CALL:
                if part.call_id in exchange.made:
                    continue
                exchange.made.add(part.call_id)
                exchange.open_calls[part.call_id] = part
                self._callers.setdefault(part.call_id, []).append(exchange)
            elif part.kind is PartKind.RESULT and not self._close_call(exchange, part.call_id):
                continue
            exchange.said.append(view_part)

    def _add_answer(self, parts: list[ViewPart], rank: int) -> None:
        caller: _Exchange | None = None
        call_id = ""
        for view_part in parts:
            part = view_part.part
            if part.kind is PartKind.RESULT:
                call_id = part.call_id
                waiting = self._callers.get(call_id)
                caller = waiting[-1] if waiting else None
                if caller is not None:
                    self._close_call(caller, call_id)
                    caller.results.append(view_part)
            elif part.call_id and part.call_id == call_id:
                if caller is not None:
                    caller.results.append(view_part)
            else:
                self._exchanges[-1].others.append((rank, view_part))

    def _close_call(self, exchange: _Exchange, call_id: str) -> bool:
        if exchange.open_calls.pop(call_id, None) is None:
            return False
        self._callers[call_id].remove(exchange)
        return True


def _messages_of(exchange: _Exchange) -> Iterator[ViewMessage]:
    if exchange.said:
        yield _message(Role.ASSISTANT, exchange.said)
    if answer := list(exchange.answer()):
        yield _message(Role.USER, answer)


def _view_parts(entry: Entry, fate: Fate) -> list[ViewPart]:
    parts = [part for part in entry.parts if part.kind is not PartKind.TEXT or part.length]
    estimates = [counting.estimate_part(part) for part in parts] if len(parts) > 1 else [entry.tokens] * len(parts)
    if parts:
        # The entry's stored count is the truth; its frame goes to the first part.
        estimates[0] = max(0, entry.tokens - sum(estimates[1:]))
    return [ViewPart(part=part, entry_index=entry.index, fate=fate, tokens=tokens) for part, tokens in zip(parts, estimates, strict=True)]


def _cleared_parts(entry: Entry) -> list[ViewPart]:
    """The placeholder of an entry: one result for each call that it answers, else one text."""
    results = {part.call_id: part for part in entry.parts if part.kind is PartKind.RESULT}
    word = "Result" if results else "Content"
    text = f"[{word} cleared: entry {entry.index}, {entry.tokens} tokens. Read it back if you need it.]"
    parts = [
        Part(kind=PartKind.RESULT, text=text, name=result.name, call_id=call_id, is_error=result.is_error)
        for call_id, result in results.items()
    ] or [Part(kind=PartKind.TEXT, text=text)]
    return [ViewPart(part=part, entry_index=entry.index, fate=Fate.CLEARED, tokens=counting.estimate_parts((part,))) for part in parts]


def _no_result(call: Part) -> ViewPart:
    part = Part(kind=PartKind.RESULT, text=NO_RESULT, name=call.name, call_id=call.call_id)
    return ViewPart(part=part, entry_index=None, synthetic=True, tokens=counting.estimate_parts((part,)))


def _in_order(parts: list[tuple[int, ViewPart]]) -> list[tuple[int, ViewPart]]:
    """Reminders before texts, each in the order in which they came, but none past a fence."""
    order: list[tuple[int, int, ViewPart]] = []
    section = 0
    for rank, part in parts:
        section += rank is _FENCE
        order.append((section, -1 if rank is _FENCE else rank, part))
        section += rank is _FENCE
    return [(rank, part) for _, rank, part in sorted(order, key=lambda placed: placed[:2])]


def _with_newlines(parts: list[tuple[int, ViewPart]]) -> Iterator[ViewPart]:
    """Parts of which each text ends in a newline when a user's own text follows it, so that the two do not run together."""
    if not parts:
        return
    for (_, part), (next_rank, following) in pairwise(parts):
        runs_on = next_rank is not _REMINDER and part.part.kind is following.part.kind is PartKind.TEXT
        yield msgspec.structs.replace(part, newline=True) if runs_on else part
    yield parts[-1][1]


def _message(role: Role, parts: list[ViewPart]) -> ViewMessage:
    return ViewMessage(role=role, parts=tuple(parts), tokens=sum(part.tokens for part in parts))
