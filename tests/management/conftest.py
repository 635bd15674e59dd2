"""What the tests of commands share."""

import pytest


@pytest.fixture(autouse=True)
def _nobody_shares_the_queue(settings) -> None:
    """Commands run attempts themselves, as they do where a queue does not leave its process; `tests/distributed` has workers."""
    settings.CELERY_BROKER_URL = "memory://localhost/"
