"""Imports that are interrupted, refused or fed with rubbish: a clear sentence, and nothing half-done."""

import io
import os
import random
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.db.models.functions import Now

from sessions_app.events.actors import Actor
from sessions_app.models import ActorKind, Entry, Event, ImportRun, Session
from sessions_app.models.import_run import ImportState
from sessions_app.permissions import ActionRefused, NoAccess
from sessions_app.services import imports, sweeper
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.imports import writer as writing
from sessions_app.services.imports.outcomes import SourceState
from tests.importing import ACTOR
from tests.readers.rows import SESSION, answer, encode, prompt
from tests.services.import_scenes import rows, stored, take, the_session, write


class _Killed(BaseException):
    """The process ends here."""


@pytest.mark.django_db
@pytest.mark.parametrize("batch", range(1, 9))
def test_an_import_that_is_killed_anywhere_shows_nothing_and_goes_on_where_it_was(tmp_path, monkeypatch, batch):
    path = write(tmp_path)
    take(path)
    whole = stored(the_session())
    Session.objects.all().delete()
    monkeypatch.setattr(writing, "BATCH_ROWS", 2)
    store, written = writing.SourceWriter.store, []

    def dying_store(self, **options):
        store(self, **options)
        written.append(1)
        if len(written) == batch:
            raise _Killed

    monkeypatch.setattr(writing.SourceWriter, "store", dying_store)
    with pytest.raises(_Killed):
        take(path)
    assert list(Session.objects.listed()) == []
    stored_entries = Entry.objects.count()
    monkeypatch.setattr(writing.SourceWriter, "store", store)
    outcome = take(path)
    assert (outcome.state, outcome.entries) == (SourceState.NEW, 18 - stored_entries)
    assert stored(the_session()) == whole


@pytest.mark.django_db
def test_an_import_that_dies_between_reading_and_completing_goes_on_as_well(tmp_path, monkeypatch):
    path = write(tmp_path)
    take(path)
    whole = stored(the_session())
    Session.objects.all().delete()
    from sessions_app.services.imports import finish as ending

    complete = ending.complete_main

    def die(*_args):
        raise _Killed

    monkeypatch.setattr(ending, "complete_main", die)
    with pytest.raises(_Killed):
        take(path)
    assert list(Session.objects.listed()) == []
    monkeypatch.setattr(ending, "complete_main", complete)
    take(path)
    assert stored(the_session()) == whole


@pytest.mark.django_db
def test_a_cancelled_import_is_hidden_and_can_be_taken_up_again(tmp_path, monkeypatch):
    path = write(tmp_path, encode([*rows(), *(prompt(f"p{number}", "a6", "x" * 5_000) for number in range(600))]))
    answers = iter([False, False, True])
    outcome = take(path, cancelled=lambda: next(answers, True))
    assert outcome.state is SourceState.CANCELLED
    assert "goes on from there" in outcome.error
    assert list(Session.objects.listed()) == []
    assert take(path).state is SourceState.NEW
    assert the_session().is_complete


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("empty.jsonl", b"", "is empty"),
        ("blank.jsonl", b"\n\n  \n", "is empty"),
        ("junk.jsonl", random.Random(1).randbytes(50_000), "no session file that can be read here"),
        ("other.jsonl", b'{"speaker":"user","content":"hi"}\n', "no session file that can be read here"),
        ("zeros.jsonl", b"\0" * 100_000, "no session file that can be read here"),
    ],
)
def test_what_is_no_session_is_said_so_and_nothing_is_written(tmp_path, name, data, words):
    path = write(tmp_path, data, name=name)
    run = imports.import_paths(actor=ACTOR, paths=[path])
    assert run.state == ImportState.FAILED
    assert words in run.error
    assert "Nothing was changed." in run.error
    assert Session.objects.count() == 0
    finished = Event.objects.get(stream="imports", type="import.finished")
    assert (finished.result, finished.reason) == ("failed", run.error)


@pytest.mark.django_db
def test_paths_that_lead_nowhere_are_named_and_do_not_stop_the_others(tmp_path):
    (tmp_path / "nothing").mkdir()
    good = write(tmp_path)
    run = imports.import_paths(actor=ACTOR, paths=[tmp_path / "gone.jsonl", tmp_path / "nothing", good])
    assert run.state == ImportState.FAILED
    assert [file["state"] for file in run.files] == ["failed", "failed", "new"]
    assert "There is no file or folder" in run.files[0]["error"]
    assert "There is no session file in" in run.files[1]["error"]
    assert the_session().is_complete


@pytest.mark.django_db
def test_a_file_that_may_not_be_read_is_said_so(tmp_path):
    outcome = take(tmp_path)  # a folder can't be opened as a file, whoever asks
    assert outcome.state is SourceState.FAILED
    assert "can't be read" in outcome.error


@pytest.mark.django_db
def test_files_of_a_folder_that_are_no_sessions_are_skipped_without_fuss(tmp_path):
    write(tmp_path)
    write(tmp_path, b'{"other":1}\n', name="notes.jsonl")
    write(tmp_path, b"{}", name="journal.jsonl")
    run = imports.import_paths(actor=ACTOR, paths=[tmp_path])
    assert (run.state, run.error) == (ImportState.COMPLETED, "")
    assert run.counts["sources_skipped"] == 1
    assert run.counts["sources_new"] == 1


@pytest.mark.django_db
def test_a_compaction_that_commits_meanwhile_costs_no_entry(tmp_path, monkeypatch, support_actor):
    """Its divider takes the index that the import had in mind for its next row."""
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *task: None)
    turns = [(f"u{turn}", prompt(f"u{turn}", f"u{turn - 1}" if turn else None, "Please. " * 200)) for turn in range(30)]
    path = write(tmp_path, encode([row for _, row in turns[:20]]))
    take(path)
    Session.objects.update(window_override=8_000)
    path.write_bytes(encode([row for _, row in turns]))
    store, compactions = writing.SourceWriter.store, []

    def late_store(self, **options):
        if not compactions:
            compactions.append(request(actor=support_actor, session=the_session(), force=True).compaction)
            run_compaction(compactions[0].pk)
        store(self, **options)

    monkeypatch.setattr(writing.SourceWriter, "store", late_store)
    assert take(path).state is SourceState.GROWN
    entries = Entry.objects.filter(session=the_session()).order_by("index")
    assert [entry.source_id for entry in entries if entry.role != "notice"] == [name for name, _ in turns]
    assert [entry.index for entry in entries] == list(range(31))
    assert the_session().entry_count == 31


@pytest.mark.django_db
def test_a_line_of_ten_megabytes_is_stored_outside_its_row(tmp_path):
    take(write(tmp_path, encode([prompt("u", None, "é" * 5_000_000), answer("a", "u")])))
    entry = Entry.objects.get(session=the_session(), index=0)
    assert len(entry.parts) < 20_000
    assert the_session().tokens_total > 1_000_000


@pytest.mark.django_db
@pytest.mark.parametrize("telling_first", [True, False])
def test_a_file_whose_first_line_is_ten_megabytes_is_recognised_whatever_the_order_of_its_keys(tmp_path, telling_first):
    row = prompt("u", None, "é" * 5_000_000)
    keys = sorted(row, key=lambda key: (key == "message") is telling_first)
    outcome = take(write(tmp_path, encode([{key: row[key] for key in keys}])))
    assert (outcome.state, outcome.entries) == (SourceState.NEW, 1)


@pytest.mark.django_db
def test_a_file_that_becomes_shorter_while_it_is_read_is_not_completed(tmp_path, monkeypatch):
    path = write(tmp_path, encode([*rows(), *(prompt(f"p{number}", "a6", "x" * 5_000) for number in range(600))]))
    add, seen = writing.SourceWriter.add, []

    def cutting_add(self, record):
        if not seen:
            with path.open("r+b") as file:
                file.truncate(1_500_000)
        seen.append(1)
        return add(self, record)

    monkeypatch.setattr(writing.SourceWriter, "add", cutting_add)
    outcome = take(path)
    assert outcome.state is SourceState.FAILED
    assert "became shorter" in outcome.error
    assert list(Session.objects.listed()) == []


@pytest.mark.django_db(transaction=True)
def test_a_full_disk_is_said_so_shows_nothing_and_the_next_import_goes_on(tmp_path):
    if connection.vendor != "sqlite":
        pytest.skip("the size of the database is limited by SQLite's own means")
    text = random.Random(2).randbytes(6_000).hex()
    path = write(tmp_path, encode([*rows(), *(prompt(f"p{number}", "a6", f"{number} {text}") for number in range(600))]))
    with connection.cursor() as cursor:
        cursor.execute("VACUUM")  # pages that earlier tests gave free would be room
        pages = cursor.execute("PRAGMA page_count").fetchone()[0]
        cursor.execute(f"PRAGMA max_page_count = {pages + 400}")
    try:
        outcome = take(path)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA max_page_count = 1073741823")
    assert outcome.state is SourceState.FAILED
    assert "no space left" in outcome.error
    assert list(Session.objects.listed()) == []
    assert take(path).state is SourceState.NEW
    assert the_session().entry_count == 616


@pytest.mark.django_db
@pytest.mark.parametrize(("role", "refusal"), [("", NoAccess), ("visitor", NoAccess)])
def test_who_may_not_import_is_refused_and_the_refusal_is_written_down(tmp_path, role, refusal):
    nobody = Actor(kind=ActorKind.USER, id="9", name="otto", role=role)
    with pytest.raises((refusal, ActionRefused)):
        imports.import_paths(actor=nobody, paths=[write(tmp_path)])
    assert Session.objects.count() == 0
    assert ImportRun.objects.count() == 0
    assert Event.objects.get(type="access.refused").payload == {"action": "import"}


@pytest.mark.django_db
def test_an_upload_waits_in_the_data_folder_is_imported_once_and_then_removed(operator_actor, settings, tmp_path):
    settings.DATA_DIR = tmp_path
    run = imports.request_upload(actor=operator_actor, upload=io.BytesIO(encode(rows())), name="C:/x/session.jsonl")
    assert (run.state, run.name) == (ImportState.QUEUED, "session.jsonl")
    imports.run_import(run.pk)
    imports.run_import(run.pk)
    run.refresh_from_db()
    assert (run.state, run.counts["sources_new"], len(run.files)) == (ImportState.COMPLETED, 1, 1)
    assert the_session().is_complete
    assert list((tmp_path / "uploads").iterdir()) == []


@pytest.mark.django_db
def test_an_upload_that_is_no_session_fails_with_the_reason(operator_actor, settings, tmp_path):
    settings.DATA_DIR = tmp_path
    run = imports.request_upload(actor=operator_actor, upload=io.BytesIO(b"hello"), name="notes.txt")
    imports.run_import(run.pk)
    run.refresh_from_db()
    assert run.state == ImportState.FAILED
    assert "no session file" in run.error


@pytest.mark.django_db
def test_a_waiting_upload_that_is_cancelled_never_runs(operator_actor, settings, tmp_path):
    settings.DATA_DIR = tmp_path
    run = imports.request_upload(actor=operator_actor, upload=io.BytesIO(encode(rows())), name=f"{SESSION}.jsonl")
    assert imports.cancel_import(actor=operator_actor, run_id=run.pk).state == ImportState.CANCELLED
    imports.run_import(run.pk)
    assert Session.objects.count() == 0
    assert list((tmp_path / "uploads").iterdir()) == []


@pytest.mark.django_db
def test_an_upload_whose_process_ends_waits_again_and_can_still_be_cancelled(operator_actor, settings, tmp_path):
    settings.DATA_DIR = tmp_path
    run = imports.request_upload(actor=operator_actor, upload=io.BytesIO(encode(rows())), name=f"{SESSION}.jsonl")
    assert imports.run_import(run.pk, must_end=lambda: True) is False
    run.refresh_from_db()
    assert (run.state, run.finished_at, len(list((tmp_path / "uploads").iterdir()))) == (ImportState.QUEUED, None, 1)
    assert list(Session.objects.listed()) == []
    assert imports.cancel_import(actor=operator_actor, run_id=run.pk).state == ImportState.CANCELLED
    assert imports.run_import(run.pk) is True
    assert list((tmp_path / "uploads").iterdir()) == []


@pytest.mark.django_db
def test_what_a_killed_process_left_among_the_uploads_is_removed_at_the_next_start_and_every_hour(
    operator_actor, settings, tmp_path, monkeypatch
):
    settings.DATA_DIR = tmp_path
    monkeypatch.setattr(sweeper, "_LOOKS_FOR_ORPHANS", sweeper._Occasion(sweeper.ORPHAN_LOOK_S))
    run = imports.request_upload(actor=operator_actor, upload=io.BytesIO(encode(rows())), name=f"{SESSION}.jsonl")
    left, young = tmp_path / "uploads" / "member-left", tmp_path / "uploads" / "young"
    for file in (left, young):
        file.write_bytes(b"x")
    for file in (left, Path(run.staged_path)):
        os.utime(file, (1, 1))
    ImportRun.objects.update(staged_path=f"/mounted/elsewhere/{Path(run.staged_path).name}")  # by a process of another machine
    assert sweeper.sweep().uploads_removed == 1
    assert {file.name for file in (tmp_path / "uploads").iterdir()} == {"young", Path(run.staged_path).name}
    os.utime(young, (1, 1))
    assert sweeper.sweep().uploads_removed == 0
    later = sweeper.time.monotonic() + sweeper.ORPHAN_LOOK_S
    monkeypatch.setattr(sweeper.time, "monotonic", lambda: later)
    assert sweeper.sweep().uploads_removed == 1


def _lost_in(run: ImportRun, monkeypatch, data: bytes) -> None:
    """Runs an upload in a process that is killed behind its second batch, and lets two minutes pass."""
    monkeypatch.setattr(writing, "BATCH_ROWS", 2)
    store, written = writing.SourceWriter.store, []

    def dying_store(self, **options):
        store(self, **options)
        written.append(1)
        if len(written) == 2:
            raise _Killed

    monkeypatch.setattr(writing.SourceWriter, "store", dying_store)
    with pytest.raises(_Killed):
        imports.run_import(run.pk)
    monkeypatch.undo()
    Path(run.staged_path).write_bytes(data)  # a process that is killed removes nothing
    ImportRun.objects.filter(pk=run.pk).update(heartbeat_at=Now() - timedelta(seconds=121))


@pytest.mark.django_db
def test_an_upload_whose_worker_was_killed_is_taken_up_again_once_and_nothing_comes_twice(operator_actor, settings, tmp_path, monkeypatch):
    settings.DATA_DIR = tmp_path
    take(write(tmp_path))
    whole = stored(the_session())
    Session.objects.all().delete()
    run = imports.request_upload(actor=operator_actor, upload=io.BytesIO(encode(rows())), name=f"{SESSION}.jsonl")
    _lost_in(run, monkeypatch, encode(rows()))
    assert Entry.objects.count() > 0
    report = sweeper.sweep()
    assert (report.imports_taken_up, report.imports_failed) == (1, 0)
    imports.run_import(run.pk)
    run.refresh_from_db()
    assert (run.state, stored(the_session())) == (ImportState.COMPLETED, whole)
    assert list((tmp_path / "uploads").iterdir()) == []
    assert [event.reason for event in Event.objects.filter(type="import.requested").order_by("seq")] == ["", "worker_lost"]


@pytest.mark.django_db
def test_an_upload_that_loses_two_workers_ends_with_a_sentence(operator_actor, settings, tmp_path, monkeypatch):
    settings.DATA_DIR = tmp_path
    run = imports.request_upload(actor=operator_actor, upload=io.BytesIO(encode(rows())), name=f"{SESSION}.jsonl")
    for expected in ((1, 0), (0, 1)):
        _lost_in(run, monkeypatch, encode(rows()))
        report = sweeper.sweep()
        assert (report.imports_taken_up, report.imports_failed) == expected
    run.refresh_from_db()
    assert run.state == ImportState.FAILED
    assert "import again to get the rest" in run.error
    assert list((tmp_path / "uploads").iterdir()) == []
