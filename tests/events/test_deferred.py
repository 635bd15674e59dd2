"""Events that nobody waits for: written soon, in order, many at once, and none lost."""

import threading
from contextlib import contextmanager

import pytest
from django.db import OperationalError, connection, transaction

from sessions_app.events import deferred, log
from sessions_app.events.actors import system_actor
from sessions_app.events.types import EventType
from sessions_app.events.verify import verify_all
from sessions_app.models import Event
from sessions_app.services import access
from tests.engine.histories import Story
from tests.services.compaction_scenes import PATIENCE_S, wait_until
from tests.services.trouble import closed_to_writing
from tests.stored import store_session

ACTOR = system_actor("test")
STREAM = "access:2026-11-30"


def append(number: int) -> None:
    deferred.append(STREAM, EventType.SESSION_VIEWED, actor=ACTOR, target=("session", str(number)))


def written() -> list[str]:
    return list(Event.objects.filter(stream=STREAM).order_by("seq").values_list("target_id", flat=True))


@pytest.mark.django_db
def test_within_a_transaction_an_event_belongs_to_it():
    with transaction.atomic():
        append(1)
        assert written() == ["1"]
        transaction.set_rollback(True)
    assert written() == []


@pytest.mark.django_db(transaction=True)
def test_outside_of_one_the_caller_does_not_wait_and_the_order_stays():
    for number in range(450):
        append(number)
    assert deferred.flush(PATIENCE_S)
    assert written() == [str(number) for number in range(450)]
    assert verify_all()[1] == []


@pytest.mark.django_db(transaction=True)
def test_it_is_written_without_anybody_asking_for_it():
    append(1)
    wait_until(lambda: written() == ["1"])


@pytest.mark.django_db(transaction=True)
def test_many_are_written_in_one_transaction(django_assert_num_queries, monkeypatch):
    commits: list[int] = []
    real = deferred._write_all

    def counted(batch):
        commits.append(len(batch))
        real(batch)

    monkeypatch.setattr(deferred, "_write_all", counted)
    monkeypatch.setattr(deferred, "GATHER_S", PATIENCE_S)
    for number in range(50):
        append(number)
    assert deferred.flush(PATIENCE_S)
    assert commits == [50]


@pytest.mark.django_db(transaction=True)
def test_a_database_that_is_locked_for_a_while_loses_nothing(monkeypatch):
    monkeypatch.setattr(deferred, "RETRY_S", 0.05)
    failures, real = [OperationalError("database is locked")] * 3, transaction.atomic

    @contextmanager
    def locked():
        if failures:
            raise failures.pop()
        with real():
            yield

    monkeypatch.setattr(deferred.transaction, "atomic", lambda *_, **__: locked())
    for number in range(5):
        append(number)
    assert deferred.flush(PATIENCE_S)
    assert (written(), failures) == ([str(number) for number in range(5)], [])


@pytest.fixture
def full_disk(monkeypatch):
    """Nothing can be written until the returned function is called."""
    monkeypatch.setattr(deferred, "RETRY_S", 0.05)
    real, is_full = deferred._write_all, threading.Event()
    is_full.set()

    def write(batch):
        if is_full.is_set():
            raise OperationalError("database or disk is full")
        real(batch)

    monkeypatch.setattr(deferred, "_write_all", write)
    yield is_full.clear
    is_full.clear()
    assert deferred.flush(PATIENCE_S)


def fails() -> bool:
    return bool(deferred._writer._failure)


@pytest.mark.django_db(transaction=True)
def test_while_nothing_can_be_written_nothing_more_is_taken_and_what_was_taken_is_kept(full_disk):
    append(1)
    wait_until(fails)
    with pytest.raises(deferred.NotRecorded, match="disk is full"):
        append(2)
    full_disk()
    assert deferred.flush(PATIENCE_S)
    append(3)
    assert deferred.flush(PATIENCE_S)
    assert written() == ["1", "3"]


@pytest.mark.django_db(transaction=True)
def test_a_page_is_shown_again_when_reads_can_be_written_down_again(full_disk, client, operator):
    access.seen.clear()
    client.raise_request_exception = False
    client.force_login(operator)
    one, other = (store_session(Story().user(f"The story of {name}").entries, title=name) for name in ("one", "other"))
    assert "The story of one" in client.get(f"/sessions/{one.pk}/").content.decode()
    wait_until(fails)
    refused = client.get(f"/sessions/{other.pk}/")
    assert refused.status_code == 507
    assert "The story of other" not in refused.content.decode()
    full_disk()
    assert deferred.flush(PATIENCE_S)
    assert "The story of other" in client.get(f"/sessions/{other.pk}/").content.decode()
    assert deferred.flush(PATIENCE_S)
    viewed = Event.objects.filter(type="session.viewed").order_by("seq").values_list("target_id", flat=True)
    assert list(viewed) == [str(one.pk), str(other.pk)]


@pytest.mark.django_db(transaction=True)
def test_within_at_once_it_is_written_before_it_returns_or_refused():
    with deferred.at_once():
        append(1)
        assert written() == ["1"]
        with closed_to_writing(), pytest.raises(deferred.NotRecorded):
            append(2)
    assert written() == ["1"]


@pytest.mark.django_db(transaction=True)
def test_one_that_cannot_be_written_does_not_hold_up_the_others():
    append(1)
    deferred.append(STREAM, EventType.SESSION_VIEWED, actor=ACTOR, payload={"cannot": object()})
    append(2)
    assert deferred.flush(PATIENCE_S)
    assert written() == ["1", "2"]


@pytest.mark.django_db(transaction=True)
def test_several_threads_lose_nothing():
    def work(first: int) -> None:
        for number in range(first, first + 100):
            append(number)
        connection.close()

    threads = [threading.Thread(target=work, args=(first,)) for first in (0, 100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert deferred.flush(PATIENCE_S)
    assert sorted(map(int, written())) == list(range(300))
    assert log.access_stream()


def test_what_waits_is_written_when_the_process_stops(tmp_path):
    import os
    import subprocess
    import sys

    script = """
import django; django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from sessions_app.events import deferred
from sessions_app.events.actors import system_actor
from sessions_app.events.types import EventType
for number in range(20):
    deferred.append("access:today", EventType.SESSION_VIEWED, actor=system_actor("test"), target=("session", str(number)))
"""
    count = """
import django; django.setup()
from sessions_app.models import Event
print(Event.objects.count())
"""
    environment = {**os.environ, "PALIMPSEST_DATA_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "project.settings.embedded"}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, capture_output=True)
    said = subprocess.run([sys.executable, "-c", count], env=environment, check=True, capture_output=True, text=True)
    assert said.stdout.split()[-1] == "20"
