"""The cast, and what every test shares."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import Group, User
from django.core.cache import cache
from hypothesis import HealthCheck, settings

from project import embedded
from sessions_app.events import deferred
from sessions_app.events.actors import Actor
from sessions_app.models import ActorKind
from sessions_app.permissions import ADMINS, OPERATORS, SUPPORT
from sessions_app.providers.scripted import ScriptedSummariser
from sessions_app.services import memory_beside
from tests.services.compaction_scenes import PATIENCE_S, HeldSummaries
from tests.serving import live_url

__all__ = ["live_url"]

# The browser driver's loop runs in the main thread, where tests also use the ORM.
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")

# A machine that is busy with something else must not turn a test red.
settings.register_profile("palimpsest", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("palimpsest")

# A script that starts the tests in the background has Ctrl-C ignored, also in the processes that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

PASSWORD = "correct horse battery"
BROWSER_TESTS = Path(__file__).parent / "e2e"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Browser tests come last: the driver leaves a loop in this thread, after which no async test can run."""
    for item in items:  # before the others, since `-m` looks at the marks
        if BROWSER_TESTS in item.path.parents:
            item.add_marker(pytest.mark.e2e)
    yield
    items.sort(key=lambda item: BROWSER_TESTS in item.path.parents)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown() -> None:
    """Reads are written a moment later: by then they would stand in the next test's database."""
    deferred.flush(PATIENCE_S)
    memory_beside.wait_for_all(PATIENCE_S)


@pytest.fixture(autouse=True, scope="session")
def patient_workers() -> Iterator[None]:
    """What the product gives its own threads to stop is for machines that people wait at."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("INTERRUPT_S", "STOP_S"):
            patch.setattr(embedded, name, PATIENCE_S)
        yield


@pytest.fixture(autouse=True)
def empty_cache() -> None:
    """What one test's pages counted and rendered is of another database: filters of the list would lack its agents."""
    cache.clear()


@pytest.fixture(autouse=True)
def keepers_that_can_see(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A keeper's own connection sees nothing of a test's open transaction, and would take the attempt beside it for lost."""
    mark = request.node.get_closest_marker("django_db")
    if "transactional_db" not in request.fixturenames and not (mark is not None and mark.kwargs.get("transaction")):
        monkeypatch.setattr("sessions_app.services.compactions.keeper.POLL_S", 3_600)


@pytest.fixture
def queue_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is queued is taken by nobody: tests run it themselves."""
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *task: None)


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripted model answers at once."""
    monkeypatch.setattr("sessions_app.providers.scripted_model.PAUSE_S", 0)


@pytest.fixture
def summaries(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldSummaries]:
    """Scripted summaries come when they are let, and else at the end of the test."""
    held = HeldSummaries()
    monkeypatch.setattr(ScriptedSummariser, "summarise", lambda _, *asked: held.summarise(*asked))
    yield held
    held.let_all()


def make_user(name: str, group: str | None) -> User:
    user = User.objects.create_user(name, password=PASSWORD)
    if group:
        user.groups.add(Group.objects.get_or_create(name=group)[0])
    return user


@pytest.fixture
def operator(db) -> User:
    return make_user("olga", OPERATORS)


@pytest.fixture
def support(db) -> User:
    return make_user("ana", SUPPORT)


@pytest.fixture
def admin(db) -> User:
    return make_user("ada", ADMINS)


@pytest.fixture
def outsider(db) -> User:
    """Signed in, but in no group."""
    return make_user("otto", None)


@pytest.fixture
def support_actor() -> Actor:
    return Actor(kind=ActorKind.USER, id="1", name="ana", role="support")


@pytest.fixture
def operator_actor() -> Actor:
    return Actor(kind=ActorKind.USER, id="2", name="olga", role="operator")
