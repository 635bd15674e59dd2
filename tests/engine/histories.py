"""Random histories: what agents write, and what they should not but do."""

from collections.abc import Iterable
from typing import Self

from hypothesis import strategies as st

from sessions_app.engine import counting
from sessions_app.engine.entries import Checkpoint, Entry, Part, Segment, SyntheticMessage
from sessions_app.engine.terms import Kind, Lineage, PartKind, Role, SegmentKind


def entry(index: int, role: Role, kind: Kind, *parts: Part, key: str = "", **more) -> Entry:
    tokens = counting.estimate_parts(parts)
    return Entry(index=index, role=role, kind=kind, parts=parts, tokens=tokens, source_id=f"e{index}", message_key=key, **more)


def text(words: str, **more) -> Part:
    return Part(kind=PartKind.TEXT, text=words, **more)


class Story:
    """Builds a history row by row: `Story().user("hi").says("hello").entries`."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def add(self, role: Role, kind: Kind, *parts: Part, **more) -> Self:
        self.entries.append(entry(len(self.entries), role, kind, *parts, **more))
        return self

    def extend(self, entries: Iterable[Entry]) -> Self:
        self.entries.extend(entries)
        return self

    def user(self, words: str = "Please.", **more) -> Self:
        return self.add(Role.USER, Kind.MESSAGE, text(words), **more)

    def says(self, words: str = "Done.", **more) -> Self:
        return self.add(Role.ASSISTANT, Kind.MESSAGE, text(words), **more)

    def calls(self, *call_ids: str, **more) -> Self:
        parts = [Part(kind=PartKind.CALL, name="Bash", text="{}", call_id=call_id) for call_id in call_ids]
        return self.add(Role.ASSISTANT, Kind.CALL, *parts, **more)

    def result(self, *call_ids: str, words: str = "ok", **more) -> Self:
        parts = [Part(kind=PartKind.RESULT, text=words, call_id=call_id) for call_id in call_ids]
        return self.add(Role.USER, Kind.RESULT, *parts, **more)

    def reminder(self, words: str = "Mind the time.", *, glued: bool = False, **more) -> Self:
        return self.add(Role.USER, Kind.REMINDER, text(words, glued=glued), **more)

    def notice(self, words: str = "A hook ran.") -> Self:
        return self.add(Role.NOTICE, Kind.OTHER, text(words))

    def system(self, words: str = "You are an agent.") -> Self:
        return self.add(Role.SYSTEM, Kind.MESSAGE, text(words))


WORDS = st.text(alphabet="abc é\n", max_size=40)
CALL_IDS = st.sampled_from(["c1", "c2", "c3", "c4"])
KEYS = st.sampled_from(["", "m1", "m2", "m3"])


@st.composite
def wild_histories(draw: st.DrawFn, max_size: int = 30) -> list[Entry]:
    """Rows in any order at all: results without calls, ids used twice, messages in pieces, rows off the branch."""
    story = Story()
    for _ in range(draw(st.integers(0, max_size))):
        more = {"off_branch": draw(st.integers(0, 9)) == 0}
        match draw(st.integers(0, 8)):
            case 0 | 1:
                story.user(draw(WORDS), meta=draw(st.integers(0, 4)) == 0, **more)
            case 2:
                story.says(draw(WORDS), key=draw(KEYS), **more)
            case 3 | 4:
                story.calls(*draw(st.lists(CALL_IDS, min_size=1, max_size=3, unique=True)), key=draw(KEYS), **more)
            case 5 | 6:
                story.result(*draw(st.lists(CALL_IDS, min_size=1, max_size=2)), words=draw(WORDS), **more)
            case 7:
                story.reminder(draw(WORDS), glued=draw(st.booleans()), **more)
            case _:
                draw(st.sampled_from([story.notice, story.system]))()
    return story.entries


@st.composite
def tidy_histories(draw: st.DrawFn, max_turns: int = 8) -> list[Entry]:
    """Turns as agents write them: requests, steps with parallel calls, results in any order, reminders, steering."""
    story = Story()
    if draw(st.booleans()):
        story.system()
    for turn in range(draw(st.integers(0, max_turns))):
        if draw(st.booleans()):
            story.reminder(draw(WORDS))
        story.user(draw(WORDS))
        for step in range(draw(st.integers(0, 4))):
            _add_step(draw, story, f"{turn}.{step}")
        if draw(st.integers(0, 3)):
            story.says(draw(WORDS), key=f"end{turn}")
    return story.entries


def _add_step(draw: st.DrawFn, story: Story, key: str) -> None:
    calls = [f"{key}.{number}" for number in range(draw(st.integers(1, 3)))]
    if draw(st.booleans()):
        story.says(draw(WORDS), key=key)
    for call_id in calls:
        story.calls(call_id, key=key)
    if draw(st.integers(0, 5)) == 0:
        story.user("And mind the tests.")
    if draw(st.integers(0, 5)) == 0:
        story.notice()
    for call_id in draw(st.permutations(calls)):
        story.result(call_id, words=draw(WORDS))
        if draw(st.booleans()):
            story.reminder(draw(WORDS), glued=draw(st.booleans()))


def histories() -> st.SearchStrategy[list[Entry]]:
    return st.one_of(wild_histories(), tidy_histories())


def checkpoint(generation: int, boundary: int, *carried: int, trimmed: bool = False, cleared: frozenset[int] = frozenset()) -> Checkpoint:
    """A plan as this product makes it: block, carried entries, trailing range."""
    return Checkpoint(
        generation=generation,
        lineage=Lineage.CONSOLE,
        boundary_index=boundary,
        trimmed=trimmed,
        cleared=cleared,
        segments=(
            Segment(kind=SegmentKind.SYNTHETIC, payload=SyntheticMessage(role=Role.USER, text=f"Block {generation}")),
            *(Segment(kind=SegmentKind.ENTRY, first=index) for index in carried),
            Segment(kind=SegmentKind.RANGE, first=boundary),
        ),
    )
