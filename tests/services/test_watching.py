"""Folders that are followed, on a real file system: what comes, grows, is replaced or goes away, and what may go wrong."""

import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from sessions_app.events.actors import Actor, system_actor
from sessions_app.models import Event, ImportRun, Session, SourceFile
from sessions_app.permissions import ActionRefused, NoAccess
from sessions_app.services import watched_folders
from sessions_app.services.watched_files import WatchedFiles
from sessions_app.services.watched_folders import Turns, is_polled
from sessions_app.services.watching import Watch, WatchStatus, check_folders
from tests.management.commands import embedded
from tests.readers.rows import SESSION, answer, encode, prompt
from tests.services.compaction_scenes import PATIENCE_S, wait_until
from tests.stored import store_session

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).resolve().parents[2]
OTHER = "22222222-2222-4333-8444-555555555555"


@pytest.fixture
def following(tmp_path):
    """Starts watches, and stops them at the end of the test."""
    running: list[tuple[Watch, threading.Thread]] = []

    def start(*, polls: bool = False, folder: Path = tmp_path):
        told = []
        watch = Watch(actor=system_actor("tests"), folders=[folder], tell=told.append, polls=polls)
        thread = threading.Thread(target=watch.run, daemon=True)
        running.append((watch, thread))
        thread.start()
        wait_until(lambda: bool(told) and not told[-1].is_first_pass)
        return told

    yield start
    for watch, _ in running:
        watch.stop()
    for _, thread in running:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    connection.close()


def add(path: Path, *rows) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(encode(rows))


def entries(session_id: str = SESSION) -> list[str]:
    found = Session.objects.filter(source_key=f"claude-code:{session_id}", is_complete=True).first()
    return list(found.entries.order_by("index").values_list("source_id", flat=True)) if found else []


@pytest.mark.parametrize("polls", [False, True])
def test_what_is_there_and_what_comes_is_taken_in(following, tmp_path, polls):
    add(tmp_path / f"{SESSION}.jsonl", prompt("u1", None))
    following(polls=polls)
    assert entries() == ["u1"]
    add(tmp_path / f"{SESSION}.jsonl", answer("a1", "u1"))
    wait_until(lambda: entries() == ["u1", "a1"])
    add(tmp_path / "new-project" / "deeper" / f"{OTHER}.jsonl", prompt("v1", None, sessionId=OTHER))
    wait_until(lambda: entries(OTHER) == ["v1"])
    assert set(Session.objects.values_list("kind", flat=True)) == {"observed"}


@pytest.mark.parametrize("polls", [False, True])
def test_a_file_that_is_written_to_all_the_time_holds_up_no_other_one_and_ends_whole(following, tmp_path, polls):
    path = tmp_path / f"{SESSION}.jsonl"
    add(path, prompt("u0", None))
    stop, written = threading.Event(), [1]

    def write_on() -> None:
        while not stop.wait(0.005):
            add(path, *(prompt(f"u{number}", f"u{number - 1}", "on and on " * 200) for number in range(written[0], written[0] + 20)))
            written[0] += 20

    writer = threading.Thread(target=write_on, daemon=True)
    writer.start()
    try:
        following(polls=polls)  # what is there is taken in while it grows
        add(tmp_path / f"{OTHER}.jsonl", prompt("o1", None) | {"sessionId": OTHER})
        wait_until(lambda: entries(OTHER) == ["o1"])
    finally:
        stop.set()
        writer.join()
    wait_until(lambda: len(entries()) == written[0], 2 * PATIENCE_S)
    assert entries() == [f"u{number}" for number in range(written[0])]


def test_a_fork_of_a_followed_session_is_followed_by_nobody(following, tmp_path):
    add(tmp_path / f"{SESSION}.jsonl", prompt("u1", None))
    following()
    followed = Session.objects.get(source_key__endswith=SESSION)
    fork = store_session(parent=followed, relation="fork")
    child = store_session(parent=followed, relation="sub_agent")
    add(tmp_path / f"{SESSION}.jsonl", answer("a1", "u1"))
    wait_until(lambda: Session.objects.get(pk=child.pk).kind == "observed")
    assert Session.objects.get(pk=fork.pk).kind == "imported"


def test_a_half_written_line_waits_for_its_end(following, tmp_path):
    path = tmp_path / f"{SESSION}.jsonl"
    add(path, prompt("u1", None))
    following()
    whole = encode([answer("a1", "u1")])
    with path.open("ab", buffering=0) as file:
        file.write(whole[:40])
        add(tmp_path / f"{OTHER}.jsonl", prompt("v1", None, sessionId=OTHER))
        wait_until(lambda: entries(OTHER) == ["v1"])
        assert SourceFile.objects.get(session__source_key__endswith=SESSION).report.get("by_problem", {}) == {}
        file.write(whole[40:])
    wait_until(lambda: entries() == ["u1", "a1"])


def test_a_last_line_that_only_lacks_its_end_is_taken_when_nothing_more_comes(following, tmp_path):
    path = tmp_path / f"{SESSION}.jsonl"
    add(path, prompt("u1", None))
    following()
    with path.open("ab") as file:
        file.write(encode([answer("a1", "u1")]).rstrip(b"\n"))
    wait_until(lambda: entries() == ["u1", "a1"])


def test_a_file_that_is_replaced_keeps_what_was_taken_in_and_adds_what_is_new(following, tmp_path):
    path = tmp_path / f"{SESSION}.jsonl"
    add(path, prompt("u1", None), answer("a1", "u1"))
    following()
    fresh = tmp_path / "fresh"
    fresh.write_bytes(encode([prompt("u1", None), answer("a9", "u1", "another answer")]))
    fresh.replace(path)
    wait_until(lambda: entries() == ["u1", "a1", "a9"])
    path.unlink()
    add(tmp_path / f"{OTHER}.jsonl", prompt("v1", None, sessionId=OTHER))
    wait_until(lambda: entries(OTHER) == ["v1"])
    assert entries() == ["u1", "a1", "a9"]


def test_a_sub_agents_file_hangs_on_its_session(following, tmp_path):
    add(tmp_path / f"{SESSION}.jsonl", prompt("u1", None))
    following()
    child = tmp_path / SESSION / "subagents" / "agent-abc.jsonl"
    add(child, prompt("s1", None, agentId="abc", isSidechain=True))
    wait_until(lambda: Session.objects.filter(parent__isnull=False, is_complete=True).exists())
    assert Session.objects.get(parent__isnull=False).parent.source_key == f"claude-code:{SESSION}"


def test_a_file_that_fails_stops_no_other_one(following, tmp_path, monkeypatch):
    whole = WatchedFiles.bring_up

    def bring_up(self, path):
        if path.stem == "broken":
            raise RuntimeError("made to fail")
        return whole(self, path)

    monkeypatch.setattr(WatchedFiles, "bring_up", bring_up)
    told = following()
    add(tmp_path / "broken.jsonl", prompt("u1", None))
    add(tmp_path / f"{OTHER}.jsonl", prompt("v1", None, sessionId=OTHER))
    wait_until(lambda: entries(OTHER) == ["v1"])
    wait_until(lambda: told[-1].failures == 1)
    assert any("broken.jsonl" in status.problem for status in told)


def test_beginning_and_end_are_events_with_who_and_what(tmp_path):
    add(tmp_path / f"{SESSION}.jsonl", prompt("u1", None))

    def stop_after_the_first_pass(status: WatchStatus) -> None:
        if not status.is_first_pass:
            watch.stop()

    watch = Watch(actor=system_actor("tests"), folders=[tmp_path], tell=stop_after_the_first_pass)
    watch.run()
    first, last = Event.objects.filter(type__startswith="watch.").order_by("pk")
    assert (first.type, first.actor_name, first.payload["folders"]) == ("watch.started", "tests", [str(tmp_path)])
    assert (last.type, last.payload["entries"]) == ("watch.stopped", 1)
    assert ImportRun.objects.get().state == "completed"


def test_who_may_not_import_may_not_follow(tmp_path):
    nobody = Actor(kind="user", id="9", name="otto", role="")
    with pytest.raises((NoAccess, ActionRefused)):
        Watch(actor=nobody, folders=[tmp_path], tell=lambda _status: None)
    with pytest.raises(CommandError, match="There is no folder"):
        call_command("watch", str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match="Nothing was started"):
        check_folders([tmp_path / "nowhere"])


def test_the_command_takes_in_follows_and_stops_on_a_signal(tmp_path):
    folder = tmp_path / "sessions"
    add(folder / f"{SESSION}.jsonl", prompt("u1", None, timestamp=datetime.now(UTC).isoformat()))
    environment = embedded(tmp_path / "data", PYTHONUNBUFFERED="1")
    command = [sys.executable, "manage.py", "watch", str(folder)]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            assert "A new, empty database was made" in process.stdout.readline()
            assert "Following" in process.stdout.readline()
            assert "1 entry added" in process.stdout.readline()
            add(folder / f"{SESSION}.jsonl", answer("a1", "u1"))
            assert process.stdout.readline().startswith("grown")
            process.send_signal(signal.SIGTERM)
            rest, _ = process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 0
            assert "Stopped. 1 file · 2 entries added" in rest
        finally:
            process.kill()  # else it would go on when the test has failed


def test_of_many_files_all_are_looked_at_less_often(tmp_path, monkeypatch):
    for number in range(6):
        (tmp_path / f"{number}.jsonl").touch()
    (tmp_path / "more").symlink_to(tmp_path)
    assert watched_folders._poll_ms([tmp_path]) == watched_folders.POLL_MS
    monkeypatch.setattr(watched_folders, "POLLED_FILES", 2)
    assert watched_folders._poll_ms([tmp_path]) == 3 * watched_folders.POLL_MS


def test_file_systems_that_tell_of_nothing_are_known_by_their_mount(tmp_path):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda / ext4 rw 0 0\nserver:/home {tmp_path} nfs4 rw 0 0\n/dev/sdb {tmp_path}/local ext4 rw 0 0\n")
    assert is_polled(tmp_path / "sessions", mounts)
    assert not is_polled(tmp_path / "local" / "sessions", mounts)
    assert not is_polled(Path("/etc"), mounts)
    assert not is_polled(tmp_path, tmp_path / "nowhere")


def test_a_file_has_one_turn_at_a_time_and_growth_does_not_wait_behind_a_large_file():
    turns, small, large = Turns(), Path("small"), Path("large")
    turns.add(large, is_large=True)
    turns.add(small)
    assert turns.take(may_be_large=False) == small
    assert turns.take(may_be_large=True) == large
    turns.add(small)
    turns.add(small)
    turns.done(large, None)
    turns.done(small, None)
    assert turns.take(may_be_large=False) == small
    turns.close()
    assert turns.take(may_be_large=True) is None
