"""The usage of a message that is told more than once: it stands on one entry."""

from array import array
from collections.abc import Iterator

from sessions_app.engine.entries import Usage
from sessions_app.readers.base import ParsedEntry, UsageCorrection
from sessions_app.readers.compact import NONE, CompactMap


class UsageOnce:
    """Leaves the usage of a message on the entry with the largest output, the last of equals.

    Entries that are stored already lose or get theirs by a correction.
    """

    def __init__(self) -> None:
        self._messages = CompactMap()  # message → its place in the three columns
        self._outputs, self._lanes, self._ordinals = array("q"), array("i"), array("i")
        self._numbers: dict[str, int] = {}  # of lanes
        self._names: list[str] = []
        self._unwritten: dict[tuple[str, int], ParsedEntry] = {}
        self._lost = array("i")  # (lane, ordinal) of stored entries, one after another
        self._late: list[UsageCorrection] = []

    def bill(self, entry: ParsedEntry, ordinal: int, message: str) -> None:
        """Takes an entry with its usage, and takes it away where another one of its message has it. `message` "": never told again."""
        assert entry.usage is not None
        self._unwritten[entry.child_key, ordinal] = entry
        if not message:
            return
        place = self._messages.get(message)
        output, lane = entry.usage.output, self._lane(entry.child_key)
        if place == NONE:
            self._messages.set(message, len(self._outputs))
            self._outputs.append(output)
            self._lanes.append(lane)
            self._ordinals.append(ordinal)
            return
        if self._outputs[place] > output:
            entry.usage = None
            return
        before = self._lanes[place], self._ordinals[place]
        if earlier := self._unwritten.get((self._names[before[0]], before[1])):
            earlier.usage = None
        else:
            self._lost.extend(before)
        self._outputs[place], self._lanes[place], self._ordinals[place] = output, lane, ordinal

    def remember(self, entry: ParsedEntry, ordinal: int) -> None:
        """Keeps an entry in reach that may get its usage late."""
        self._unwritten[entry.child_key, ordinal] = entry

    def bill_late(self, lane: str, ordinal: int, usage: Usage) -> None:
        """Gives an entry that has none the usage that was told after it."""
        entry = self._unwritten.get((lane, ordinal))
        if entry is None:
            self._late.append(UsageCorrection(child_key=lane, ordinal=ordinal, usage=usage))
        elif entry.usage is None:
            entry.usage = usage

    def mark_written(self) -> None:
        """Everything so far is stored."""
        self._unwritten.clear()

    def go_on(self) -> None:
        """What was to be corrected is: only what comes from now on is told."""
        self._lost, self._late = array("i"), []

    def corrections(self) -> Iterator[UsageCorrection]:
        """What stored entries have to lose, and then what they have to get."""
        lost = iter(self._lost)
        for lane, ordinal in zip(lost, lost, strict=True):
            yield UsageCorrection(child_key=self._names[lane], ordinal=ordinal)
        yield from self._late

    def _lane(self, name: str) -> int:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._names)
            self._names.append(name)
        return number
