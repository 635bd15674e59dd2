"""Workers and web processes of their own, on the services that the environment names."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.db import connection

from project.celery import celery_app
from tests.distributed.held_model import HeldModel
from tests.distributed.processes import Process, web, worker

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All are skipped, and say so, where the environment names no services: those that bring their own take minutes."""
    if settings.CELERY_BROKER_URL.startswith("memory:"):
        reason = "There are no services: set PALIMPSEST_DATABASE_URL and PALIMPSEST_REDIS_URL."
        for item in items:
            if HERE in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def model() -> Iterator[HeldModel]:
    with HeldModel() as running:
        yield running


@pytest.fixture
def environment(transactional_db, tmp_path, model) -> dict[str, str]:
    """That of a process which works on the database of the tests."""
    celery_app.control.purge()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DJANGO_", "PYTEST_"))}
    url = urlsplit(os.environ.get("PALIMPSEST_DATABASE_URL") or os.environ["DATABASE_URL"])
    return kept | {
        "PALIMPSEST_DATABASE_URL": url._replace(path=f"/{connection.settings_dict['NAME']}").geturl(),
        "PALIMPSEST_SECRET_KEY": "k" * 50,
        "PALIMPSEST_DATA_DIR": str(tmp_path / "data"),
        "PALIMPSEST_LOG_FORMAT": "console",
        **model.environment,
    }


@pytest.fixture
def running() -> Iterator[list[Process]]:
    """Everything that a test started; what still runs at its end is killed."""
    started: list[Process] = []
    yield started
    for process in started:
        process.kill()


@pytest.fixture
def start_worker(environment, running, tmp_path) -> Callable[..., Process]:
    """Starts a worker with this pool and waits until it takes tasks."""

    def start(pool: str = "prefork", *options: str) -> Process:
        process = worker(environment, tmp_path / f"worker-{len(running)}.log", pool, *options)
        running.append(process)
        process.wait_for("worker_ready")
        return process

    return start


@pytest.fixture
def start_web(environment, running, tmp_path) -> Callable[..., Process]:
    """Starts a web process and waits until it listens."""

    def start() -> Process:
        process = web(environment, tmp_path / f"web-{len(running)}.log")
        running.append(process)
        process.wait_for_port()
        return process

    return start
