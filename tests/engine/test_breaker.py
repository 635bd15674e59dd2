"""The breaker: it counts what was paid for and refused, rests, lets one through, and forgets on success."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.engine.breaker import COOLDOWN_S, FAILURES, OPENS_AT, SUCCESSES, Breaker, BreakerState, is_refilling
from sessions_app.engine.terms import Outcome


def failed(times: int, at: float = 0.0) -> Breaker:
    breaker = Breaker()
    for _ in range(times):
        breaker = breaker.after(Outcome.REJECTED_EMPTY, at)
    return breaker


def test_it_opens_at_the_third_failure_in_a_row_and_rests_from_the_last():
    assert failed(OPENS_AT - 1).lets_through(0)
    breaker = failed(OPENS_AT, at=100.0)
    assert breaker.state(100.0 + COOLDOWN_S - 1) is BreakerState.OPEN
    assert breaker.rest_s(100.0 + COOLDOWN_S - 1) == 1
    assert breaker.state(100.0 + COOLDOWN_S) is BreakerState.HALF_OPEN
    assert breaker.lets_through(100.0 + COOLDOWN_S)


def test_the_one_that_is_let_through_decides():
    later = COOLDOWN_S + 1
    assert failed(OPENS_AT).after(Outcome.FAILED, later).state(later) is BreakerState.OPEN
    assert failed(OPENS_AT).after(Outcome.COMMITTED, later) == Breaker()


@pytest.mark.parametrize("outcome", sorted(set(Outcome) - FAILURES - SUCCESSES))
def test_what_says_nothing_of_the_next_attempt_leaves_it_as_it_is(outcome):
    assert failed(2).after(outcome, 9.0) == failed(2)


@given(st.lists(st.tuples(st.sampled_from(sorted(Outcome)), st.floats(0, 10_000))), st.floats(0, 20_000))
def test_it_is_open_only_after_failures_and_never_for_longer_than_its_rest(history, now):
    breaker = Breaker()
    for outcome, at in history:
        breaker = breaker.after(outcome, at)
    if breaker.state(now) is BreakerState.OPEN:
        assert breaker.failures >= OPENS_AT
        assert 0 < breaker.rest_s(now) <= COOLDOWN_S


@pytest.mark.parametrize(
    ("turns", "turn", "refilling"),
    [([1, 5, 9], 10, True), ([1, 5], 10, False), ([1, 12, 20], 21, False), ([1, 12, 15, 20], 21, True), ([], 1, False)],
)
def test_three_compactions_within_ten_turns_make_no_headway(turns, turn, refilling):
    assert is_refilling(turns, turn) is refilling
