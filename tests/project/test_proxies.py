"""Whose address counts when proxies stand in front."""

import pytest

from project.proxies import ForwardedAddress

LIE, CLIENT, INNER = "6.6.6.6", "203.0.113.9", "10.0.0.2"


async def seen(proxies: int, *headers: str, kind: str = "http") -> str:
    told = {}

    async def application(scope, receive, send):
        told.update(scope)

    scope = {"type": kind, "headers": [(b"x-forwarded-for", value.encode()) for value in headers], "client": ("127.0.0.1", 5)}
    await ForwardedAddress(application, proxies)(scope, None, None)
    return told["client"][0]


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    ("proxies", "headers", "address"),
    [
        (0, [f"{LIE}, {CLIENT}"], "127.0.0.1"),
        (1, [f"{LIE}, {CLIENT}"], CLIENT),
        (2, [f"{LIE}, {CLIENT}, {INNER}"], CLIENT),
        (2, [f"{LIE}, {CLIENT}", INNER], CLIENT),
        (2, [CLIENT], "127.0.0.1"),
        (1, [], "127.0.0.1"),
        (1, ["nonsense"], "127.0.0.1"),
        (1, ["2001:db8::1"], "2001:db8::1"),
    ],
)
async def test_only_what_the_trusted_proxies_wrote_is_believed(kind, proxies, headers, address):
    assert await seen(proxies, *headers, kind=kind) == address


async def test_other_scopes_pass_untouched():
    told = []

    async def application(scope, receive, send):
        told.append(scope)

    await ForwardedAddress(application, 1)({"type": "lifespan"}, None, None)
    assert told == [{"type": "lifespan"}]
