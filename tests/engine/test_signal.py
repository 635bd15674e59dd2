"""The signal is a measurement and what came after it, or an estimate; never a mixture that hides which."""

from sessions_app.engine.signal import Measurement, derive
from sessions_app.engine.terms import Origin, Scope


def test_without_a_measurement_the_whole_view_is_estimated():
    signal = derive(measurement=None, view_tokens=5_000)
    assert (signal.tokens, signal.origin, signal.scope, signal.measured) == (5_000, Origin.ESTIMATED, Scope.VIEW, None)


def test_a_measurement_counts_with_all_that_was_appended_since():
    signal = derive(measurement=Measurement(prompt_tokens=40_000, appended_tokens=2_500, at="2026-01-01T00:00:00Z"), view_tokens=9_000)
    assert (signal.tokens, signal.origin, signal.scope) == (42_500, Origin.MEASURED, Scope.WHOLE_REQUEST)
    assert (signal.measured, signal.appended, signal.measured_at) == (40_000, 2_500, "2026-01-01T00:00:00Z")
