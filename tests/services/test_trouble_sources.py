"""Sources that are no files, or become others while they are read."""

import os
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sessions_app.models import Entry, Session, SourceFile
from sessions_app.models.import_run import ImportState
from sessions_app.services import imports
from sessions_app.services.imports import sources
from sessions_app.services.imports import writer as writing
from sessions_app.services.imports.outcomes import SourceState
from tests.importing import ACTOR
from tests.readers.rows import encode, prompt
from tests.services.import_scenes import rows, take, the_session, write

MANY = [prompt(f"p{number}", "a6", f"{number} " * 500) for number in range(600)]


@pytest.fixture
def meanwhile(monkeypatch):
    """Does something once, when the first record of a source was read."""

    def do(what) -> None:
        add, done = writing.SourceWriter.add, []

        def late_add(self, record):
            if not done:
                done.append(1)
                what()
            return add(self, record)

        monkeypatch.setattr(writing.SourceWriter, "add", late_add)

    return do


def texts() -> list[str]:
    return list(Entry.objects.filter(session=the_session()).order_by("index").values_list("source_id", flat=True))


@pytest.mark.django_db
def test_a_file_that_grows_while_it_is_read_is_taken_once_and_whole_by_the_next_import(tmp_path, meanwhile):
    path = write(tmp_path, encode([*rows(), *MANY]))
    more = encode([prompt(f"q{number}", "p599", "more") for number in range(50)])
    meanwhile(lambda: path.write_bytes(path.read_bytes() + more[: len(more) // 2 + 7]))
    assert take(path).state is SourceState.NEW
    path.write_bytes(encode([*rows(), *MANY]) + more)
    assert take(path).state is SourceState.GROWN
    assert [name for name in texts() if name.startswith("q")] == [f"q{number}" for number in range(50)]
    assert len(texts()) == len(set(texts()) - {""}) + texts().count("")
    assert take(path).state is SourceState.UNCHANGED


@pytest.mark.django_db
def test_a_file_that_is_replaced_while_it_is_read_is_taken_as_it_was_and_then_as_it_is(tmp_path, meanwhile):
    path = write(tmp_path, encode([*rows(), *MANY]))
    new = tmp_path / "new"
    new.write_bytes(encode([*rows(), *MANY[:300], prompt("z", "p299", "the end")]))
    meanwhile(lambda: new.replace(path))
    assert take(path).state is SourceState.NEW
    assert texts()[-1] == "p599"
    assert take(path).state is SourceState.REWRITTEN
    assert texts()[-1] == "z"
    assert take(path).state is SourceState.UNCHANGED


@pytest.mark.django_db
def test_a_file_that_is_written_over_while_it_is_read_is_compared_anew_the_next_time(tmp_path, meanwhile):
    """Same name, same length, other bytes: what was read is neither the old nor the new."""
    path = write(tmp_path, encode([*rows(), *MANY]))
    os.utime(path, ns=(1, 1))
    size = path.stat().st_size

    def write_over() -> None:
        data = path.read_bytes().replace(b'"599 599 ', b'"600 600 ')
        with path.open("r+b") as file:
            file.write(data)

    meanwhile(write_over)
    assert take(path).state is SourceState.NEW
    assert path.stat().st_size == size
    assert take(path).state in {SourceState.REWRITTEN, SourceState.UNCHANGED}
    assert take(path).state is SourceState.UNCHANGED
    assert "600 600" in Entry.objects.filter(session=the_session(), source_id="p599").order_by("index").last().parts


@pytest.mark.django_db
def test_a_file_that_disappears_while_it_is_read_is_taken_whole(tmp_path, meanwhile):
    path = write(tmp_path, encode([*rows(), *MANY]))
    meanwhile(path.unlink)
    assert take(path).state is SourceState.NEW
    assert the_session().entry_count == 616
    gone = take(path)
    assert gone.state is SourceState.FAILED
    assert "No such file" in gone.error


@pytest.mark.django_db
@pytest.mark.timeout(120)
def test_pipes_sockets_devices_and_links_that_lead_nowhere_are_named_and_never_waited_for(tmp_path):
    write(tmp_path)
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    (tmp_path / "dangling.jsonl").symlink_to("nowhere")
    (tmp_path / "zero.jsonl").symlink_to("/dev/zero")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "round").symlink_to(tmp_path, target_is_directory=True)
    here = Path.cwd()
    os.chdir(tmp_path)  # the name of a socket may not be long
    try:
        with socket.socket(socket.AF_UNIX) as door:
            door.bind("socket.jsonl")
            run = imports.import_paths(actor=ACTOR, paths=[tmp_path])
    finally:
        os.chdir(here)
    said = {Path(file["name"]).name: file for file in run.files}
    assert run.state == ImportState.COMPLETED
    for name in ("pipe", "zero", "socket"):
        assert "a pipe, a socket or a device" in said[f"{name}.jsonl"]["error"]
    for name in ("loop", "dangling"):
        assert "can't be looked at" in said[f"{name}.jsonl"]["error"]
    assert (run.counts["sources_skipped"], run.counts["sources_new"]) == (5, 1)


@pytest.mark.django_db
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", ["pipe.jsonl", "/dev/zero", "/dev/null"])
def test_what_is_no_file_fails_when_it_is_asked_for_by_name(tmp_path, name):
    os.mkfifo(tmp_path / "pipe.jsonl")
    run = imports.import_paths(actor=ACTOR, paths=[tmp_path / name])
    assert run.state == ImportState.FAILED
    assert "a pipe, a socket or a device, not a file. Nothing was changed." in run.error


@pytest.mark.django_db
@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to the superuser")
def test_what_may_not_be_read_is_named_and_the_others_are_taken(tmp_path):
    write(tmp_path)
    (tmp_path / "closed").mkdir(mode=0)
    write(tmp_path, name="secret.jsonl").chmod(0)
    run = imports.import_paths(actor=ACTOR, paths=[tmp_path])
    said = {Path(file["name"]).name: file.get("error", "") for file in run.files}
    assert "The folder can't be read (Permission denied)" in said["closed"]
    assert "can't be read (Permission denied)" in said["secret.jsonl"]
    assert run.counts["sources_new"] == 1


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["a\0b.jsonl", "x" * 5_000])
def test_a_name_that_no_file_can_have_is_a_sentence(path):
    run = imports.import_paths(actor=ACTOR, paths=[path])
    assert run.state == ImportState.FAILED
    assert "Nothing was changed." in run.error
    assert Session.objects.count() == 0


@pytest.fixture
def settled():
    """Says of what was imported that it was long enough after the last change of its file."""

    def do() -> None:
        SourceFile.objects.update(imported_at=datetime.now(UTC) + timedelta(seconds=10))

    return do


@pytest.mark.django_db
def test_files_that_nobody_touched_since_they_were_imported_are_not_even_opened(tmp_path, monkeypatch, settled):
    write(tmp_path)
    imports.import_paths(actor=ACTOR, paths=[tmp_path])
    settled()
    monkeypatch.setattr(sources, "open_file", lambda path: pytest.fail(f"{path} was opened"))
    assert imports.import_paths(actor=ACTOR, paths=[tmp_path]).counts["sources_unchanged"] == 1


@pytest.mark.django_db
def test_a_file_that_was_written_over_and_given_its_old_time_is_taken_anew(tmp_path):
    path = write(tmp_path)
    imports.import_paths(actor=ACTOR, paths=[tmp_path])
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b"Fixed.", b"Broken"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert imports.import_paths(actor=ACTOR, paths=[tmp_path]).counts["sources_rewritten"] == 1


@pytest.mark.django_db
def test_a_file_that_is_written_over_and_given_its_old_time_while_it_is_read_is_compared_anew(tmp_path, meanwhile, settled):
    path = write(tmp_path, encode([*rows(), *MANY]))
    before = path.stat()

    def write_over() -> None:
        with path.open("r+b") as file:
            file.write(path.read_bytes().replace(b'"599 599 ', b'"600 600 '))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    meanwhile(write_over)
    imports.import_paths(actor=ACTOR, paths=[tmp_path])
    settled()
    imports.import_paths(actor=ACTOR, paths=[tmp_path])
    assert "600 600" in Entry.objects.filter(session=the_session(), source_id="p599").order_by("index").last().parts
    assert imports.import_paths(actor=ACTOR, paths=[tmp_path]).counts["sources_unchanged"] == 1
