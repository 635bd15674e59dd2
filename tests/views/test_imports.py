"""Imports as pages: giving files, following a run, reading what was found."""

import json
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from sessions_app.models import ImportRun, Session
from sessions_app.models.import_run import ImportState
from sessions_app.services.imports import run_import

SESSION_ID = "5f0f5d2a-0d5c-4a53-9a77-3f0d6b1c9e10"


def line(number: int, role: str, text: str) -> str:
    row = {
        "type": role,
        "uuid": f"00000000-0000-4000-8000-{number:012}",
        "parentUuid": f"00000000-0000-4000-8000-{number - 1:012}" if number > 1 else None,
        "sessionId": SESSION_ID,
        "cwd": "/srv/parcels",
        "version": "2.1.0",
        "timestamp": f"2026-11-30T12:00:{number:02}Z",
        "message": {"role": role, "content": text},
    }
    return json.dumps(row)


TRANSCRIPT = "\n".join(
    [line(1, "user", "Find the bug"), line(2, "assistant", "Found it"), '{"type": "user", "uui', line(3, "user", "Thanks")]
)


def upload(client: Client, *files: SimpleUploadedFile):
    return client.post("/imports/", {"transcripts": list(files)})


@pytest.fixture
def run(operator_page: Client, settings, tmp_path: Path) -> ImportRun:
    """An upload by an operator that no worker has taken yet."""
    settings.DATA_DIR = tmp_path
    upload(operator_page, SimpleUploadedFile("parcels.jsonl", TRANSCRIPT.encode()))
    return ImportRun.objects.get()


def test_one_upload_leads_to_its_run(operator_page: Client, settings, tmp_path):
    settings.DATA_DIR = tmp_path
    response = upload(operator_page, SimpleUploadedFile("parcels.jsonl", TRANSCRIPT.encode()))
    run = ImportRun.objects.get()
    assert response["Location"] == f"/imports/{run.pk}/"
    assert (run.name, run.requested_by, run.state) == ("parcels.jsonl", "olga", ImportState.QUEUED)


def test_several_uploads_lead_to_the_list_that_renews_itself(operator_page: Client, settings, tmp_path):
    settings.DATA_DIR = tmp_path
    response = upload(operator_page, SimpleUploadedFile("a.jsonl", b"{}"), SimpleUploadedFile("b.jsonl", b"{}"))
    assert response["Location"] == "/imports/"
    page = operator_page.get("/imports/").content.decode()
    assert "a.jsonl" in page
    assert "b.jsonl" in page
    assert 'hx-trigger="every 2s"' in page


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ([], "No file was chosen, so nothing was imported."),
        ([SimpleUploadedFile("empty.jsonl", b"")], "A chosen file is empty, so nothing was imported."),
        ([SimpleUploadedFile("big.jsonl", b"x" * 2_000_001)], "big.jsonl is larger than 2 MB, so nothing was imported."),
        ([SimpleUploadedFile("a.jsonl", b"{}"), SimpleUploadedFile("big.jsonl", b"x" * 2_000_001)], "big.jsonl is larger than 2 MB"),
    ],
)
def test_what_cannot_be_imported_is_said_and_starts_nothing(operator_page: Client, settings, files, sentence):
    settings.UPLOAD_MAX_BYTES = 2_000_000
    response = upload(operator_page, *files)
    assert response.status_code == 422
    assert sentence in response.content.decode()
    assert not ImportRun.objects.exists()


def test_a_finished_run_leads_to_its_session_and_tells_each_finding_with_its_place(operator_page: Client, run):
    run_import(run.pk)
    page = operator_page.get(f"/imports/{run.pk}/").content.decode()
    session = Session.objects.get()
    assert f'href="/sessions/{session.pk}/"' in page
    offset = TRANSCRIPT.encode().index(b'{"type": "user", "uui\n')
    assert "unreadable" in page
    assert f'data-label="byte">{offset:,}</td>' in page
    assert "every 2s" not in page


def test_a_run_that_has_not_ended_can_be_cancelled(operator_page: Client, run):
    page = operator_page.get(f"/imports/{run.pk}/").content.decode()
    assert f'action="/imports/{run.pk}/cancel/"' in page
    response = operator_page.post(f"/imports/{run.pk}/cancel/")
    assert response["Location"] == f"/imports/{run.pk}/"
    run.refresh_from_db()
    assert run.state == ImportState.CANCELLED
    assert "cancel/" not in operator_page.get(f"/imports/{run.pk}/").content.decode()


def test_a_part_is_a_part_and_its_address_is_a_page(operator_page: Client, run):
    part = operator_page.get(f"/imports/{run.pk}/", headers={"HX-Request": "true"}).content.decode()
    assert part.lstrip().startswith('<div id="run"')
    assert "<!doctype html>" in operator_page.get(f"/imports/{run.pk}/").content.decode()


def test_names_of_files_never_become_markup(operator_page: Client, settings, tmp_path):
    settings.DATA_DIR = tmp_path
    upload(operator_page, SimpleUploadedFile('<b onclick="x">.jsonl', b"{}"))
    run = ImportRun.objects.get()
    run_import(run.pk)
    for address in ("/imports/", f"/imports/{run.pk}/"):
        page = operator_page.get(address).content.decode()
        assert "&lt;b onclick" in page
        assert "<b onclick" not in page


@pytest.mark.parametrize("method", ["get", "post"])
def test_who_is_in_no_group_finds_no_imports(client: Client, outsider, method):
    client.force_login(outsider)
    assert getattr(client, method)("/imports/").status_code == 404


def test_a_report_is_only_given_for_sessions_of_the_run(operator_page: Client, run, make_session):
    run_import(run.pk)
    other = make_session("other")
    page = operator_page.get(f"/imports/{run.pk}/", {"report": str(other.pk)}).content.decode()
    assert 'id="report"' not in page


@pytest.mark.parametrize("suffix", ["", "cancel/"])
def test_an_unknown_run_is_answered_404(operator_page: Client, suffix):
    address = f"/imports/019a0000-0000-7000-8000-000000000000/{suffix}"
    response = operator_page.post(address) if suffix else operator_page.get(address)
    assert response.status_code == 404
    assert "There is no such import." in response.content.decode()


def test_a_run_under_way_says_how_much_of_its_file_is_read(operator_page: Client, settings, tmp_path: Path, monkeypatch):
    settings.DATA_DIR = tmp_path
    monkeypatch.setattr("sessions_app.services.imports.runs.SAVE_INTERVAL", 0.0)
    long = "\n".join(line(number, "user" if number % 2 else "assistant", f"Part {number}") for number in range(1, 2_500))
    upload(operator_page, SimpleUploadedFile("long.jsonl", long.encode()))
    run = ImportRun.objects.get()
    seen: list[str] = []

    def look() -> bool:
        """Asked between two records, as a person would look meanwhile."""
        if "reading_bytes" in ImportRun.objects.get(pk=run.pk).counts:
            seen.append(operator_page.get(f"/imports/{run.pk}/").content.decode())
        return False

    run_import(run.pk, must_end=look)
    assert any("% of under 1 MB read" in page and "<progress" in page for page in seen)
    ended = operator_page.get(f"/imports/{run.pk}/").content.decode()
    assert "<progress" not in ended
    assert "1 new" in ended


def test_a_run_of_many_files_says_how_many_were_found_and_that_unlisted_ones_failed(operator_page: Client, run: ImportRun):
    run.state = ImportState.RUNNING
    run.counts = {"found": 50_000, "sources": 3_120, "sources_new": 3_020, "sources_failed": 100, "entries": 550_000}
    run.save()
    assert "3,120 of 50,000 files, 3,020 new, 100 failed, 550,000 entries" in operator_page.get("/imports/").content.decode()
    run.state = ImportState.FAILED
    run.files = [{"name": "a.jsonl", "state": "failed"}]
    run.save()
    page = operator_page.get(f"/imports/{run.pk}/").content.decode()
    assert "3,119 more files" in page
    assert "99 of which failed" in page
    assert "none of which failed" not in page
