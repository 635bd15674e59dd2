"""System checks of the wiring: combinations of settings that would fail late, or in silence."""

from pathlib import Path
from typing import Any

from channels.exceptions import InvalidChannelLayerError
from channels.layers import get_channel_layer
from django.conf import settings
from django.core.checks import CheckMessage, Error, register, run_checks
from django.core.checks import Warning as Caution
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

OURS = "palimpsest"
"""The tag under which a start asks for these checks alone: all the others load every page first."""

MEMORY = "memory://"
SQLITE = "project.sqlite"
CORE_REDIS_LAYER = "channels_redis.core.RedisChannelLayer"
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


def _error(number: int, what: str, hint: str) -> list[CheckMessage]:
    return [Error(what, hint=hint, id=f"palimpsest.E{number:03}")]


def _is_for_one_process() -> bool:
    return settings.CHANNEL_LAYERS["default"]["BACKEND"] in ONE_PROCESS_LAYERS


def _broker_is_memory() -> bool:
    return str(settings.CELERY_BROKER_URL).startswith(MEMORY)


def _is_sqlite() -> bool:
    return bool(settings.DATABASES["default"]["ENGINE"] == SQLITE)


@register(OURS)
def live_updates_reach_every_process(**_: Any) -> list[CheckMessage]:
    """With a broker or a database for several processes, a layer for one loses every live update without a word."""
    if not _is_for_one_process() or (_broker_is_memory() and _is_sqlite()):
        return []
    shared = "database" if _broker_is_memory() else "broker"
    return _error(
        2,
        f"The channel layer works inside one process, but the {shared} is shared: pages would get no live updates.",
        "Use a layer that crosses processes: channels_redis.pubsub.RedisPubSubChannelLayer.",
    )


@register(OURS)
def tasks_reach_a_worker(**_: Any) -> list[CheckMessage]:
    """A queue in the memory of one process is no queue for the workers of a shared database."""
    if not _broker_is_memory() or _is_sqlite():
        return []
    return _error(
        5,
        "The database is shared, but tasks are queued in the memory of one process: no worker would ever see them.",
        "Name a broker in PALIMPSEST_BROKER_URL (redis:// or amqp://).",
    )


@register(OURS)
def the_database_is_for_several_processes(**_: Any) -> list[CheckMessage]:
    """Workers on other machines would each have a SQLite file of their own, and find no task's row in it."""
    if not _is_sqlite() or _broker_is_memory():
        return []
    return _error(
        6,
        "The broker is shared, but the database is SQLite: workers elsewhere would not find what their tasks are about.",
        "Name a PostgreSQL database in PALIMPSEST_DATABASE_URL.",
    )


@register(OURS)
def the_layer_can_be_made(**_: Any) -> list[CheckMessage]:
    """Channels answers None for a layer that it could not make, and then nothing is ever sent."""
    try:
        layer, why = get_channel_layer(), "it is None"
    except (InvalidChannelLayerError, ImportError, TypeError, ValueError) as error:
        layer, why = None, str(error)
    if layer is not None:
        return []
    return _error(7, f"The channel layer cannot be made ({why}): pages would get no live updates.", "Correct CHANNEL_LAYERS.")


@register(OURS)
def the_layer_drops_nothing(**_: Any) -> list[CheckMessage]:
    """The core layer holds 100 messages for a slow reader, and then drops the newest ones."""
    if settings.CHANNEL_LAYERS["default"]["BACKEND"] != CORE_REDIS_LAYER:
        return []
    return _error(
        8,
        "The channel layer is Redis' core layer, which drops the newest messages when a reader is slow.",
        "Use channels_redis.pubsub.RedisPubSubChannelLayer.",
    )


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


def refuse_missing_static_files() -> None:
    """With names by content, every page is an error page until the files are collected. Raises `ImproperlyConfigured`."""
    if settings.STATIC_ROOT and not Path(settings.STATIC_ROOT, "staticfiles.json").exists():
        raise ImproperlyConfigured(
            f"There are no collected static files in {settings.STATIC_ROOT}, so no page could be shown. "
            "Run: python3 manage.py collectstatic --no-input. Nothing was started."
        )


def refuse_work_that_nobody_does() -> None:
    """For a server that only serves pages: with the memory broker it would take requests that no worker sees."""
    if _broker_is_memory():
        raise ImproperlyConfigured(
            "Pages alone need a database and a broker that workers share: name them in PALIMPSEST_DATABASE_URL and PALIMPSEST_REDIS_URL. "
            "Without services, `python3 manage.py up` runs the whole product. Nothing was started."
        )


def refuse_unsafe_settings() -> None:
    """For processes that Django's own commands do not start. Raises `ImproperlyConfigured` on the first error of ours."""
    for message in run_checks(tags=[OURS]):
        if message.is_serious():
            raise ImproperlyConfigured(f"{' '.join(filter(None, (message.msg, message.hint)))} Nothing was started.")
