"""Whether a compaction is due: thresholds, the change of tier, the change of model. Each verdict explains itself."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.engine.policy import Policy
from sessions_app.engine.signal import Measurement, derive
from sessions_app.engine.terms import Trigger
from sessions_app.engine.triggers import Capacity, Reason, Route, TierResult, before_turn, model_switch, tier_upgrade

POLICY = Policy()


def signal(tokens: int, *, measured: bool = True):
    measurement = Measurement(prompt_tokens=tokens, appended_tokens=0) if measured else None
    return derive(measurement=measurement, view_tokens=tokens)


@pytest.mark.parametrize(("window", "trigger"), [(100_000, 80_000), (1_000_000, 250_000), (128_000, 102_400)])
def test_the_trigger_is_the_lesser_of_share_and_cap_and_inclusive(window, trigger):
    assert before_turn(signal=signal(trigger), policy=POLICY, window=window).fires
    verdict = before_turn(signal=signal(trigger - 1), policy=POLICY, window=window)
    assert not verdict.fires
    assert verdict.explanation == f"It did not fire: {trigger - 1:,} tokens (measured) are under the trigger of {trigger:,}."


def test_off_is_off_however_full_the_view_is():
    """Invariant 12."""
    verdict = before_turn(signal=signal(10**9), policy=Policy(enabled=False), window=100_000)
    assert (verdict.fires, verdict.reason) == (False, Reason.DISABLED)


def test_an_estimate_over_the_preflight_share_fires_only_where_nothing_was_measured():
    late = Policy(threshold_pct=0.95, keep_recent_fraction=0.1)
    assert before_turn(signal=signal(90_000), policy=late, window=100_000).reason is Reason.UNDER_TRIGGER
    verdict = before_turn(signal=signal(90_000, measured=False), policy=late, window=100_000)
    assert (verdict.fires, verdict.trigger, verdict.limit) == (True, Trigger.PREFLIGHT, 85_000)
    assert not before_turn(signal=signal(85_000, measured=False), policy=late, window=100_000).fires


def test_an_open_circuit_holds_back_only_what_would_have_fired():
    assert before_turn(signal=signal(90_000), policy=POLICY, window=100_000, circuit_open=True).reason is Reason.CIRCUIT_OPEN
    assert before_turn(signal=signal(10), policy=POLICY, window=100_000, circuit_open=True).reason is Reason.UNDER_TRIGGER


@given(st.integers(0, 10**7), st.integers(1_000, 2_000_000), st.booleans(), st.booleans())
def test_every_verdict_has_a_sentence(tokens, window, measured, is_open):
    verdict = before_turn(signal=signal(tokens, measured=measured), policy=POLICY, window=window, circuit_open=is_open)
    assert verdict.explanation.startswith("It fired" if verdict.fires else "It did not fire")


def test_a_smaller_model_that_the_view_does_not_fit_asks_for_a_compaction_first():
    assert model_switch(view_tokens=150_000, new_window=128_000, policy=POLICY).fires
    assert not model_switch(view_tokens=50_000, new_window=128_000, policy=POLICY).fires


UP = Route(routed_tier="c3", previous_tier="c2")
FULL = Capacity(window=100_000, durable=90_000, active_request=100, entries=40, protected_entries=1)


def changed(**values):
    return msgspec.structs.replace(FULL, **values)


@pytest.mark.parametrize(
    ("route", "capacity", "policy", "result", "reason"),
    [
        (UP, FULL, Policy(tier_upgrade_enabled=False), TierResult.NOT_APPLICABLE, Reason.UPGRADE_DISABLED),
        (Route(routed_tier="c1", previous_tier="c0"), FULL, POLICY, TierResult.NOT_APPLICABLE, Reason.NOT_AN_UPGRADE),
        (
            Route(routed_tier="c3", previous_tier="c2", routing_applied=False),
            FULL,
            POLICY,
            TierResult.NOT_APPLICABLE,
            Reason.NOT_ROUTED,
        ),
        (Route(routed_tier="c3", previous_tier="c3"), FULL, POLICY, TierResult.NOT_APPLICABLE, Reason.NOT_AN_UPGRADE),
        (Route(routed_tier="c3"), FULL, POLICY, TierResult.NOT_APPLICABLE, Reason.NOT_AN_UPGRADE),
        (Route(routed_tier="c3", base_tier="c1"), FULL, POLICY, TierResult.NOT_APPLICABLE, Reason.NOT_AN_UPGRADE),
        (UP, changed(is_background=True), POLICY, TierResult.NOT_APPLICABLE, Reason.BACKGROUND_SESSION),
        (UP, changed(window=0), POLICY, TierResult.HANDLED, Reason.NO_CAPACITY),
        (UP, changed(attempted_this_turn=True), POLICY, TierResult.HANDLED, Reason.ALREADY_ATTEMPTED),
        (UP, changed(entries=0), POLICY, TierResult.HANDLED, Reason.NO_ENTRIES),
        (UP, changed(durable=83_333), POLICY, TierResult.HANDLED, Reason.WITHIN_BUDGET),
        (UP, changed(protected_entries=40), POLICY, TierResult.HANDLED, Reason.ALL_PROTECTED),
        (UP, changed(active_request=90_000), POLICY, TierResult.HANDLED, Reason.REQUEST_TOO_LARGE),
        (UP, changed(circuit_open=True), POLICY, TierResult.HANDLED, Reason.CIRCUIT_OPEN),
    ],
)
def test_a_change_of_tier_that_asks_for_no_compaction_says_why(route, capacity, policy, result, reason):
    answer, verdict = tier_upgrade(route, capacity, policy)
    assert (answer, verdict.reason, verdict.fires) == (result, reason, False)
    assert verdict.explanation.startswith("It did not fire: ")


@pytest.mark.parametrize(
    "route",
    [
        UP,
        Route(routed_tier="t3", previous_tier="t2"),
        Route(routed_tier="c3", previous_tier="c0"),
        Route(routed_tier="c3", previous_tier="t1"),
        Route(routed_tier="c3", base_tier="c1", final_tier="c3"),
    ],
)
def test_a_move_to_the_highest_tier_with_a_full_history_asks_for_one(route):
    answer, verdict = tier_upgrade(route, FULL, POLICY)
    assert answer is None
    assert verdict.fires
    assert verdict.tokens == 108_000  # the margin multiplies the history
