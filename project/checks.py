"""System checks of the wiring: combinations of settings that would fail late, or in silence."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.core.checks import Warning as Caution
from django.utils.module_loading import import_string

OURS = "palimpsest"
"""The tag under which a start asks for these checks alone: all the others load every page first."""

LOCAL_BROKER = "memory://localhost/"
ONE_PROCESS_LAYERS = frozenset({"project.layers.LoopSafeInMemoryChannelLayer", "channels.layers.InMemoryChannelLayer"})
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@register(OURS)
def middleware_is_async_capable(**_: Any) -> list[CheckMessage]:
    """A sync-only middleware keeps the server from stopping while requests are in flight."""
    return [
        Error(
            f"The middleware {path} is sync-only: with it, the server would not stop on SIGTERM.",
            hint="Use one that says async_capable = True.",
            id="palimpsest.E001",
        )
        for path in settings.MIDDLEWARE
        if not getattr(import_string(path), "async_capable", True)
    ]


@register(OURS)
def live_updates_reach_every_process(**_: Any) -> list[CheckMessage]:
    """With a broker for several processes, a layer for one loses every live update without a word."""
    backend = settings.CHANNEL_LAYERS["default"]["BACKEND"]
    if backend in ONE_PROCESS_LAYERS and settings.CELERY_BROKER_URL != LOCAL_BROKER:
        return [
            Error(
                "The channel layer works inside one process, but the broker is shared: pages would get no live updates.",
                hint="Use the memory broker with this layer, or a layer that crosses processes.",
                id="palimpsest.E002",
            ),
        ]
    return []


@register(OURS)
def origins_are_checked(**_: Any) -> list[CheckMessage]:
    """`*` among the allowed hosts switches the origin check of websockets off."""
    if "*" in settings.ALLOWED_HOSTS:
        return [
            Error(
                'ALLOWED_HOSTS holds "*": any site could then open a websocket in the name of a signed-in person.',
                hint="Name the hosts in PALIMPSEST_ALLOWED_HOSTS.",
                id="palimpsest.E003",
            ),
        ]
    return []


@register(OURS)
def debug_stays_at_home(**_: Any) -> list[CheckMessage]:
    """Debug pages show settings and values of variables, so they are for this machine alone."""
    if settings.DEBUG and not set(settings.ALLOWED_HOSTS) <= {*LOOPBACK, "[::1]"}:
        return [
            Caution(
                "PALIMPSEST_DEBUG is on while other hosts are allowed: errors would show transcripts to whoever meets them.",
                hint="Unset PALIMPSEST_DEBUG, or the public address.",
                id="palimpsest.W004",
            ),
        ]
    return []
