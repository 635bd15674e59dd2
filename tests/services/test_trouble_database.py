"""A database that is busy, closed to writing, or gone: the page says which, the command as well, and all goes on afterwards."""

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from sessions_app.models import Event
from sessions_app.services.imports.outcomes import SourceState
from tests.conftest import PASSWORD
from tests.services.import_scenes import take, the_session, write
from tests.services.trouble import closed_to_writing

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="a server's database has no file to hold, close or move"),
]


@pytest.fixture
def client() -> Client:
    """A browser, to which the server answers also when it fails."""
    return Client(raise_request_exception=False)


@pytest.fixture
def impatient():
    """Waits a tenth of a second for the lock, where the product waits twenty."""
    connection.ensure_connection()
    connection.cursor().execute("PRAGMA busy_timeout = 100")
    yield
    connection.close()


def database() -> Path:
    return Path(connection.settings_dict["NAME"])


@pytest.fixture
def held(impatient):
    """Another program has begun to write and does not end."""
    other = sqlite3.connect(database(), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    yield other
    other.close()


def sign_in(client: Client):
    return client.post("/sign-in/", {"username": "ana", "password": PASSWORD})


def test_a_sign_in_while_another_program_holds_the_database_is_told_to_wait(client, support, held):
    response = sign_in(client)
    assert (response.status_code, response["Retry-After"]) == (503, "10")
    assert "Another program holds the server&#x27;s database" in response.content.decode()
    held.rollback()
    assert sign_in(client).status_code == 302
    assert Event.objects.filter(type="user.signed_in").count() == 1


def test_an_import_meanwhile_fails_in_words_and_the_next_one_brings_it_all(held, tmp_path):
    outcome = take(write(tmp_path))
    assert outcome.state is SourceState.FAILED
    assert "The database was busy for too long." in outcome.error
    held.rollback()
    assert take(write(tmp_path)).state is SourceState.NEW
    assert the_session().is_complete


def test_a_command_says_it_in_one_sentence(held, tmp_path):
    with pytest.raises(CommandError, match="The database was busy for too long"):
        call_command("import_sessions", str(write(tmp_path)))


def test_a_database_that_may_not_be_written_is_said_so(client, support):
    with closed_to_writing():
        response = sign_in(client)
    assert response.status_code == 503
    assert "may read its database but not write it" in response.content.decode()
    assert sign_in(client).status_code == 302


def test_pages_without_a_transcript_are_shown_while_nothing_can_be_written(client, support):
    sign_in(client)
    with time_machine.travel(datetime.now(UTC) + timedelta(minutes=30)), closed_to_writing():
        response = client.get("/password/")
    assert response.status_code == 200


@pytest.mark.parametrize("what", ["removed", "another file"])
def test_a_database_that_is_gone_is_said_so_and_is_back_when_it_is_back(client, support, what):
    connection.close()
    kept = {path: path.read_bytes() for path in database().parent.glob(f"{database().name}*")}
    try:
        for path in kept:
            path.unlink()
        if what == "another file":
            database().write_bytes(b"no database at all, but long enough to look at" * 100)
        response = sign_in(client)
        health = client.get("/healthz")
    finally:
        connection.close()
        for path in database().parent.glob(f"{database().name}*"):
            path.unlink()
        for path, data in kept.items():
            path.write_bytes(data)
    assert response.status_code == 503
    assert "What was stored is not touched by this." in response.content.decode()
    assert health.status_code == 503
    assert sign_in(client).status_code == 302
