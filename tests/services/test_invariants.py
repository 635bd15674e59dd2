"""Whatever comes in whatever order (requests, cancels, decisions, appends, forks, crashes, sweeps), the invariants hold after each step."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.services.steered_session import SteeredSession

EXAMPLES, STEPS = 30, 20


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_invariants_hold_under_every_order_of_what_may_happen(monkeypatch):
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *task: None)
    monkeypatch.setattr("sessions_app.services.compactions.keeper.POLL_S", 0.01)
    health = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    run_state_machine_as_test(
        SteeredSession, settings=settings(max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None, suppress_health_check=health)
    )
