"""`manage.py up` as a person runs it: a process of its own that starts, says so, and stops."""

import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest
from django.core.management import CommandError

from sessions_app.management.preflight import port_number

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE_S = 150


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def command(*arguments: object, **environment: object) -> tuple[list[str], dict[str, str]]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PALIMPSEST_", "DJANGO_", "PYTEST_"))}
    wanted = {f"PALIMPSEST_{name}": str(value) for name, value in environment.items()}
    return [sys.executable, str(ROOT / "manage.py"), *map(str, arguments)], kept | wanted


class Product:
    """One running `up`."""

    def __init__(self, data_dir: Path, *options: object) -> None:
        self.port = free_port()
        self.data_dir = data_dir
        arguments, environment = command("up", "--port", self.port, "--data-dir", data_dir, *options)
        self.log = data_dir.parent / f"{self.port}.log"
        with self.log.open("w") as errors:
            self.process = subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)

    def wait_for_greeting(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("Palimpsest is at "), line + self.log.read_text()
        return line

    def get(self, path: str) -> int:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=PATIENCE_S) as answer:
            return int(answer.status)

    def wait_until_well(self) -> None:
        """The first answers of a busy machine may come too late for it."""
        until, answer = time.monotonic() + PATIENCE_S, 0
        while answer != 200:
            assert time.monotonic() < until
            try:
                answer = self.get("/healthz")
            except urllib.error.HTTPError:
                time.sleep(0.2)

    def stop(self, number: int = signal.SIGTERM) -> tuple[str, str]:
        """What it printed behind its first line, and what it logged."""
        self.process.send_signal(number)
        assert self.process.stdout is not None
        with self.process:  # not communicate(): it would miss what the reading of the first line took along
            out = self.process.stdout.read()
        return out, self.log.read_text()

    def query(self, statement: str) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.data_dir / "palimpsest.sqlite3", timeout=20)) as database:
            return database.execute(statement).fetchall()


def fails(*arguments: object, **environment: object) -> str:
    """The one sentence with which a start is refused."""
    given, environment_given = command("up", *arguments, **environment)
    ended = subprocess.run(given, env=environment_given, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ended.returncode != 0
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1, ended.stderr
    return ended.stderr


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a first start, which filled it with the demo and told the sign-ins."""
    folder = tmp_path_factory.mktemp("up") / "data"
    product = Product(folder)
    product.wait_for_greeting()
    product.wait_until_well()
    out, _ = product.stop()
    assert len(re.findall(r"sign in as (\w+) \((operator|support|admin)\) with the password \S+", out)) == 3
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_second_start_tells_no_password_and_both_signals_stop_it_cleanly(filled, number):
    product = Product(filled)
    product.wait_for_greeting()
    assert product.get("/sign-in/") == 200
    assert product.get("/static/css/base.css") == 200
    with pytest.raises(urllib.error.HTTPError, match="404"):
        product.get("/static/../manage.py")
    out, err = product.stop(number)
    assert product.process.returncode == 0
    assert "password" not in out
    assert "Palimpsest has stopped." in out
    assert "Traceback" not in err


@pytest.mark.slow
def test_a_stop_in_the_middle_of_a_compaction_ends_it_and_the_next_start_goes_on(filled):
    slow = "SELECT scope_id FROM sessions_app_policyvalue WHERE field = 'scripted_delay_s'"
    product = Product(filled)
    product.wait_for_greeting()
    session = str(product.query(slow)[0][0])
    product.stop()
    with closing(sqlite3.connect(filled / "palimpsest.sqlite3")) as database, database:  # longer than this test takes
        database.execute("UPDATE sessions_app_policyvalue SET value = '60.0' WHERE field = 'scripted_delay_s'")
    arguments, environment = command("compact", session, "--no-wait", DATA_DIR=filled)
    subprocess.run(arguments, env=environment, check=True, capture_output=True, timeout=PATIENCE_S)
    product = Product(filled)  # what waits is queued again at the start
    product.wait_for_greeting()
    of_session = f"session_id = '{session.replace('-', '')}'"
    status = f"SELECT status, reason FROM sessions_app_compaction WHERE {of_session} ORDER BY attempt DESC LIMIT 1"
    until = time.monotonic() + PATIENCE_S
    while product.query(status)[0][0] != "running":
        assert time.monotonic() < until, product.query(status)
        time.sleep(0.05)
    _, err = product.stop()
    assert (product.process.returncode, "Traceback" in err) == (0, False)
    assert product.query(status) == [("failed", "worker_lost")]


@pytest.mark.slow
def test_a_killed_product_starts_again_and_its_lapsed_attempt_is_ended(filled):
    product = Product(filled)
    product.wait_for_greeting()
    product.stop(signal.SIGKILL)
    assert product.query("PRAGMA integrity_check") == [("ok",)]
    again = Product(filled)
    again.wait_for_greeting()
    again.wait_until_well()
    again.stop()


@pytest.mark.slow
def test_options_win_over_the_environment(filled, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    arguments, environment = command("up", "--port", free_port(), f"--data-dir={filled}", DATA_DIR=elsewhere, PORT=1)
    process = subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("Palimpsest is at ")
    process.terminate()
    process.communicate(timeout=PATIENCE_S)
    assert not elsewhere.exists()


def test_a_port_in_use_is_one_sentence_and_nothing_is_started(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        sentence = fails("--port", port, "--data-dir", tmp_path)
    assert f"Port {port} of 127.0.0.1 is in use" in sentence
    assert "Nothing was started" in sentence
    assert not (tmp_path / "palimpsest.sqlite3").exists()


def test_a_data_directory_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    sentence = fails("--port", free_port(), "--data-dir", tmp_path / "file" / "data")
    assert "cannot be written" in sentence
    assert "--data-dir" in sentence


def test_a_file_in_place_of_the_data_directory_is_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    assert "cannot be written" in fails("--port", free_port(), "--data-dir", tmp_path / "file")


def test_commands_say_in_one_sentence_that_there_is_no_database_or_that_it_is_none(tmp_path):
    def run(folder: Path) -> subprocess.CompletedProcess[str]:
        arguments, environment = command("verify_events", DATA_DIR=folder)
        return subprocess.run(arguments, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    missing = run(tmp_path / "new")
    assert (missing.returncode, len(missing.stderr.strip().splitlines())) == (1, 1)
    assert "There is no database" in missing.stderr
    (tmp_path / "palimpsest.sqlite3").write_bytes(b"no database at all " * 100)
    refused = run(tmp_path)
    assert refused.returncode == 1
    assert "cannot be used" in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1, refused.stderr


def test_a_newer_database_is_one_sentence_and_stays_as_it_is(filled, tmp_path):
    newer = tmp_path / "palimpsest.sqlite3"
    newer.write_bytes((filled / "palimpsest.sqlite3").read_bytes())
    with closing(sqlite3.connect(newer)) as database, database:
        database.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('sessions_app', '0999_add_more', '2099-01-01')")
    before = newer.read_bytes()
    sentence = fails("--port", free_port(), "--data-dir", tmp_path)
    assert "newer version" in sentence
    assert "0999_add_more" in sentence
    assert newer.read_bytes() == before


def test_a_file_that_is_no_database_is_one_sentence(tmp_path):
    (tmp_path / "palimpsest.sqlite3").write_bytes(b"no database " * 100)
    assert "cannot be used" in fails("--port", free_port(), "--data-dir", tmp_path)


def test_a_port_that_is_none_is_refused_in_words(tmp_path):
    assert "is no port" in fails("--data-dir", tmp_path, "--port=-1")


@pytest.mark.parametrize("port", ["0", "70000", "http", "-1", "", "８０００", "8000.0"])
def test_ports_are_numbers_from_1_to_65535(port):
    with pytest.raises(CommandError, match=r"is no port: ports are numbers from 1 to 65535\. Nothing was started\."):
        port_number(port)


def test_an_address_that_is_not_this_machines_is_one_sentence(tmp_path):
    assert "Nothing can listen on 192.0.2.1" in fails("--host", "192.0.2.1", "--port", free_port(), "--data-dir", tmp_path)


@pytest.mark.parametrize(("name", "value"), [("PORT", "x"), ("PROT", "8000")])
def test_a_malformed_or_unknown_setting_is_one_sentence(tmp_path, name, value):
    assert f"PALIMPSEST_{name}" in fails(DATA_DIR=tmp_path, **{name: value})


def test_settings_that_are_unsafe_together_are_one_sentence(tmp_path):
    said = fails("--data-dir", tmp_path / "data", ALLOWED_HOSTS="*")
    assert "any site could then open a websocket" in said
    assert "Nothing was started." in said


def test_a_shortened_option_is_refused_where_it_would_lead_to_another_directory(tmp_path):
    given, environment = command("up", "--data", tmp_path / "data")
    ended = subprocess.run(given, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ended.returncode != 0
    assert "--data" in ended.stderr
