"""The runner that the documents show runs as it stands."""

import re
import subprocess
import sys
import time

import pytest

from sessions_app.engine.terms import Lineage, Status
from sessions_app.runners.base import Health
from sessions_app.services.runners import table
from tests.documents import HOW_TO
from tests.fakes.runner_server import closed_port
from tests.runners.scenes import TESTS, bound_session, compacted
from tests.services.compaction_scenes import PATIENCE_S

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def address(tmp_path):
    """Where the documented runner listens; it ends with the test."""
    (code,) = re.findall(r"```python\n(.*?)```", (HOW_TO / "runners.md").read_text(), re.DOTALL)
    port = closed_port()
    script = tmp_path / "runner.py"
    script.write_text(code.replace("8900", str(port)))
    with subprocess.Popen([sys.executable, str(script)], stderr=subprocess.DEVNULL) as process:
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def test_the_documented_runner_is_healthy_and_compacts(address, monkeypatch):
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *_: None)
    session = bound_session(address)
    until = time.monotonic() + PATIENCE_S
    while (report := table.test(actor=TESTS, runner=session.runner)).health is not Health.UP:
        assert time.monotonic() < until, report.problem
        time.sleep(0.05)
    assert report.capabilities == ("compact", "message")
    attempt = compacted(session)
    assert (attempt.status, attempt.lineage) == (Status.COMPLETED, Lineage.AGENT)
    assert 0 < attempt.tokens_after <= attempt.tokens_before + 20
