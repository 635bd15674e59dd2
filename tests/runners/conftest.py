"""What tests of runners hold back, they let go however they end."""

import threading
from collections.abc import Iterator

import pytest


@pytest.fixture
def held() -> Iterator[threading.Event]:
    """Holds an answer back until it is set; set at the end of the test."""
    event = threading.Event()
    yield event
    event.set()
