"""What the tests of several providers share."""

from collections.abc import Iterator

import pytest

from sessions_app.providers import limits
from sessions_app.providers.registry import KEYS
from tests.fakes.keys import add_key, take_keys_away
from tests.fakes.model_server import ModelServer, say

SUMMARY = "## Primary request and intent\nFix the parser.\n\n## Next step\nRun the tests."


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """Both providers, of whose models nothing was learnt yet. It answers with `SUMMARY`."""
    take_keys_away(monkeypatch)
    limits.forget()
    with ModelServer(reply=lambda _: say(SUMMARY)) as running:
        for provider in KEYS:
            add_key(running, provider, monkeypatch)
        yield running
    limits.forget()
