"""Imports of folders that somebody stops: at once, and with all that they stored."""

import io

import pytest
from django.core.management import call_command

from sessions_app.models import Event, ImportRun, Session
from sessions_app.models.import_run import ImportState
from sessions_app.services import imports
from sessions_app.services.imports import cancel_import, find, runs
from tests.importing import ACTOR
from tests.readers.rows import encode, prompt
from tests.services.import_scenes import write

pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(tmp_path):
    for number in range(4):
        session = f"{number:08d}-2222-4333-8444-555555555555"
        write(tmp_path, encode([prompt("o", None) | {"sessionId": session}]), name=f"{session}.jsonl")
    return tmp_path


def test_who_interrupts_the_command_leaves_a_run_that_is_cancelled_with_what_was_done(folder, capsys, monkeypatch):
    taken = runs._Run._take

    def interrupted(self, file, **options):
        if self.tally.sources == 2:
            raise KeyboardInterrupt
        return taken(self, file, **options)

    monkeypatch.setattr(runs._Run, "_take", interrupted)
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        call_command("import_sessions", str(folder))
    run = ImportRun.objects.get()
    assert (run.state, run.counts["sources_new"], run.counts["found"]) == (ImportState.CANCELLED, 2, 4)
    assert Session.objects.listed().count() == 2
    assert Event.objects.get(type="import.finished").payload["state"] == "cancelled"


@pytest.mark.parametrize("moment", ["looking through", "looking up", "reading"])
def test_a_run_that_is_cancelled_in_the_page_stops_whatever_it_is_at(folder, monkeypatch, moment):
    monkeypatch.setattr(runs, "SAVE_INTERVAL", 0.0)
    started: list[ImportRun] = []
    monkeypatch.setattr(find, "_walk", _before(find._walk, started, moment == "looking through"))
    monkeypatch.setattr(runs.sources, "unchanged_among", _before(runs.sources.unchanged_among, started, moment == "looking up"))
    monkeypatch.setattr(runs._Run, "_take", _before(runs._Run._take, started, moment == "reading"))
    run = imports.import_paths(actor=ACTOR, paths=[folder], begun=started.append)
    assert run.state == ImportState.CANCELLED
    assert run.error == ""
    assert run.counts.get("sources_new", 0) <= 1


def _before(function, started, is_wanted):
    def cancelling(*given, **options):
        if is_wanted:
            cancel_import(actor=ACTOR, run_id=started[0].pk)
        return function(*given, **options)

    return cancelling


def test_the_line_that_tells_how_far_it_is_is_no_error_and_is_gone_at_the_end(folder, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    err = Terminal()
    monkeypatch.setattr("sys.stderr", err)
    call_command("import_sessions", str(folder), stderr=err, force_color=True)
    told = err.getvalue()
    assert "1 of 4 done" in told
    assert "\x1b[31" not in told
    assert told.endswith("\r\x1b[2K")
