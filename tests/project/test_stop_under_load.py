"""`up` that is told to stop while it answers: it ends all the same, and what it said was whole."""

import signal
import threading
import urllib.error

import pytest

from tests.project.test_up import PATIENCE_S, Product

VISITORS = 4


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_while_requests_are_under_way_ends_it(tmp_path, number):
    product = Product(tmp_path / "data")
    product.wait_for_greeting()
    answered = threading.Semaphore(0)
    wrong: list[int] = []

    def visit() -> None:
        try:
            while True:
                status = product.get("/sign-in/")
                wrong.extend([status] if status != 200 else [])
                answered.release()
        except (urllib.error.URLError, OSError):
            return  # it has stopped

    visitors = [threading.Thread(target=visit) for _ in range(VISITORS)]
    try:
        for visitor in visitors:
            visitor.start()
        for _ in range(3 * VISITORS):
            assert answered.acquire(timeout=PATIENCE_S)
        product.stop(number)
    finally:
        product.process.kill()
        for visitor in visitors:
            visitor.join(PATIENCE_S)
    assert product.process.returncode == 0
    assert wrong == []
    assert not any(visitor.is_alive() for visitor in visitors)
