"""The tree that `parentUuid` spans over a transcript, and which of its rows stand on the live branch."""

from array import array
from enum import IntEnum

from sessions_app.readers.base import Problem, ProblemKind
from sessions_app.readers.compact import NONE, CompactMap

MOST_BESIDE = 50  # attachments and notices between two rows of a conversation that merely goes on
MAX_PATH = 10_000  # rows that a compaction may preserve


class Node(IntEnum):
    """What a row is, as far as branches are concerned."""

    BESIDE = 0  # attachment, notice or progress: on the branch when what it hangs on is
    PROMPT = 1
    RESULT = 2
    ANSWER = 3


class Tree:
    """Rows by number, in file order. About 70 bytes a row; texts are not kept."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._number = CompactMap()
        self._parents = array("i")
        self._nodes = bytearray()
        self._lanes = array("i")
        self._entries = array("i")  # ordinal of the row's entry within its lane
        self._messages = array("i")
        self._lines = array("I")
        self._offsets = array("Q")
        self._message_numbers = CompactMap()
        self._lane_numbers: dict[str, int] = {}
        self._lane_names: list[str] = []
        self._previous = array("i")  # the row before, of the same lane
        self._last: list[int] = []  # per lane, its newest row
        self._leaves: list[int] = []  # per lane, its newest prompt, result or answer
        self._unresolved: dict[int, str] = {}  # row → parent that was not read yet
        self._logical: dict[int, str] = {}
        self._found: dict[str, list[int]] | None = None  # what `off_branch` answered, while rows only go on from there
        self._on = bytearray()  # the rows on the branch, as they were found then

    def __contains__(self, uuid: str) -> bool:
        return uuid in self._number

    def lane_of(self, uuid: str) -> str | None:
        """The lane (child key, "" for the main one) of a row that was read."""
        number = self._number.get(uuid)
        return None if number == NONE else self._lane_names[self._lanes[number]]

    def entry_of(self, uuid: str, lane: str) -> int | None:
        """Ordinal of the entry of a row within a lane, if it has one there."""
        number = self._number.get(uuid)
        return None if number == NONE else self._entry_at(number, lane)

    def _entry_at(self, number: int, lane: str) -> int | None:
        if self._lanes[number] != self._lane_numbers.get(lane) or self._entries[number] == NONE:
            return None
        return self._entries[number]

    def entries_between(self, head: str, tail: str, lane: str) -> list[int]:
        """Ordinals within a lane from the row `head` down to `tail`, both included; empty when `tail` does not hang on `head`."""
        first, number = self._number.get(head), self._number.get(tail)
        rows: list[int] = []
        while number != NONE and len(rows) < MAX_PATH:
            rows.append(number)
            if number == first:
                found = (self._entry_at(row, lane) for row in sorted(rows))
                return [entry for entry in found if entry is not None]
            number = self._parents[number]
        return []

    def add(
        self,
        uuid: str,
        parent: str | None,
        *,
        node: Node,
        lane: str,
        entry: int | None,
        message: str,
        place: tuple[int, int],
        logical_parent: str = "",
    ) -> None:
        """Adds one row. `parent`: `""` starts a tree, `None` (the field is absent) hangs it on the row before."""
        number = len(self._nodes)
        lane_number = self._lane_number(lane)
        before = self._last[lane_number]
        if parent is None:
            parent_number = before
        elif not parent:
            parent_number = NONE
        else:
            parent_number = self._number.get(parent)
            if parent_number == NONE:
                self._unresolved[number] = parent
        if logical_parent:
            self._logical[number] = logical_parent
        goes_on = self._found is not None and not logical_parent and self._goes_on(uuid, parent_number, lane_number, message)
        if goes_on:
            self._on.append(1)
        else:
            self._found = None
        self._number.set(uuid, number)
        self._parents.append(parent_number)
        self._nodes.append(node)
        self._lanes.append(lane_number)
        self._entries.append(NONE if entry is None else entry)
        self._messages.append(self._message_numbers.number_of(message) if message else NONE)
        self._lines.append(place[0])
        self._offsets.append(place[1])
        self._previous.append(before)
        self._last[lane_number] = number
        if node:
            self._leaves[lane_number] = number

    def _lane_number(self, lane: str) -> int:
        number = self._lane_numbers.get(lane)
        if number is None:
            number = self._lane_numbers[lane] = len(self._lane_names)
            self._lane_names.append(lane)
            self._last.append(NONE)
            self._leaves.append(NONE)
        return number

    def off_branch(self) -> dict[str, list[int]]:
        """Per lane, the entry ordinals that no longer belong to the conversation.

        Asked again when rows have merely gone on from the end of a conversation, it answers what it found before.
        """
        if self._found is not None:
            return self._found
        self.problems.clear()
        self._resolve()
        on = bytearray(len(self._nodes))
        for leaf in self._leaves:
            self._walk(leaf, on)
        self._spread(on)
        found: dict[str, list[int]] = {}
        for number, entry in enumerate(self._entries):
            if entry != NONE and not on[number]:
                found.setdefault(self._lane_names[self._lanes[number]], []).append(entry)
        self._found, self._on = found, on
        return found

    def _goes_on(self, uuid: str, parent: int, lane: int, message: str) -> bool:
        """Whether a new row leaves every other row on its branch, or off it: it hangs on the end of its lane's conversation."""
        leaf = row = self._last[lane]
        if row == NONE or parent != row or not self._on[row]:
            return False
        for _ in range(MOST_BESIDE):
            if row == NONE or self._nodes[row]:
                break
            row = self._parents[row]
        known = self._message_numbers.get(message) if message else NONE
        is_new_message = known in (NONE, self._messages[leaf])
        is_awaited = uuid in self._unresolved.values() or uuid in self._logical.values()
        return row == self._leaves[lane] and is_new_message and not is_awaited

    def _resolve(self) -> None:
        """Links rows whose parent came later; a parent that never came is bridged by file order and reported."""
        for number, parent in self._unresolved.items():
            known = self._number.get(parent)
            if known == NONE:
                known = self._previous[number]
                self.problems.append(self._problem(ProblemKind.ORPHAN, number))
            self._parents[number] = known
        for number, logical in self._logical.items():
            known = self._number.get(logical)
            if known == NONE:
                known = self._previous[number]
                self.problems.append(self._problem(ProblemKind.DEAD_BOUNDARY, number, "the row before the boundary is not there"))
            self._parents[number] = known

    def _walk(self, leaf: int, on: bytearray) -> None:
        """Marks the rows from the newest prompt, result or answer of a lane up to its root."""
        number = lowest = leaf
        while number != NONE:
            if on[number]:
                # A cycle. What lies before it in the file is still the conversation.
                self.problems.append(self._problem(ProblemKind.CYCLE, number))
                number = self._previous[lowest]
                if number == NONE or on[number]:
                    return
            on[number] = 1
            lowest = min(lowest, number)
            parent = self._parents[number]
            if parent != NONE and self._lanes[parent] != self._lanes[number]:
                return  # a side chain that hangs on the main one
            number = parent

    def _spread(self, on: bytearray) -> None:
        """Marks what belongs to marked rows: further blocks of a message, parallel results, attachments, notices."""
        messages = bytearray(len(self._message_numbers) + 1)  # the last is that of rows without a message
        for row, message in enumerate(self._messages):
            if on[row] and message != NONE:
                messages[message] = 1
        abandoned = bytearray(len(on))  # leads to a prompt or an answer that is not on the branch
        for row in range(len(on) - 1, -1, -1):
            parent, node = self._parents[row], self._nodes[row]
            is_left = node == Node.PROMPT or (node == Node.ANSWER and not messages[self._messages[row]])
            if parent != NONE and not on[row] and (is_left or abandoned[row]):
                abandoned[parent] = 1
        for row in range(len(on)):
            if on[row]:
                continue
            if self._nodes[row] == Node.ANSWER:
                on[row] = messages[self._messages[row]]
            elif self._nodes[row] != Node.PROMPT:
                parent = self._parents[row]
                is_free = self._nodes[row] == Node.RESULT or not abandoned[row]
                on[row] = is_free and (parent == NONE or bool(on[parent]))

    def _problem(self, kind: ProblemKind, number: int, detail: str = "") -> Problem:
        return Problem(kind=kind, line=self._lines[number], offset=self._offsets[number], detail=detail)
