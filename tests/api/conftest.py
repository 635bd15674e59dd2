"""What the tests of the API share: sessions, tokens, and a client that speaks JSON."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from sessions_app.events.actors import system_actor
from sessions_app.models import Session
from sessions_app.services import tokens
from tests.views.conftest import make_session

__all__ = ["make_session"]

TESTS = system_actor("tests")


class Api:
    """One caller of the API. `token` is its secret; without one it is a browser, as `client` is."""

    def __init__(self, token: str = "", client: Client | None = None) -> None:
        self.client = client or Client(enforce_csrf_checks=True)
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    def call(self, method: str, address: str, body: Any = None, **headers: str) -> Any:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        data = {} if body is None else {"data": body if isinstance(body, str | bytes) else json.dumps(body)}
        return self.client.generic(method, f"/v1{address}", content_type="application/json", headers=self.headers | sent, **data)

    def get(self, address: str, **headers: str) -> Any:
        return self.call("GET", address, **headers)

    def post(self, address: str, body: Any = None, **headers: str) -> Any:
        return self.call("POST", address, body, **headers)

    def patch(self, address: str, body: Any = None, **headers: str) -> Any:
        return self.call("PATCH", address, body, **headers)


def token_of(owner: User, *scopes: str, **more: Any) -> str:
    made = tokens.make(actor=TESTS, name=more.pop("name", f"of {owner} for {scopes}"), owner=owner.username, scopes=list(scopes), **more)
    return made.secret


def error_of(response: Any) -> dict[str, Any]:
    """The error of an answer, whose envelope holds nothing else."""
    told = response.json()
    assert set(told) == {"error"}, told
    assert {"code", "message", "retryable", "request_id"} <= set(told["error"])
    return told["error"]


ALL_SCOPES: Sequence[str] = ("read", "ingest", "steer", "admin")


@pytest.fixture
def as_operator(operator) -> Api:
    return Api(token_of(operator, *ALL_SCOPES))


@pytest.fixture
def as_support(support) -> Api:
    return Api(token_of(support, *ALL_SCOPES))


@pytest.fixture
def as_admin(admin) -> Api:
    return Api(token_of(admin, *ALL_SCOPES))


@pytest.fixture
def session(make_session: Callable[..., Session]) -> Session:
    return make_session("A session")


@pytest.fixture
def operator_page(client: Client, operator) -> Client:
    client.force_login(operator)
    return client
