"""Every entry has exactly one fate, and none is lost between two generations."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.engine.boundary import Boundary, choose
from sessions_app.engine.entries import Checkpoint, Entry, Segment, SyntheticMessage
from sessions_app.engine.fates import EntryFate, fate_of
from sessions_app.engine.shapes import shape_of
from sessions_app.engine.terms import Fate, Lineage, Role, SegmentKind
from tests.engine.histories import Story, checkpoint, tidy_histories

OUT_OF_VIEW = {Fate.SUMMARISED, Fate.TRIMMED}


def fates(entries: list[Entry], chain: list[Checkpoint]) -> list[EntryFate]:
    return [fate_of(shape_of(entry), chain) for entry in entries]


@st.composite
def compacted_histories(draw: st.DrawFn) -> tuple[list[Entry], list[Checkpoint]]:
    """A history and up to five compactions of it, each made when only part of it was there."""
    entries = draw(tidy_histories(max_turns=10))
    chain: list[Checkpoint] = []
    for seen in sorted(draw(st.lists(st.integers(0, len(entries)), max_size=5))):
        start = chain[-1].boundary_index if chain else 0
        boundary = choose([shape_of(entry) for entry in entries[start:seen]], keep_tokens=draw(st.integers(0, 120)))
        if isinstance(boundary, Boundary):
            chain.append(checkpoint(len(chain) + 1, boundary.index, *boundary.carried, trimmed=draw(st.booleans())))
    return entries, chain


@given(compacted_histories())
@settings(max_examples=300)
def test_no_entry_is_lost_between_two_generations(history):
    entries, chain = history
    for place, now in enumerate(chain):
        before = chain[:place]
        held_before = {entry.index for entry in entries if not before or before[-1].holds(entry.index)}
        held_now = {entry.index for entry in entries if now.holds(entry.index)}
        assert held_now <= held_before
        sendable = {entry.index for entry in entries if entry.is_sendable and not entry.off_branch}
        found = fates(entries, [*before, now])
        taken_out = {index for index, fate in enumerate(found) if fate.generation == now.generation and fate.fate in OUT_OF_VIEW}
        assert taken_out == (held_before - held_now) & sendable


@given(compacted_histories())
@settings(max_examples=300)
def test_fates_cover_every_entry_and_agree_with_the_plan_in_force(history):
    entries, chain = history
    for entry, fate in zip(entries, fates(entries, chain), strict=True):
        if entry.role is Role.NOTICE:
            assert fate == EntryFate(fate=Fate.DISPLAY_ONLY)
        elif not chain or chain[-1].holds(entry.index):
            assert fate == EntryFate(fate=Fate.VERBATIM)
        else:
            assert fate.fate is (Fate.TRIMMED if chain[(fate.generation or 0) - 1].trimmed else Fate.SUMMARISED)


@given(compacted_histories())
def test_a_later_compaction_changes_no_fate_of_what_was_already_out(history):
    entries, chain = history
    earlier = fates(entries, chain[:-1])
    later = fates(entries, chain)
    assert all(now == before for before, now in zip(earlier, later, strict=True) if before.fate in OUT_OF_VIEW)


def test_an_entry_names_the_generation_that_took_it_out():
    story = Story()
    for _ in range(4):
        story.user().says()
    found = fates(story.entries, [checkpoint(1, 2), checkpoint(4, 6)])
    assert [fate.generation for fate in found] == [1, 1, 4, 4, 4, 4, None, None]


def test_a_carried_request_is_summarised_by_the_compaction_that_drops_it():
    story = Story().user().says().says().user().says()
    assert fates(story.entries, [checkpoint(1, 2, 0)])[0] == EntryFate(fate=Fate.VERBATIM)
    assert fates(story.entries, [checkpoint(1, 2, 0), checkpoint(2, 3)])[0] == EntryFate(fate=Fate.SUMMARISED, generation=2)


def test_a_cleared_result_names_the_generation_that_cleared_it():
    story = Story().user().calls("a").result("a").user().says()
    chain = [checkpoint(1, 0, cleared=frozenset({2})), checkpoint(2, 0, cleared=frozenset({2, 4}))]
    assert fates(story.entries, chain)[2] == EntryFate(fate=Fate.CLEARED, generation=1)
    assert fates(story.entries, chain)[4] == EntryFate(fate=Fate.CLEARED, generation=2)


def test_what_is_off_the_branch_is_not_said_to_be_summarised():
    story = Story().user(off_branch=True).user().says()
    assert fates(story.entries, [checkpoint(1, 2)])[0] == EntryFate(fate=Fate.OFF_BRANCH)


def test_without_a_compaction_everything_is_verbatim():
    assert {fate.fate for fate in fates(Story().system().user().calls("a").result("a").entries, [])} == {Fate.VERBATIM}


PIECES = st.one_of(
    st.builds(Segment, kind=st.just(SegmentKind.ENTRY), first=st.integers(0, 20)),
    st.builds(Segment, kind=st.just(SegmentKind.RANGE), first=st.integers(0, 20), last=st.none() | st.integers(0, 20)),
    st.just(Segment(kind=SegmentKind.SYNTHETIC, payload=SyntheticMessage(role=Role.USER, text="Block"))),
)


@given(st.lists(PIECES, max_size=5), st.frozensets(st.integers(0, 20), max_size=4), st.frozensets(st.integers(0, 20), max_size=4))
def test_a_plan_holds_what_its_segments_name_and_what_is_made_of_it_its_own(segments, excluded, excluded_later):
    def holds(index: int) -> bool:
        return any(
            segment.first is not None and segment.first <= index <= (segment.first if segment.kind is SegmentKind.ENTRY else last)
            for segment in segments
            for last in [10**9 if segment.last is None else segment.last]
        )

    plan = Checkpoint(generation=1, lineage=Lineage.CONSOLE, segments=tuple(segments), boundary_index=0, excluded=excluded)
    assert [plan.holds(index) for index in range(22)] == [holds(index) and index not in excluded for index in range(22)]
    later = msgspec.structs.replace(plan, segments=(), excluded=excluded_later)
    assert not any(later.holds(index) for index in range(22))
    assert plan == Checkpoint(generation=1, lineage=Lineage.CONSOLE, segments=tuple(segments), boundary_index=0, excluded=excluded)
