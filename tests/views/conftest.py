"""What the tests of pages share: sessions to list, signed-in browsers."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from django.test import Client

from sessions_app.models import Session

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
MakeSession = Callable[..., Session]


@pytest.fixture
def make_session(db) -> MakeSession:
    numbers = count(1)

    def make(title: str = "A session", **values: object) -> Session:
        number = next(numbers)
        defaults: dict[str, object] = {
            "agent": "claude-code",
            "source_key": f"test:{number}",
            "last_activity_at": NOON - timedelta(minutes=number),
        }
        return Session.objects.create(title=title, **{**defaults, **values})

    return make


@pytest.fixture
def operator_page(client: Client, operator) -> Client:
    client.force_login(operator)
    return client
