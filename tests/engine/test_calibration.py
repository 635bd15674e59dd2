"""Estimates are brought to what a provider measured, by what its own measurements say, and never beyond reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.engine.calibration import FACTORS, NONE, Calibration, Prompt, calibrate
from sessions_app.engine.signal import Measurement, derive
from sessions_app.engine.terms import Origin, Scope


def prompts(factor: float, overhead: int, estimates: list[int], context: int = 0) -> list[Prompt]:
    return [Prompt(measured=round(overhead + factor * estimate), estimate=estimate, context=context) for estimate in estimates]


STEPS = list(range(1_000, 30_000, 1_500))


def test_a_factor_and_a_constant_are_found_again():
    found = calibrate(prompts(1.4, 22_000, STEPS), base=0)
    assert found.factor == pytest.approx(1.4, abs=0.001)
    assert found.overhead == pytest.approx(22_000, abs=20)
    assert found.request(10_000) == pytest.approx(36_000, abs=20)
    assert found.prompts == len(STEPS)


def test_no_single_odd_request_moves_it():
    odd = prompts(1.4, 22_000, STEPS)
    odd[7] = Prompt(measured=190_000, estimate=odd[7].estimate)
    found = calibrate(odd, base=0)
    assert found.factor == pytest.approx(1.4, abs=0.05)
    assert found.overhead == pytest.approx(22_000, abs=800)


def test_prompts_of_two_contexts_are_never_compared():
    before, after = prompts(1.2, 20_000, STEPS), prompts(1.2, 3_000, [40_000, 41_000, 42_000, 43_000], context=1)
    found = calibrate(before + after, base=-38_000)
    assert found.factor == pytest.approx(1.2, abs=0.001)
    assert found.overhead == pytest.approx(3_000 + 1.2 * 38_000, abs=20)


def test_too_little_says_nothing():
    assert calibrate([], base=0) == NONE
    assert calibrate(prompts(1.4, 22_000, [500, 40_000]), base=0) == NONE
    assert calibrate(prompts(1.4, 22_000, [500, 510, 520, 530, 540]), base=0) == NONE


def test_what_new_prompts_cannot_tell_stays_as_it_was_known():
    known = Calibration(factor=1.3, overhead=9_000, prompts=12)
    assert calibrate([], base=None, known=known) == known
    unknown_view = calibrate(prompts(1.5, 100, STEPS), base=None, known=known)
    assert unknown_view.factor == pytest.approx(1.5, abs=0.001)
    assert unknown_view.overhead == 9_000
    assert calibrate(prompts(1.5, 100, STEPS), base=None) == NONE


@given(
    st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 3)), max_size=60),
    st.none() | st.integers(-(10**6), 10**6),
)
def test_whatever_was_measured_the_factor_stays_within_its_bounds(rows, base):
    found = calibrate([Prompt(measured=measured, estimate=estimate, context=context) for measured, estimate, context in rows], base=base)
    assert FACTORS[0] <= found.factor <= FACTORS[1]
    assert found.overhead >= 0
    assert found.request(0) == found.overhead


def test_an_estimate_with_a_calibration_is_of_the_whole_request():
    known = Calibration(factor=1.5, overhead=20_000, prompts=9)
    signal = derive(measurement=None, view_tokens=10_000, calibration=known)
    assert (signal.tokens, signal.origin, signal.scope, signal.measured) == (35_000, Origin.ESTIMATED, Scope.WHOLE_REQUEST, None)


def test_what_came_after_a_measurement_counts_as_the_provider_would_count_it():
    known = Calibration(factor=1.5, overhead=20_000, prompts=9)
    signal = derive(measurement=Measurement(prompt_tokens=40_000, appended_tokens=1_000), view_tokens=10_000, calibration=known)
    assert (signal.tokens, signal.measured, signal.appended) == (41_500, 40_000, 1_500)
