"""Where a compaction cuts: legal always, and the same as the plain rule."""

from collections import Counter

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.engine import view
from sessions_app.engine.boundary import Boundary, IllegalBoundary, choose, keep_budget
from sessions_app.engine.entries import Entry
from sessions_app.engine.policy import Policy
from sessions_app.engine.rounds import group_rounds
from sessions_app.engine.shapes import EntryShape, shape_of
from sessions_app.engine.terms import SkipReason
from tests.engine.histories import Story, checkpoint, histories
from tests.engine.plain_boundary import plain_choice


def shapes_of(entries: list[Entry]) -> list[EntryShape]:
    return [shape_of(entry) for entry in entries]


def chosen(story: Story, **options) -> Boundary:
    boundary = choose(shapes_of(story.entries), **options)
    assert isinstance(boundary, Boundary), boundary
    return boundary


@given(histories(), st.integers(0, 250), st.integers(0, 6))
@settings(max_examples=300)
def test_the_choice_is_that_of_the_plain_rule(entries, keep_tokens, protected):
    found = choose(shapes_of(entries), keep_tokens=keep_tokens, protected_messages=protected)
    plain = plain_choice(shapes_of(entries), keep_tokens, protected)
    if isinstance(found, Boundary):
        assert (found.index, found.carried) == plain
    elif plain is not None:
        # The plain rule does not ask whether the entries before its cut hold anything that a model would miss.
        cut, carried = plain
        assert (
            sum(
                shape.tokens
                for shape in shapes_of(entries)[:cut]
                if shape.is_sent and shape.index not in carried and shape.role != "system"
            )
            == 0
        )


@given(histories(), st.integers(0, 250))
@settings(max_examples=300)
def test_a_cut_leaves_a_legal_view_and_the_last_round(entries, keep_tokens):
    boundary = choose(shapes_of(entries), keep_tokens=keep_tokens)
    if isinstance(boundary, Boundary):
        plan = checkpoint(1, boundary.index, *boundary.carried)
        assert view.problems(view.build(entries, plan)) == []
        rounds = group_rounds(shapes_of(entries))
        assert boundary.index in {found.first for found in rounds[1:]}
        assert boundary.kept_tokens == sum(entry.tokens for entry in entries if shape_of(entry).is_sent and plan.holds(entry.index))


@given(histories(), st.data())
@settings(max_examples=300)
def test_every_entry_is_either_a_legal_boundary_or_refused_in_words(entries, data):
    if not entries:
        return
    wanted = data.draw(st.integers(0, len(entries) - 1))
    refusal = ""
    try:
        boundary = choose(shapes_of(entries), keep_tokens=0, wanted=wanted)
    except IllegalBoundary as illegal:
        refusal = str(illegal)
    if refusal:
        assert f"ntry {wanted}" in refusal
    elif isinstance(boundary, Boundary):
        assert boundary.index == wanted
        assert view.problems(view.build(entries, checkpoint(1, wanted, *boundary.carried))) == []


def turns(count: int) -> Story:
    story = Story()
    for number in range(count):
        story.user(f"Request {number}").calls(f"c{number}").result(f"c{number}").says()
    return story


def test_the_earliest_user_message_whose_suffix_fits_is_taken():
    story = turns(5)
    two_turns = sum(entry.tokens for entry in story.entries[12:])
    assert chosen(story, keep_tokens=two_turns).index == 12
    assert chosen(story, keep_tokens=two_turns - 1).index == 16
    assert chosen(story, keep_tokens=two_turns).carried == ()


def test_inside_one_long_turn_a_step_is_taken_and_the_request_is_carried():
    story = Story().user("The request.")
    for number in range(10):
        story.calls(f"c{number}").result(f"c{number}", words="x" * 465)
    boundary = chosen(story, keep_tokens=330)
    assert boundary.index == 15
    assert boundary.carried == (0,)
    assert boundary.folded == 14
    assert boundary.kept == 7


def test_the_unanswered_request_stays_whatever_its_length():
    story = turns(4).user("x" * 100_000).calls("z").result("z")
    boundary = chosen(story, keep_tokens=20)
    assert 16 in boundary.carried or boundary.index <= 16


def test_the_last_user_message_is_kept_even_alone_over_the_budget():
    boundary = chosen(turns(4).user("x" * 100_000), keep_tokens=50)
    assert boundary.index == 16
    assert boundary.kept_tokens > 20_000


def test_no_cut_passes_a_call_without_a_result():
    story = turns(3).user().calls("open").says("Still at it.").says("And now?")
    assert chosen(story, keep_tokens=0).index == 13
    with pytest.raises(IllegalBoundary, match=r"call open \(entry 13\) has no result yet"):
        choose(shapes_of(story.entries), keep_tokens=0, wanted=14)


def test_an_abandoned_call_does_not_stand_in_the_way():
    story = turns(2).user().calls("dead").user("Never mind.").says().user().says()
    assert chosen(story, keep_tokens=20).index > 9


def test_protected_messages_are_never_folded():
    story = turns(5)
    assert chosen(story, keep_tokens=0).index == 19
    assert chosen(story, keep_tokens=0, protected_messages=4).index == 16
    assert chosen(story, keep_tokens=0, protected_messages=5).index == 15
    assert choose(shapes_of(story.entries), keep_tokens=0, protected_messages=40) is SkipReason.NO_LEGAL_BOUNDARY


def test_a_wanted_boundary_that_splits_a_pair_is_refused_with_the_call():
    with pytest.raises(IllegalBoundary, match=r"split the call c1 \(entry 5\) from its result \(entry 6\). A cut at entry 5 would not"):
        choose(shapes_of(turns(4).entries), keep_tokens=0, wanted=6)


def test_a_wanted_boundary_inside_a_message_is_refused():
    story = turns(2).user().says(key="m").says(key="m").user().says()
    with pytest.raises(IllegalBoundary, match="Entry 10 lies inside the message that starts at entry 9"):
        choose(shapes_of(story.entries), keep_tokens=0, wanted=10)


def test_a_wanted_boundary_is_taken_as_it_is_and_needs_no_budget():
    boundary = chosen(turns(4), keep_tokens=10_000, wanted=7)
    assert (boundary.index, boundary.carried) == (7, (4,))
    assert chosen(turns(4), keep_tokens=10_000, wanted=8).carried == ()
    assert choose(shapes_of(turns(4).entries), keep_tokens=0, wanted=0) is SkipReason.NOTHING_TO_FOLD
    with pytest.raises(IllegalBoundary, match="Entry 99 is not in the range"):
        choose(shapes_of(turns(4).entries), keep_tokens=0, wanted=99)


def test_a_user_message_may_be_asked_for_although_reminders_lead_up_to_it():
    story = turns(2).reminder().user().says()
    assert chosen(story, keep_tokens=0, wanted=8).index == 8
    assert chosen(story, keep_tokens=0, wanted=9).index == 9


def test_in_a_tail_no_cut_leaves_a_result_of_an_earlier_call_behind():
    story = Story().user().calls("a").says("Meanwhile.").says("Hm.").result("a").user().says().user().says()
    tail = shapes_of(story.entries)[2:]
    boundary = choose(tail, keep_tokens=0, midway=True)
    assert isinstance(boundary, Boundary)
    assert boundary.index > 4
    with pytest.raises(IllegalBoundary, match="whose call was folded earlier"):
        choose(tail, keep_tokens=0, wanted=3, midway=True)


@pytest.mark.parametrize(
    ("story", "reason"),
    [
        (Story(), SkipReason.EMPTY_SESSION),
        (Story().notice(), SkipReason.EMPTY_SESSION),
        (Story().user().says(), SkipReason.FEWER_THAN_THREE_ROUNDS),
        (Story().system().user().says(), SkipReason.FEWER_THAN_THREE_ROUNDS),
        (Story().calls("a").says().says(), SkipReason.NO_LEGAL_BOUNDARY),
    ],
)
def test_without_a_cut_there_is_a_reason(story, reason):
    assert choose(shapes_of(story.entries), keep_tokens=0) is reason


def test_what_fits_as_a_whole_is_not_folded():
    assert choose(shapes_of(turns(5).entries), keep_tokens=10_000) is SkipReason.NOTHING_TO_FOLD


def test_folding_less_than_the_block_needs_would_not_shrink_unless_forced():
    shapes = shapes_of(turns(5).entries)
    assert choose(shapes, keep_tokens=40, floor_tokens=500) is SkipReason.WOULD_NOT_SHRINK
    forced = choose(shapes, keep_tokens=10_000, floor_tokens=500, force=True)
    assert isinstance(forced, Boundary)
    assert forced.index == 19
    assert forced.carried == (16,)


def test_the_budget_is_a_share_of_the_trigger_and_for_a_person_of_the_signal_too():
    assert keep_budget(Policy(), 200_000, 1_000, manual=False) == 40_000
    assert keep_budget(Policy(), 200_000, 1_000, manual=True) == 250
    assert keep_budget(Policy(), 200_000, 1_000_000, manual=True) == 40_000


LOOKS: Counter[str] = Counter()


class CountedShape(EntryShape, frozen=True, kw_only=True):
    """Counts how often planning looks at what it holds."""

    def __getattribute__(self, name: str) -> object:
        LOOKS[name] += 1
        return super().__getattribute__(name)


def looks_for(turn_count: int) -> Counter[str]:
    """How often a choice looks at each field, for a history of so many turns of four entries."""
    shapes = [CountedShape(**msgspec.structs.asdict(shape)) for shape in shapes_of(turns(turn_count).entries)]
    LOOKS.clear()
    assert isinstance(choose(shapes, keep_tokens=200), Boundary)
    return LOOKS


def test_the_cost_of_a_choice_is_linear():
    for turn_count in (100, 400):
        looks = looks_for(turn_count)
        assert looks["tokens"] <= 4 * turn_count + 4
        assert sum(looks.values()) <= 20 * 4 * turn_count
