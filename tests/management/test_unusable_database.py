"""What every command says when its database can't be used, Django's own ones too; and what version of the product it is."""

import os
import re
import sqlite3
from contextlib import closing
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from django.core.management import CommandError
from django.db import DataError, OperationalError, ProgrammingError, connection
from django.db.backends.sqlite3.base import DatabaseWrapper

from sessions_app.management import preflight
from tests.management.commands import shell

AWAY = {
    "PALIMPSEST_DATABASE_URL": "postgres://palimpsest@127.0.0.1:1/palimpsest",
    "PALIMPSEST_REDIS_URL": "redis://127.0.0.1:1/0",
    "PALIMPSEST_SECRET_KEY": "k" * 50,
}


@pytest.mark.parametrize(
    "command", [("migrate",), ("showmigrations",), ("sweep",), ("sessions",), ("create_user", "ana", "--role", "support")]
)
def test_a_server_that_is_away_is_told_in_one_sentence(tmp_path, command):
    done = shell(tmp_path, *command, **AWAY)
    assert (done.returncode, done.stdout) == (1, "")
    said = done.stderr.removeprefix("CommandError: ").splitlines()
    assert len(said) == 1
    assert said[0].startswith("The database palimpsest cannot be used (")
    assert said[0].endswith("Start its server, or correct PALIMPSEST_DATABASE_URL.")


def test_a_file_that_is_no_database_is_told_by_migrate_as_well(tmp_path):
    (tmp_path / "palimpsest.sqlite3").write_bytes(b"a letter, and no database " * 100)
    done = shell(tmp_path, "migrate")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "cannot be used (file is not a database)" in done.stderr


@pytest.mark.django_db  # no other connection is opened otherwise
def test_one_that_another_program_holds_is_told_and_no_copy_is_asked_for(tmp_path, monkeypatch):
    path = tmp_path / "palimpsest.sqlite3"
    with closing(sqlite3.connect(path, isolation_level=None)) as held:
        held.execute("CREATE TABLE held (id)")
        held.execute("BEGIN EXCLUSIVE")
        own = DatabaseWrapper(connection.settings_dict | {"NAME": str(path), "OPTIONS": {"timeout": 0.1}}, "default")
        monkeypatch.setattr(preflight, "connection", own)
        with pytest.raises(CommandError) as refused:
            preflight.prepare_database()
        own.close()
    assert "cannot be used (database is locked). Nothing was changed. Stop the program that holds it" in str(refused.value)
    assert "copy" not in str(refused.value)


def test_who_asks_for_a_traceback_gets_it(tmp_path):
    done = shell(tmp_path, "migrate", "--traceback", **AWAY)
    assert "Traceback" in done.stderr


def test_a_database_that_was_never_made_is_told_apart_from_a_server_that_is_away(tmp_path):
    if connection.vendor != "postgresql":
        pytest.skip("There is no PostgreSQL: set PALIMPSEST_DATABASE_URL.")
    given = os.environ.get("PALIMPSEST_DATABASE_URL") or os.environ["DATABASE_URL"]
    done = shell(tmp_path, "migrate", **AWAY | {"PALIMPSEST_DATABASE_URL": urlsplit(given)._replace(path="/nobody_made_it").geturl()})
    assert done.returncode == 1
    assert "Make it on its server (createdb)" in done.stderr


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ('FATAL:  database "palimpsest" does not exist', "Make it on its server (createdb)"),
        ('FATAL:  password authentication failed for user "ana"', "Correct the user and the password"),
        ('FATAL:  role "ana" does not exist', "Make that user on its server (createuser)"),
        ('FATAL:  no pg_hba.conf entry for host "10.0.0.7", user "ana", database "palimpsest"', "Let its server take this user"),
        ("permission denied for schema public", "the owner of the database"),
        ('permission denied for database "palimpsest"', "the owner of the database"),
        ("failed to resolve host 'db.internal'", "Correct the host"),
        ("FATAL:  sorry, too many clients already", "PALIMPSEST_DATABASE_POOL"),
        ("FATAL:  the database system is starting up", "try again in a moment"),
        ("FATAL:  the database system is shutting down", "when it is back"),
        ("connection timeout expired", "Start its server"),
    ],
)
def test_what_postgresql_says_has_a_remedy_of_its_own(monkeypatch, said, remedy):
    monkeypatch.setattr(preflight, "connection", SimpleNamespace(vendor="postgresql", settings_dict={"NAME": "palimpsest"}))
    sentence = preflight.unusable(OperationalError(said), "Nothing was changed.")
    assert sentence.startswith(f"The database palimpsest cannot be used ({said}). Nothing was changed. ")
    assert remedy in sentence.split("Nothing was changed. ")[1]


@pytest.mark.parametrize(
    ("said", "free", "remedy"),
    [
        ("database or disk is full", 10**9, "Free some space on its disk"),
        ("disk I/O error", 0, "Free some space on its disk"),
        ("disk I/O error", 10**9, "See whether its disk is well"),
        ("database is locked", 0, "Stop the program that holds it"),
        ("file is not a database", 10**9, "Put a copy of it back"),
    ],
)
def test_what_is_wrong_with_a_file_has_a_remedy_of_its_own(monkeypatch, tmp_path, said, free, remedy):
    there = SimpleNamespace(vendor="sqlite", settings_dict={"NAME": tmp_path / "palimpsest.sqlite3"})
    monkeypatch.setattr(preflight, "connection", there)
    monkeypatch.setattr(preflight.shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    assert f"{remedy}, or give another directory" in preflight.unusable(OperationalError(said), "Nothing was changed.")


def test_a_statement_that_is_wrong_is_no_matter_of_the_database():
    assert preflight.is_about_the_database(OperationalError("the connection is closed"))
    assert preflight.is_about_the_database(ProgrammingError("permission denied for schema public"))
    assert not preflight.is_about_the_database(ProgrammingError('column "x" does not exist'))
    assert not preflight.is_about_the_database(DataError("value out of range"))


@pytest.mark.parametrize("asked", ["--version", "version"])
def test_the_version_is_the_products(tmp_path, asked):
    done = shell(tmp_path, asked)
    assert done.returncode == 0
    assert re.fullmatch(r"Palimpsest \d+\.\d+\.\d+ \(Django 5\.[\d.]+, Python 3[\d.]+\)\n", done.stdout)
