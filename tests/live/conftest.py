"""Sockets of signed-in people, through the whole application: origin check, sign-in and gate included."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from channels.db import database_sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from tests.services.compaction_scenes import PATIENCE_S

Connect = Callable[..., AbstractAsyncContextManager[WebsocketCommunicator]]
ORIGIN = b"http://localhost"


def sign_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@asynccontextmanager
async def connected(path: str, user: User | None = None, client: Client | None = None, origin: bytes = ORIGIN) -> AsyncIterator:
    """A socket as a browser opens it; closed at the end."""
    from project.application import application

    if user is not None:
        client = await database_sync_to_async(sign_in)(user)
    headers = [(b"origin", origin), (b"host", b"localhost")]
    if client is not None:
        headers.append((b"cookie", f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}".encode()))
    socket = WebsocketCommunicator(application, path, headers=headers)
    socket.was_accepted, socket.code = await socket.connect(timeout=PATIENCE_S)
    yield socket
    await socket.disconnect()


@pytest.fixture
def connect() -> Connect:
    return connected
