"""Keys and addresses of providers in the environment, for this process and those that it starts."""

import pytest

from sessions_app.providers.registry import KEYS
from tests.fakes.model_server import ModelServer


def take_keys_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have some."""
    for variables in KEYS.values():
        for variable in variables:
            monkeypatch.delenv(variable, raising=False)


def point_at(server: ModelServer, provider: str, monkeypatch: pytest.MonkeyPatch, key: str = "sk-secret") -> None:
    """Lets this provider alone be the scripted server."""
    take_keys_away(monkeypatch)
    add_key(server, provider, monkeypatch, key)


def add_key(server: ModelServer, provider: str, monkeypatch: pytest.MonkeyPatch, key: str = "sk-secret") -> None:
    """The same, beside those that there are."""
    key_variable, address = KEYS[provider]
    monkeypatch.setenv(key_variable, key)
    monkeypatch.setenv(address, server.url if provider == "anthropic" else server.openai_url)
