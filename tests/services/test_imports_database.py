"""Imports and watches whose database is busy, full or gone: they say so, and nothing is told as stored that is not."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection

from sessions_app.models.import_run import ImportState
from sessions_app.services import imports, watching
from sessions_app.services.imports.database_place import DatabaseGoneError
from sessions_app.services.imports.outcomes import SourceOutcome, SourceState
from sessions_app.services.watched_files import WatchedFiles
from sessions_app.services.watching import Watch, WatchStatus
from tests.importing import ACTOR
from tests.readers.rows import answer, encode
from tests.services.compaction_scenes import PATIENCE_S, wait_until
from tests.services.import_scenes import take, the_session, write

pytestmark = pytest.mark.django_db(transaction=True)
on_sqlite = pytest.mark.skipif(connection.vendor != "sqlite", reason="a server's database has no file to hold or move")


@pytest.fixture
def move_away(tmp_path) -> Iterator[Callable[[], Path]]:
    """Moves the database away; it is put back when the test ends."""
    place, away = Path(connection.settings_dict["NAME"]), tmp_path / "away.sqlite3"
    yield lambda: place.rename(away)
    if away.exists():
        away.replace(place)
    connection.close()


class Following:
    """A watch in a thread of its own, what it told, and what it ended with."""

    def __init__(self, folder: Path) -> None:
        self.told: list[WatchStatus] = []
        self.ended: list[BaseException] = []
        self.watch = Watch(actor=ACTOR, folders=[folder], tell=self.told.append)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        wait_until(lambda: bool(self.told) and not self.told[-1].is_first_pass)

    def _run(self) -> None:
        try:
            self.watch.run()
        except Exception as error:
            self.ended.append(error)

    def problems(self) -> list[str]:
        return [status.problem for status in self.told if status.problem]


@pytest.fixture
def following():
    running: list[Following] = []

    def start(folder: Path) -> Following:
        running.append(Following(folder))
        return running[-1]

    yield start
    for one in running:
        one.watch.stop()
        one.thread.join(PATIENCE_S)
        assert not one.thread.is_alive()
    connection.close()


@on_sqlite
def test_an_import_whose_database_is_taken_away_does_not_say_that_it_stored_anything(tmp_path, move_away):
    write(tmp_path)
    run = imports.import_paths(actor=ACTOR, paths=[tmp_path], begun=lambda _run: move_away())
    assert run.state == ImportState.FAILED
    assert "was removed or replaced meanwhile" in run.error
    assert run.files[0]["error"] == run.error


@on_sqlite
def test_the_command_says_it_and_fails(tmp_path, move_away, monkeypatch, capsys):
    write(tmp_path)
    taken = imports.runs._Run._over_path
    monkeypatch.setattr(imports.runs._Run, "_over_path", lambda self, path: (taken(self, path), move_away()))
    with pytest.raises(SystemExit) as ended:
        call_command("import_sessions", str(tmp_path))
    assert ended.value.code == 1
    assert "was removed or replaced meanwhile" in capsys.readouterr().err


@on_sqlite
def test_a_watch_whose_database_is_taken_away_ends_and_says_why(tmp_path, move_away, following):
    folder = tmp_path / "sessions"
    folder.mkdir()
    path = write(folder)
    watch = following(folder)
    move_away()
    path.write_bytes(path.read_bytes() + encode([answer("a9", "a6")]))
    watch.thread.join(PATIENCE_S)
    assert [type(error) for error in watch.ended] == [DatabaseGoneError]


def test_the_command_that_watches_fails_with_that_sentence(tmp_path, monkeypatch):
    def gone(_self: Watch) -> None:
        raise DatabaseGoneError("The database x was removed.")

    monkeypatch.setattr(Watch, "run", gone)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    with pytest.raises(CommandError, match="The database x was removed"):
        call_command("watch", str(tmp_path))


@on_sqlite
def test_a_source_that_a_busy_database_did_not_take_says_whose_fault_it_is(tmp_path):
    connection.ensure_connection()
    connection.cursor().execute("PRAGMA busy_timeout = 100")
    other = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        assert take(write(tmp_path)).trouble == "The database was busy for too long."
    finally:
        other.close()
        connection.close()
    assert take(write(tmp_path)).state is SourceState.NEW


@pytest.mark.parametrize("is_raised", [False, True])
def test_what_a_watch_could_not_store_is_told_once_and_tried_again_until_it_can(tmp_path, monkeypatch, following, is_raised):
    path = write(tmp_path)
    watch = following(tmp_path)
    bring_up, failed = WatchedFiles.bring_up, []

    def fail_thrice(self, file):
        if len(failed) == 3:
            return bring_up(self, file)
        failed.append(1)
        if is_raised:
            raise OperationalError("database or disk is full")
        trouble = "There is no space left for the database."
        return SourceOutcome(name=str(file), state=SourceState.FAILED, error=trouble, trouble=trouble), None

    monkeypatch.setattr(WatchedFiles, "bring_up", fail_thrice)
    monkeypatch.setattr(watching, "TROUBLE_S", 0.05)
    path.write_bytes(path.read_bytes() + encode([answer("a9", "a6")]))
    wait_until(lambda: the_session().entries.filter(source_id="a9").exists())
    told = [problem for problem in watch.problems() if "There is no space left for the database." in problem]
    assert len(told) == 1
    assert len(failed) == 3
