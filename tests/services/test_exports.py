import errno
import io
import sys
import types

import pytest
from django.core.management import CommandError, call_command

from sessions_app.models import Entry, Event, Session
from sessions_app.selectors import imports_page, raw_page
from sessions_app.selectors.raw_page import source_bytes
from sessions_app.services import imports
from sessions_app.services.exports import export_original
from tests.importing import ACTOR
from tests.readers.rows import SESSION, encode
from tests.services.import_scenes import rows, take, the_session, write

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("tail", [b"", b'{"type":"user","mess', b"\n\n", b"\0\0\0", b"\xff\xfe\n"])
def test_a_source_comes_back_byte_for_byte(tmp_path, tail):
    data = encode(rows()).removesuffix(b"\n") + tail
    take(write(tmp_path, data))
    source = the_session().source_files.get()
    assert b"".join(source_bytes(source)) == data


def test_every_entry_finds_the_bytes_that_it_was_made_of(tmp_path):
    data = encode(rows())
    take(write(tmp_path, data))
    session = the_session()
    for entry in Entry.objects.filter(session=session):
        record = raw_page.record_of(session, entry.index)
        assert record is not None
        assert data[record.offset : record.offset + record.length] == record.data
        assert f'"uuid": "{entry.source_id}"' in record.text
    assert raw_page.record_of(session, 999) is None


def test_an_entry_of_a_side_chain_finds_its_bytes_in_the_parents_file(tmp_path):
    take(write(tmp_path))
    child = Session.objects.get(parent=the_session())
    record = raw_page.record_of(child, 1)
    assert record is not None
    assert '"uuid": "s2"' in record.text


def test_records_are_listed_with_their_entries_also_those_that_are_none(tmp_path, monkeypatch):
    monkeypatch.setattr(raw_page, "PAGE_ROWS", 8)
    take(write(tmp_path))
    session = the_session()
    page = raw_page.records(session)
    assert [(row.kind, row.entry_index) for row in page.rows[:3]] == [("mode", None), ("user", 0), ("attachment/date", 1)]
    assert (page.previous_ordinal, page.next_ordinal, page.total) == (None, 8, 20)
    later = raw_page.records(session, first=8)
    assert (later.previous_ordinal, later.rows[0].ordinal) == (0, 8)
    broken = raw_page.records(session, kind="unreadable")
    assert [(row.line, row.entry_index) for row in broken.rows] == [(12, None)]


def test_the_parse_report_is_complete(tmp_path):
    take(write(tmp_path))
    report = raw_page.parse_report(the_session())
    assert report is not None
    assert (report.records, report.entries, report.side_chain_entries) == (20, 18, 2)
    assert report.problem_counts == (("unreadable", 1),)
    assert report.problems[0]["line"] == 12
    assert dict(report.kinds)["assistant"] == 8


def test_an_export_is_written_down(tmp_path, operator_actor):
    take(write(tmp_path))
    exported = export_original(actor=operator_actor, session=the_session())
    assert exported is not None
    assert Event.objects.get(type="session.exported").target_id == str(the_session().pk)


def test_runs_are_listed_newest_first_with_what_came_of_each_file(tmp_path):
    imports.import_paths(actor=ACTOR, paths=[write(tmp_path)])
    imports.import_paths(actor=ACTOR, paths=[tmp_path])
    newest, first = imports_page.runs()
    assert (newest.words, first.words) == ("1 unchanged", "1 new, 18 entries")
    page = imports_page.run_page(first.run.pk)
    assert page is not None
    assert [(file.state, file.title, file.entries, file.children) for file in page.files] == [("new", "Add VAT to the invoice", 18, 1)]
    assert imports_page.run_page("00000000-0000-4000-8000-000000000000") is None


def run_command(*arguments: str) -> tuple[int, str, str]:
    out, err, code = io.StringIO(), io.StringIO(), 0
    try:
        call_command(*arguments, stdout=out, stderr=err)
    except SystemExit as ended:
        code = int(ended.code or 0)
    return code, out.getvalue(), err.getvalue()


def test_the_command_imports_prints_a_line_and_a_sum_and_ends_well(tmp_path):
    code, out, _ = run_command("import_sessions", str(write(tmp_path)))
    assert code == 0
    assert "Add VAT to the invoice" in out
    assert "1 file: 1 new · 18 entries added" in out
    assert run_command("import_sessions", str(tmp_path))[1].strip() == "1 file: 1 unchanged · 0 entries added"


def test_the_command_ends_with_1_when_something_failed_and_says_what(tmp_path):
    code, _, err = run_command("import_sessions", str(tmp_path / "gone"))
    assert code == 1
    assert "There is no file or folder" in err


def test_the_command_ends_with_4_for_a_user_who_is_not_there(tmp_path):
    with pytest.raises(CommandError) as raised:
        call_command("import_sessions", str(write(tmp_path)), "--as", "nobody")
    assert raised.value.returncode == 4
    assert Session.objects.count() == 0


def test_the_command_reads_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(encode(rows()))))
    assert run_command("import_sessions", "-")[0] == 0
    assert the_session(f"claude-code:{SESSION}").entry_count == 16


def test_standard_input_that_cannot_be_kept_is_one_sentence(monkeypatch):
    class Full(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=Full()))
    with pytest.raises(CommandError, match=r"No space left on device\)\. Nothing was changed"):
        call_command("import_sessions", "-")
    assert Session.objects.count() == 0


def test_the_export_command_gives_the_file_back_and_never_overwrites(tmp_path):
    data = encode(rows())
    take(write(tmp_path, data))
    target = tmp_path / "back.jsonl"
    call_command("export", str(the_session().pk), "--output", str(target))
    assert target.read_bytes() == data
    with pytest.raises(CommandError, match="can't be written"):
        call_command("export", str(the_session().pk), "--output", str(target))
