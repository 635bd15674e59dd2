"""Connections that a serving process keeps: the next request has one that is warm, and nothing of the one before it."""

import os
import sqlite3
from pathlib import Path

import pytest
from django.conf import settings
from django.db import OperationalError, connection

from project.sqlite import kept
from project.sqlite.base import DatabaseWrapper

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="a server's connections have a pool of their own"),
]


@pytest.fixture
def keeping(monkeypatch):
    monkeypatch.setattr(kept, "_is_on", True)
    monkeypatch.setattr(kept, "_waiting", [])
    yield
    kept.close_all()


@pytest.fixture
def path(tmp_path) -> Path:
    with sqlite3.connect(tmp_path / "a.sqlite3") as made:
        made.execute("CREATE TABLE numbers (number)")
        made.executemany("INSERT INTO numbers VALUES (?)", ((number,) for number in range(1_000)))
    made.close()
    return tmp_path / "a.sqlite3"


def wrapper(path: Path) -> DatabaseWrapper:
    return DatabaseWrapper({**connection.settings_dict, "NAME": path, "OPTIONS": settings.DATABASES["default"]["OPTIONS"]}, alias="kept")


def count(database: DatabaseWrapper) -> int:
    with database.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM numbers")
        return int(cursor.fetchone()[0])


def test_the_next_one_gets_the_connection_that_was_given_back(keeping, path):
    first, second = wrapper(path), wrapper(path)
    count(first)
    used = first.connection
    first.close()
    assert count(second) == 1_000
    assert second.connection is used
    assert count(first) == 1_000
    assert first.connection is not used
    first.close()
    second.close()


def test_without_a_serving_process_each_closes_its_own(path):
    first = wrapper(path)
    count(first)
    used = first.connection
    first.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        used.execute("SELECT 1")


def test_what_was_not_committed_is_undone(keeping, path):
    first = wrapper(path)
    count(first)
    first.connection.execute("BEGIN IMMEDIATE")
    first.connection.execute("DELETE FROM numbers")
    first.close()
    second = wrapper(path)
    assert count(second) == 1_000
    second.close()


def test_a_result_that_was_not_read_to_its_end_holds_no_old_view(keeping, path):
    first = wrapper(path)
    unread = first.cursor()
    unread.execute("SELECT number FROM numbers")
    unread.fetchone()
    first.close()
    with sqlite3.connect(path) as other:
        other.execute("DELETE FROM numbers WHERE number >= 10")
    other.close()
    second = wrapper(path)
    assert count(second) == 10
    second.close()


def test_a_connection_that_saw_an_error_is_closed(keeping, path):
    first = wrapper(path)
    with pytest.raises(OperationalError):
        first.cursor().execute("SELECT nothing FROM nowhere")
    first.close()
    assert kept.take(path) is None


def test_a_file_that_was_replaced_is_opened_anew(keeping, path):
    first, second = wrapper(path), wrapper(path)
    count(first)
    count(second)
    first.close()
    path.rename(path.with_suffix(".old"))
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE numbers (number)")
    made.close()
    third = wrapper(path)
    assert count(third) == 0
    second.close()  # it was opened to the old one
    fourth = wrapper(path)
    assert count(fourth) == 0
    third.close()
    fourth.close()


def test_a_file_that_is_gone_has_no_connection(keeping, path):
    first = wrapper(path)
    count(first)
    first.close()
    path.unlink()
    assert kept.take(path) is None


def test_only_a_few_are_kept(keeping, path):
    several = [wrapper(path) for _ in range(kept.MOST + 2)]
    for database in several:
        count(database)
    for database in several:
        database.close()
    waiting = list(iter(lambda: kept.take(path), None))
    assert len(waiting) == kept.MOST
    for one in waiting:
        one.close()


def test_a_forked_process_takes_none_of_them(keeping, path):
    first = wrapper(path)
    count(first)
    first.close()
    child = os.fork()
    if not child:
        kept._abandon()  # as a serving process has it done
        os._exit(0 if kept.take(path) is None and not kept.is_on() else 1)
    assert os.waitpid(child, 0)[1] == 0
    waiting = kept.take(path)
    assert waiting is not None
    waiting.close()
