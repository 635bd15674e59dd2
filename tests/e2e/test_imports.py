"""Importing by the upload page, in a real browser."""

import re
import zipfile
from datetime import UTC, datetime

import pytest

from sessions_app.demo import other_stories, stories


@pytest.fixture
def files(tmp_path):
    """A good file, a damaged one, and one that is no session at all."""
    good, damaged, foreign = tmp_path / "ticket.jsonl", tmp_path / "damaged.jsonl", tmp_path / "holiday.txt"
    good.write_bytes(other_stories.vat_ticket().render(datetime.now(UTC)))
    damaged.write_bytes(stories.damaged_file().render(datetime.now(UTC)))
    foreign.write_text("Dear all, I am on holiday.\n")
    return {"good": good, "damaged": damaged, "foreign": foreign}


def upload(page, *paths) -> None:
    page.goto("/imports/")
    page.get_by_label("Session files").set_input_files([str(path) for path in paths])
    page.get_by_role("button", name="Import").click()


def test_an_uploaded_file_becomes_a_session_that_can_be_opened(open_as, operator, files, in_thread):
    page = open_as(operator)
    upload(page, files["good"])
    page.get_by_text(re.compile("completed", re.IGNORECASE)).first.wait_for()
    page.goto("/")
    page.get_by_role("link", name=re.compile("Ticket 48213")).click()
    page.get_by_role("log").get_by_text("Customer 48213 says").first.wait_for()


def test_a_damaged_file_is_imported_and_its_findings_are_shown_with_their_place(open_as, operator, files, in_thread):
    page = open_as(operator)
    upload(page, files["damaged"])
    page.get_by_text(re.compile("completed", re.IGNORECASE)).first.wait_for()
    page.goto("/")
    page.get_by_role("link", name=re.compile("recovered file")).click()
    page.get_by_role("link", name="Raw").first.click()
    findings = page.get_by_role("main")
    findings.get_by_role("columnheader", name="Line").first.wait_for()
    findings.get_by_role("columnheader", name="Byte").first.wait_for()
    findings.get_by_role("cell", name=re.compile("unreadable", re.IGNORECASE)).first.wait_for()


def test_a_file_of_another_kind_is_refused_in_words(open_as, operator, files, in_thread, watch):
    watch.expected.append("status of 4")
    page = open_as(operator)
    upload(page, files["foreign"])
    page.get_by_text(re.compile("no session file|could not be read|can't be read", re.IGNORECASE)).first.wait_for()


def test_an_uploaded_archive_is_told_member_by_member(open_as, operator, files, in_thread, tmp_path):
    packed = tmp_path / "all.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(files["good"], "tickets/ticket.jsonl")
        archive.write(files["good"], "../outside.jsonl")
    page = open_as(operator)
    upload(page, packed)
    page.get_by_text("its name leads out of the archive").wait_for()
    page.get_by_role("cell", name="all.zip/tickets/ticket.jsonl").wait_for()
    page.get_by_role("link", name=re.compile("Ticket 48213")).click()
    page.get_by_role("log").get_by_text("Customer 48213 says").first.wait_for()
