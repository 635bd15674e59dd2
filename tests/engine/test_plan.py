"""What a policy allows is tokens of requests as a provider measures them; a plan, which adds up estimates, keeps to that."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.engine import plan as planning
from sessions_app.engine.boundary import keep_budget
from sessions_app.engine.calibration import NONE, Calibration
from sessions_app.engine.policy import Policy
from sessions_app.engine.shapes import shape_of
from sessions_app.engine.terms import Role, SkipReason
from tests.engine.attempts import FILLER, long_story, wordy
from tests.engine.histories import histories

POLICY = Policy()
CALIBRATIONS = st.builds(Calibration, factor=st.floats(0.5, 2.0), overhead=st.integers(0, 30_000), prompts=st.just(9))


def make(entries, calibration=NONE, *, window=20_000, policy=POLICY, manual=False, signal=None):
    shapes = [shape_of(entry) for entry in entries]
    estimate = sum(shape.tokens for shape in shapes if shape.is_sent)
    return planning.make(
        shapes,
        previous=None,
        policy=policy,
        window=window,
        summariser_window=100_000,
        signal_tokens=calibration.request(estimate) if signal is None else signal,
        manual=manual,
        force=False,
        calibration=calibration,
    )


@given(CALIBRATIONS, st.integers(-10_000, 3_000_000))
def test_the_largest_view_within_a_budget_stays_within_it_and_a_larger_one_does_not(calibration, tokens):
    within = calibration.view_within(tokens)
    assert within == 0 or calibration.request(within) <= tokens + 1
    assert calibration.request(within + 2) > tokens


@given(CALIBRATIONS, st.integers(0, 10**6), st.integers(0, 10**6))
def test_what_leaves_a_view_leaves_the_request_and_nothing_else_does(calibration, first, second):
    before, after = max(first, second), min(first, second)
    whole = calibration.request(before)
    assert calibration.after(whole, before, before) == whole
    assert abs(calibration.after(whole, before, after) - calibration.request(after)) <= 1
    # A signal beyond what the calibration knows of keeps its rest.
    assert calibration.after(whole + 5_000, before, after) >= calibration.request(after) + 4_999


def test_what_is_kept_is_told_as_entries_are_counted():
    twice = Calibration(factor=2.0, overhead=10_000, prompts=9)
    assert keep_budget(Policy(), 200_000, 1_000, manual=False, calibration=twice) == 20_000
    assert keep_budget(Policy(), 200_000, 40_000, manual=True, calibration=twice) == 5_000


@settings(max_examples=60, deadline=None)
@given(histories(), CALIBRATIONS, st.sampled_from([2_000, 8_000, 60_000]))
def test_a_plan_that_nobody_asked_for_comes_down_to_its_target_as_a_provider_would_measure_it(entries, calibration, window):
    plan = make(wordy(entries, times=20), calibration, window=window)
    if isinstance(plan, planning.Plan):
        assert calibration.request(plan.kept_tokens + plan.block_tokens) <= Policy().target_tokens(window) + 1
        assert plan.block_tokens >= planning.LEAST_BLOCK_TOKENS


def test_where_tools_are_much_the_tail_gives_way_and_the_target_does_not():
    entries = long_story(turns=60, words=FILLER * 2).entries
    estimate = sum(entry.tokens for entry in entries)
    policy, window = Policy(), 2 * estimate
    target, keep = policy.target_tokens(window), keep_budget(policy, window, 0, manual=False)
    light = make(entries, Calibration(prompts=9), window=window, policy=policy)
    heavy = make(entries, Calibration(overhead=target - keep, prompts=9), window=window, policy=policy)
    assert isinstance(light, planning.Plan)
    assert isinstance(heavy, planning.Plan)
    assert heavy.boundary_index > light.boundary_index
    assert target - keep + heavy.kept_tokens + heavy.block_tokens <= target


def test_a_request_whose_tools_alone_exceed_the_target_is_not_compacted_in_vain():
    entries = long_story(turns=20).entries
    tools = Calibration(overhead=Policy().target_tokens(20_000), prompts=9)
    assert make(entries, tools) is SkipReason.NON_HISTORY_ENVELOPE_EXHAUSTS_BUDGET


def test_a_vocabulary_that_needs_more_tokens_leaves_room_for_fewer_entries():
    entries = long_story(turns=60, words=FILLER * 2).entries
    plans = [make(entries, Calibration(factor=factor, prompts=9), manual=manual) for manual in (False, True) for factor in (0.7, 1.0, 1.6)]
    kept = [plan.kept_tokens for plan in plans]
    assert kept[:3] == sorted(kept[:3], reverse=True)
    assert len(set(kept[:3])) == 3
    assert kept[3:] == sorted(kept[3:], reverse=True)


@settings(max_examples=60, deadline=None)
@given(histories(), st.booleans())
def test_a_calibration_that_says_nothing_changes_nothing(entries, manual):
    entries = [entry for entry in wordy(entries, times=20) if entry.role is not Role.SYSTEM]  # what never leaves the view counts, too
    entries = [msgspec.structs.replace(entry, index=index) for index, entry in enumerate(entries)]
    assert make(entries, NONE, manual=manual) == make(entries, Calibration(factor=1.0, overhead=0, prompts=9), manual=manual)
