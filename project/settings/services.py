"""What the addresses of services mean for Django and Celery. Raises `ImproperlyConfigured` in words for the operator."""

from typing import Any
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured
from kombu import Exchange, Queue

from project.settings.env import Env

SHORTEST_KEY = 50
CONNECT_S = 5
"""How long a service may take to answer at all."""


def required(env: Env, name: str, meaning: str) -> str:
    """A variable without which the distributed form would lose something."""
    value = env.text(name)
    if not value:
        raise ImproperlyConfigured(f"PALIMPSEST_{name} is missing: {meaning} Nothing was started.")
    return value


def address(env: Env, name: str, schemes: tuple[str, ...], meaning: str) -> str:
    """The URL of a service, of one of these schemes."""
    url = required(env, name, meaning)
    if urlsplit(url).scheme not in schemes:
        raise ImproperlyConfigured(
            f"PALIMPSEST_{name} must begin with {' or '.join(f'{scheme}://' for scheme in schemes)}: {meaning} Nothing was started."
        )
    return url


def database(env: Env) -> dict[str, Any]:
    """PostgreSQL. A connection for each task and command; a web process pools them: see `project.postgresql.pool`."""
    url = address(env, "DATABASE_URL", ("postgres", "postgresql"), "the processes of the distributed form share one PostgreSQL database.")
    found: dict[str, Any] = environ.Env.db_url_config(url)
    if not found.get("NAME"):
        raise ImproperlyConfigured(
            "PALIMPSEST_DATABASE_URL names no database; it is like postgres://user:password@host:5432/name. Nothing was started."
        )
    options = found.get("OPTIONS", {})
    return found | {
        "ENGINE": "project.postgresql",
        "CONN_MAX_AGE": 0,
        # A server that was restarted leaves dead connections in the pool.
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {"connect_timeout": CONNECT_S, **options},
    }


def channel_layers(env: Env) -> dict[str, Any]:
    """Redis' own publishing: the core layer holds 100 messages and drops the newest, this one none."""
    url = address(env, "REDIS_URL", ("redis", "rediss", "unix"), "Redis carries live updates from the workers to the pages.")
    return {"default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [url], "prefix": "palimpsest"}}}


def broker_url(env: Env) -> str:
    """Where tasks are queued: the broker that is named, else Redis."""
    if not env.text("BROKER_URL"):
        return env.text("REDIS_URL")
    schemes = ("redis", "rediss", "amqp", "amqps")
    return address(env, "BROKER_URL", schemes, "tasks are queued in Redis or RabbitMQ.")


def task_queues() -> list[Queue]:
    """All queues: a worker that is told none takes from each in turn."""
    return [Queue(name, Exchange(name), routing_key=name) for name in ("compactions", "imports", "turns")]


def secret_key(env: Env) -> str:
    """The key that all processes share: with one each, every process would sign people out of the others."""
    meaning = "all processes sign with the same key. `python3 -c 'import secrets; print(secrets.token_urlsafe(48))'` makes one."
    key = required(env, "SECRET_KEY", meaning)
    if len(key) < SHORTEST_KEY:
        raise ImproperlyConfigured(f"PALIMPSEST_SECRET_KEY has {len(key)} characters; it needs {SHORTEST_KEY}. Nothing was started.")
    return key
