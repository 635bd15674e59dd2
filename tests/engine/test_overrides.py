"""Pinned entries stand word for word in every view, excluded ones in none, whatever is folded; and nothing is lost by taking it back."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.engine.entries import Checkpoint, Entry, encode_parts
from sessions_app.engine.fates import fate_of
from sessions_app.engine.legality import problems
from sessions_app.engine.overrides import Overrides, applied, together
from sessions_app.engine.policy import Policy
from sessions_app.engine.shapes import shape_of
from sessions_app.engine.steps import Commit, Ended
from sessions_app.engine.terms import Fate, PartKind, Role, SegmentKind, SkipReason, Trigger
from sessions_app.engine.view import build, view_hash
from tests.engine.attempts import FILLER, attempt, checkpoint_of, long_story, wordy
from tests.engine.histories import Story, checkpoint, histories, tidy_histories

GONE = {Fate.SUMMARISED, Fate.TRIMMED}


def group(entries: list[Entry], index: int) -> frozenset[int]:
    return together([shape_of(entry) for entry in entries], index).indexes


def decided(entries: list[Entry], pins: list[int], exclusions: list[int]) -> Overrides:
    """What holds when these were pinned, and then those excluded."""
    excluded = frozenset[int]().union(*(group(entries, index) for index in exclusions))
    pinned = frozenset[int]().union(*(group(entries, index) for index in pins)) - excluded
    return Overrides(pinned=pinned, excluded=excluded, version=1)


def in_force(chain: list[Checkpoint], overrides: Overrides) -> list[Checkpoint]:
    last = applied(chain[-1] if chain else None, overrides)
    return [*chain[:-1], last] if last else []


def folded(entries: list[Entry], chain: list[Checkpoint], overrides: Overrides, **more) -> list[Checkpoint]:
    """The chain after one more compaction, or as it was where there was nothing to fold."""
    result = attempt(entries, chain=in_force(chain, overrides), force=True, **more).result
    return [*chain, checkpoint_of(result, len(chain) + 1)] if isinstance(result, Commit) else chain


def fates_of(entries: list[Entry], chain: list) -> dict[int, Fate]:
    return {entry.index: fate_of(shape_of(entry), chain).fate for entry in entries}


def sent(entries: list[Entry], plan: Checkpoint | None) -> dict[int, list]:
    """The parts of each entry that stand in a view."""
    parts: dict[int, list] = {}
    for message in build(entries, plan):
        for part in message.parts:
            if part.entry_index is not None:
                parts.setdefault(part.entry_index, []).append(part)
    return parts


# What goes together.


def test_a_call_goes_with_all_its_results_and_they_with_it():
    story = Story().user().calls("a", "b").result("a").reminder().result("b").says()
    for index in (1, 2, 4):
        assert group(story.entries, index) == {1, 2, 4}


def test_calls_of_one_message_in_rows_of_their_own_are_decided_apart():
    story = Story().user().calls("a", key="m").calls("b", key="m").result("b").result("a")
    assert group(story.entries, 1) == {1, 4}
    assert group(story.entries, 3) == {2, 3}


def test_several_results_of_a_call_go_together_and_a_result_of_several_calls_joins_them():
    story = Story().user().calls("a").calls("b").result("a").result("a", "b")
    assert group(story.entries, 1) == {1, 2, 3, 4}


def test_an_id_that_is_used_again_joins_nothing_from_before():
    story = Story().calls("a").result("a").calls("a").result("a")
    assert group(story.entries, 1) == {0, 1}
    assert group(story.entries, 2) == {2, 3}


def test_a_message_goes_alone_and_what_lacks_its_other_half_says_so():
    story = Story().user().calls("a").result("z")
    shapes = [shape_of(entry) for entry in story.entries]
    assert together(shapes, 0).indexes == {0}
    assert together(shapes, 1).unanswered == ((1, "a"),)
    assert together(shapes, 2).orphans == (2,)


# Views.


def test_a_pin_since_the_fold_stands_behind_the_block_in_its_order():
    story = Story().user("one").says("two").user("three").says("four").user("five")
    plan = applied(checkpoint(1, 3, 2), Overrides(pinned=frozenset({0, 4})))
    assert [segment.first for segment in plan.segments] == [None, 0, 2, 3]
    assert list(sent(story.entries, plan)) == [0, 2, 3, 4]
    assert plan.pinned == {0, 4}


def test_what_is_excluded_is_nowhere_in_the_view_though_the_plan_names_it():
    story = Story().user("one").says("two").user("three").says("four")
    plan = applied(checkpoint(1, 1, 0), Overrides(excluded=frozenset({0, 2})))
    assert list(sent(story.entries, plan)) == [1, 3]
    assert not plan.holds(0)
    assert not plan.holds(2)


def test_a_pinned_result_is_not_cleared():
    story = Story().user().calls("a").result("a", words="the result").says()
    cleared = checkpoint(1, 0, cleared=frozenset({2}))
    assert sent(story.entries, cleared)[2][0].fate is Fate.CLEARED
    plan = applied(cleared, Overrides(pinned=frozenset({1, 2})))
    assert sent(story.entries, plan)[2][0].part.text == "the result"
    assert fates_of(story.entries, [plan])[2] is Fate.PINNED


def test_nothing_decided_changes_no_plan():
    plan = checkpoint(1, 3)
    assert applied(plan, Overrides(version=7)) is plan
    assert applied(None, Overrides()) is None


@given(histories(), st.data())
@settings(max_examples=300)
def test_every_view_with_any_overrides_is_legal_and_fates_agree_with_it(entries, data):
    indexes = st.lists(st.integers(0, max(0, len(entries) - 1)), max_size=4) if entries else st.just([])
    overrides = decided(entries, data.draw(indexes), data.draw(indexes))
    boundary = data.draw(st.integers(0, len(entries)))
    plan = applied(data.draw(st.sampled_from([None, checkpoint(1, boundary), checkpoint(1, boundary, *range(0, boundary, 3))])), overrides)
    messages = build(entries, plan)
    assert problems(messages) == []
    assert view_hash(messages) == view_hash(build(reversed(entries), plan))
    shown = sent(entries, plan)
    assert not overrides.excluded & shown.keys()
    for entry in entries:
        fate = fate_of(shape_of(entry), [plan] if plan else []).fate
        if entry.role is Role.NOTICE or entry.off_branch:
            assert fate in (Fate.DISPLAY_ONLY, Fate.OFF_BRANCH)
        elif entry.index in overrides.excluded:
            assert fate is Fate.EXCLUDED
        elif entry.index in overrides.pinned:
            assert fate is Fate.PINNED
        else:
            assert (fate is Fate.VERBATIM) == (plan is None or plan.holds(entry.index))


# Folding.


def test_pinned_entries_are_byte_identical_after_ten_generations():
    story = long_story(6)
    pinned = group(story.entries, 1) | group(story.entries, 2)
    overrides = Overrides(pinned=pinned, version=1)
    before = {index: encode_parts(story.entries[index].parts) for index in pinned}
    chain: list[Checkpoint] = []
    for generation in range(10):
        for step in range(3):
            call = f"{generation}.{step}"
            story.user(f"Part {call}. {FILLER * 5}").calls(call).result(call, words=FILLER * 8).says(f"Did {call}. {FILLER * 4}")
        chain = folded(story.entries, chain, overrides)
        plan = in_force(chain, overrides)[-1]
        shown = sent(story.entries, plan)
        assert {index: encode_parts(tuple(part.part for part in shown[index])) for index in pinned} == before
        assert problems(build(story.entries, plan)) == []
    assert len(chain) == 10
    assert chain[-1].boundary_index > 100


def test_the_block_neither_counts_nor_lists_what_is_pinned():
    story = long_story(12)
    overrides = Overrides(pinned=group(story.entries, 5) | group(story.entries, 6))
    plain, commit = attempt(story.entries).commit, attempt(story.entries, chain=in_force([], overrides)).commit
    assert commit.entries_folded == plain.entries_folded - 3
    assert f"The {commit.entries_folded} entries" in commit.block
    assert "- #5 " not in commit.block
    assert "- #9 " in commit.block
    assert [segment.first for segment in commit.segments if segment.kind is SegmentKind.ENTRY] == [5, 6, 7]
    assert commit.tokens_before == plain.tokens_before


def test_pins_count_as_floor():
    """What is pinned takes from what a compaction may leave: where it alone exceeds the target, nothing can be done."""
    story = long_story(12)
    pinned = frozenset(range(1, 37))
    signal = sum(entry.tokens for entry in story.entries)
    made = attempt(
        story.entries, chain=in_force([], Overrides(pinned=pinned)), manual=False, window=int(signal / 0.8), signal_tokens=signal
    )
    assert isinstance(made.result, Ended)
    assert made.result.reason == SkipReason.NON_HISTORY_ENVELOPE_EXHAUSTS_BUDGET


def test_a_history_that_is_pinned_whole_can_not_be_folded():
    story = long_story(5)
    made = attempt(story.entries, chain=in_force([], Overrides(pinned=frozenset(range(1, len(story.entries))))))
    assert made.result.reason == SkipReason.NOTHING_TO_FOLD


def test_what_is_excluded_reaches_no_summary_no_state_and_no_count():
    story = long_story(3)
    secret = "Deploy with the flag --purple-otter"
    story.user(secret).calls("x").result("x", words="/srv/purple/otter.py").says("Did so with purple-otter.")
    story.extend(msgspec.structs.replace(entry, index=entry.index + 17, source_id=f"l{entry.index}") for entry in long_story(9).entries[1:])
    story.entries[:] = [msgspec.structs.replace(entry, index=place) for place, entry in enumerate(story.entries)]
    overrides = Overrides(excluded=frozenset({13, 14, 15, 16}))
    assert "purple" in attempt(story.entries).commit.block
    commit = attempt(story.entries, chain=in_force([], overrides)).commit
    assert "purple" not in commit.block
    assert "purple" not in str(commit.mechanical_state)
    plan = applied(checkpoint_of(commit, 1), overrides)
    assert "purple" not in str(build(story.entries, plan))


def test_clearing_leaves_pins_alone_and_keeps_what_is_excluded():
    story = Story().user()
    for number in range(20):
        story.calls(f"c{number}").result(f"c{number}", words=FILLER * 40)
    story.user("And now?")
    overrides = Overrides(pinned=group(story.entries, 1), excluded=group(story.entries, 3))
    signal = sum(entry.tokens for entry in story.entries if entry.index not in overrides.excluded)
    made = attempt(
        story.entries,
        chain=in_force([], overrides),
        manual=False,
        trigger=Trigger.THRESHOLD,
        window=int(signal / 0.85),
        signal_tokens=signal,
        policy=Policy(clear_results=True),
    )
    assert made.commit.cleared
    assert not {2, 4} & set(made.commit.cleared)


def test_what_is_no_longer_pinned_stays_until_the_next_compaction_folds_it():
    story = long_story(12)
    overrides = Overrides(pinned=frozenset({5}))
    chain = folded(story.entries, [], overrides)
    before = view_hash(build(story.entries, in_force(chain, overrides)[-1]))
    assert view_hash(build(story.entries, chain[-1])) == before
    assert fate_of(shape_of(story.entries[5]), chain).fate is Fate.VERBATIM
    story.extend(msgspec.structs.replace(entry, index=entry.index + 48) for entry in long_story(8).entries[1:])
    chain = folded(story.entries, chain, Overrides())
    fate = fate_of(shape_of(story.entries[5]), chain)
    assert (fate.fate, fate.generation) == (Fate.SUMMARISED, 2)


def test_what_is_no_longer_excluded_comes_back():
    story = long_story(12)
    overrides = Overrides(excluded=frozenset({5}))
    chain = folded(story.entries, [], overrides)
    assert fate_of(shape_of(story.entries[5]), in_force(chain, overrides)).fate is Fate.EXCLUDED
    assert fate_of(shape_of(story.entries[5]), chain).fate is Fate.VERBATIM
    assert 5 in sent(story.entries, chain[-1])


def test_a_pinned_message_of_another_turn_is_not_taken_for_the_open_request():
    """The request of the turn that is cut is carried; a pin that is taken back is not carried on with it."""
    story = long_story(4).user("The open request.")
    for number in range(30):
        story.calls(f"s{number}").result(f"s{number}", words=FILLER * 8)
    overrides = Overrides(pinned=frozenset({1}))
    chain = folded(story.entries, [], overrides)
    assert {1, 17} <= {segment.first for segment in chain[-1].segments if segment.kind is SegmentKind.ENTRY}
    for number in range(30, 60):
        story.calls(f"s{number}").result(f"s{number}", words=FILLER * 8)
    chain = folded(story.entries, chain, Overrides())
    assert [segment.first for segment in chain[-1].segments if segment.kind is SegmentKind.ENTRY] == [17]


@st.composite
def stories_with_overrides(draw: st.DrawFn) -> tuple[list[Entry], list[tuple[int, Overrides]]]:
    """A history, and moments of it: how much of it there was, and what was pinned and excluded then."""
    entries = wordy(draw(tidy_histories(max_turns=10)), 2)
    moments = []
    for seen in sorted(draw(st.lists(st.integers(0, len(entries)), min_size=1, max_size=5))):
        indexes = st.lists(st.integers(0, seen - 1), max_size=4) if seen else st.just([])
        moments.append((seen, decided(entries[:seen], draw(indexes), draw(indexes))))
    return entries, moments


@given(stories_with_overrides())
@settings(max_examples=150, deadline=None)
def test_through_any_decisions_and_compactions_nothing_is_lost_and_each_view_is_legal(story):
    entries, moments = story
    chain: list[Checkpoint] = []
    for seen, overrides in moments:
        known = entries[:seen]
        before = in_force(chain, overrides)
        in_view = {index for index, fate in fates_of(known, before).items() if fate not in (*GONE, Fate.EXCLUDED, Fate.DISPLAY_ONLY)}
        grown = folded(known, chain, overrides)
        if grown is not chain:
            commit_span = {i for i, fate in fates_of(known, in_force(grown, overrides)).items() if fate in GONE} - {
                i for i, fate in fates_of(known, before).items() if fate in GONE
            }
            assert commit_span <= in_view
            assert not commit_span & (overrides.pinned | overrides.excluded)
            # Taken back altogether, all that was left out is in the view again.
            assert not {i for i, fate in fates_of(known, grown).items() if fate in GONE} & (overrides.pinned | overrides.excluded) & in_view
        chain = grown
        plan = next(reversed(in_force(chain, overrides)), None)
        messages = build(known, plan)
        assert problems(messages) == []
        shown = sent(known, plan)
        assert not shown.keys() & overrides.excluded
        for index in overrides.pinned & {entry.index for entry in known if any(part.length for part in entry.parts)}:
            parts = tuple(part for part in known[index].parts if part.kind is not PartKind.TEXT or part.length)
            assert [part.part for part in shown.get(index, [])] == list(parts) or known[index].role is Role.NOTICE


@pytest.mark.parametrize("excluded", [frozenset(), frozenset({5, 6, 7})])
def test_planning_counts_what_the_view_holds(excluded):
    story = long_story(12)
    overrides = Overrides(pinned=frozenset({9}), excluded=excluded)
    commit = attempt(story.entries, chain=in_force([], overrides)).commit
    assert commit.tokens_before == sum(entry.tokens for entry in story.entries if entry.index not in excluded)
    plan = applied(checkpoint_of(commit, 1), overrides)
    assert commit.tokens_after == sum(message.tokens for message in build(story.entries, plan))
    assert commit.entries_kept == len(sent(story.entries, plan))
