"""A real server, a real worker and a real browser, for the tests of this folder."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from celery.worker import state as workers
from django.conf import settings
from django.db import connection
from django.test import Client

from sessions_app.events import deferred
from sessions_app.services import memory_beside
from tests.e2e.watching import Watch
from tests.importing import imported
from tests.services.compaction_scenes import PATIENCE_S, wait_until

CHROMIUM = os.environ.get("CHROMIUM_PATH", "/usr/bin/chromium")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE_MS = 60_000
"""A busy machine takes its time; what never comes is waited for no longer than this."""


@pytest.fixture(scope="session")
def browser() -> Iterator:
    """Chromium, started once. Where it is missing tests are skipped, except in CI, where that is a failure."""
    if not Path(CHROMIUM).exists():
        message = f"There is no browser at {CHROMIUM}; install chromium or set CHROMIUM_PATH."
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def worker(django_db_setup) -> Iterator[None]:
    """The workers that the product itself runs in its process."""
    from project.embedded import BackgroundWork

    running = BackgroundWork(sweeps=False)  # between two tests there is no database to sweep
    running.start()
    yield
    running.stop()


@pytest.fixture(autouse=True)
def nothing_left_running(worker, transactional_db) -> Iterator[None]:
    """What a test leaves behind ends before its database is emptied: what it writes would stand in the next test's."""
    yield
    wait_until(lambda: not workers.active_requests and not workers.reserved_requests)
    assert memory_beside.wait_for_all(PATIENCE_S)
    assert deferred.flush(PATIENCE_S)


@pytest.fixture
def in_thread(transactional_db) -> Callable:
    """Calls something in a thread: in this one runs the browser driver's loop, and beside it no notice can be sent."""

    def call(work: Callable):
        def run():
            try:
                return work()
            finally:
                connection.close()

        with ThreadPoolExecutor(1) as pool:
            return pool.submit(run).result()

    return call


@pytest.fixture
def bring(in_thread) -> Callable:
    """Imports a transcript; see `tests.importing.imported`."""
    return lambda *arguments, **options: in_thread(lambda: imported(*arguments, **options))


@pytest.fixture
def watch() -> Watch:
    """Collects what no page may do; see `Watch`."""
    return Watch()


@pytest.fixture
def open_as(browser, live_url, worker, transactional_db, watch) -> Iterator[Callable]:
    """Opens a window of its own for a user (or for nobody) and answers its page. Fails the test if a page misbehaved."""
    contexts = []

    def open_window(user=None, *, scheme: str = "light"):
        context = browser.new_context(
            base_url=live_url, color_scheme=scheme, viewport={"width": 1400, "height": 900}, reduced_motion="reduce"
        )
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        if user is not None:
            client = Client()
            client.force_login(user)
            context.add_cookies(
                [{"name": settings.SESSION_COOKIE_NAME, "value": client.cookies[settings.SESSION_COOKIE_NAME].value, "url": live_url}]
            )
        page = context.new_page()
        watch.follow(page, live_url)
        return page

    yield open_window
    for context in contexts:
        context.close()
    assert watch.complaints == []


@pytest.fixture(scope="session")
def check_access() -> Callable:
    """Runs axe on the open page and fails with what it found, by rule and place."""
    from axe_playwright_python.sync_playwright import Axe

    axe = Axe()

    def check(page) -> None:
        found = axe.run(page).response["violations"]
        assert [(rule["id"], [node["target"] for node in rule["nodes"]][:5]) for rule in found] == []

    return check
