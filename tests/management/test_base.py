"""What all commands have in common: names of sessions, refusals, codes, safe output, closed pipes."""

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from django.core.management import call_command

from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.management.output import Column, fitted, json_text, plain_line, plain_text, table_lines, width_of
from sessions_app.models import Event, Session
from tests.engine.histories import Story
from tests.management.commands import ROOT, run, shell
from tests.security.hostile import PAYLOADS
from tests.services.import_scenes import write
from tests.stored import store_session

HIDDEN = {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))} - {"\t", "\n"} | set("\u202e\u2066\u2069\u200e\u200f\ufeff")


def named(identifier: str) -> Session:
    return store_session(Story().user().says().entries, pk=uuid.UUID(identifier), title=f"Session {identifier[-4:]}")


@pytest.mark.django_db
@pytest.mark.parametrize("text", ["0190aaaa-0000-7000-8000-00000000abcd", "0190AAAA", "0190aaaa-0000", "0000abcd", "abcd", "00000000-abcd"])
def test_a_session_may_be_named_by_a_part_of_its_id_that_it_alone_has(text):
    named("0190aaaa-0000-7000-8000-00000000abcd")
    named("0190bbbb-0000-7000-8000-000012345678")
    out, _, end = run("view", text, as_json=True)
    assert (json.loads(out)["session_id"], end) == ("0190aaaa-0000-7000-8000-00000000abcd", Exit.OK)


@pytest.mark.django_db
def test_the_beginning_of_the_short_form_is_enough():
    named("0190bbbb-0000-7000-8000-000012345678")
    out, _, _ = run("view", "1234", as_json=True)
    assert json.loads(out)["session_id"].endswith("12345678")


@pytest.mark.django_db
def test_a_part_that_several_have_names_them_and_does_nothing():
    named("0190aaaa-0000-7000-8000-00000000abcd")
    named("0190aaaa-0000-7000-8000-000000001234")
    with pytest.raises(CommandFailure, match=r"several sessions: .*1234, .*abcd.* Give more of the id") as failure:
        run("view", "0190")
    assert (failure.value.end, failure.value.field) == (Exit.USAGE, "session")
    assert not Event.objects.filter(type="session.viewed").exists()


@pytest.mark.django_db
@pytest.mark.parametrize("text", ["abc", "zzzz", "0190cccc", "", "%", "0190aaaa-0000-7000-8000-00000000abcd0", "x" * 500])
def test_what_names_no_session_is_not_found_and_is_an_event(text):
    named("0190aaaa-0000-7000-8000-00000000abcd")
    with pytest.raises(CommandFailure, match="There is no such session") as failure:
        run("view", text)
    assert failure.value.end == Exit.NOT_FOUND
    assert Event.objects.get(type="access.refused").target_id == text[:64]


@pytest.mark.django_db
def test_whoever_has_no_role_does_not_learn_whether_a_session_exists(outsider):
    named("0190aaaa-0000-7000-8000-00000000abcd")
    said = set()
    for text in ("0190aaaa", "0190cccc"):
        with pytest.raises(CommandFailure) as failure:
            run("view", text, acting_as=outsider.username)
        said.add((str(failure.value), failure.value.end))
    assert said == {("Your account is in no group, so there is nothing to show. An admin can add it to one.", Exit.NOT_FOUND)}


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS.keys())
def test_nothing_of_a_transcript_acts_on_a_terminal(payload):
    assert not HIDDEN & set(plain_text(payload))
    assert not HIDDEN & set(plain_line(payload))
    assert not (HIDDEN | {"\n"}) & set(json_text({"text": payload}))
    assert json.loads(json_text({"text": payload})) == {"text": payload}


def test_a_table_is_never_wider_than_the_terminal_as_long_as_columns_can_go():
    columns = (Column("ID"), Column("TITLE", stretches=True, least=10), Column("STATUS", rank=1), Column("WHEN", rank=2))
    cells = [["abcd", "A title of some length 東京", "working", "2026-11-30"], ["ef", "Short", "idle", "2026-11-29"]]
    for width in range(16, 80):
        lines = list(table_lines(columns, cells, width))
        assert max(map(width_of, lines)) <= width
        assert len(lines) == 3
    assert "WHEN" in next(table_lines(columns, cells, 80))
    assert "WHEN" not in next(table_lines(columns, cells, 30))
    assert [fitted("東京です", width) for width in (8, 5, 4, 1)] == ["東京です", "東京…", "東…", "…"]


def test_options_cannot_be_shortened():
    with pytest.raises(Exception, match="unrecognized arguments: --lim"):
        call_command("sessions", "--lim", "3")


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation with the demo, as a process of its own made it."""
    folder = tmp_path_factory.mktemp("commands") / "data"
    assert shell(folder, "demo").returncode == 0
    return folder


@pytest.mark.slow
def test_in_a_shell_every_kind_of_end_has_its_code_and_its_error_is_json(data_dir):
    first = json.loads(shell(data_dir, "sessions", "--json", "--limit", "1").stdout)["data"][0]["id"]
    shell(data_dir, "revert", first)  # to the whole history, if anything else is in force
    for arguments, code, word in (
        (("view", first, "--json"), Exit.OK, ""),
        (("view", "ffffffff", "--json"), Exit.NOT_FOUND, "not_found"),
        (("view", first, "--jsonl", "--generation", "99"), Exit.NOT_FOUND, "not_found"),
        (("sessions", "--json", "--status", "nonsense"), Exit.USAGE, "invalid_input"),
        (("sessions", "--json", "--pressure", "x"), Exit.USAGE, "invalid_input"),
        (("compact", first, "--json", "--as", "olga"), Exit.REFUSED, "forbidden"),
        (("revert", first, "--json"), Exit.NOTHING_TO_DO, "nothing_to_do"),
    ):
        ended = shell(data_dir, *arguments)
        assert ended.returncode == code, ended
        if word:
            error = json.loads(ended.stderr)["error"]
            assert (error["code"], ended.stdout) == (word, "")
            assert error["message"]


@pytest.mark.slow
def test_in_a_shell_an_error_is_one_sentence_and_no_traceback(data_dir):
    for arguments in (("view",), ("view", "ffffffff"), ("sessions", "--nonsense"), ("events", "--as", "olga")):
        ended = shell(data_dir, *arguments)
        assert (ended.stdout, len(ended.stderr.splitlines())) == ("", 1), ended
        assert "Traceback" not in ended.stderr


@pytest.mark.slow
def test_a_reader_that_goes_away_ends_it_without_a_word(data_dir):
    command = [sys.executable, str(ROOT / "manage.py"), "events", "--limit", "5000", "--jsonl"]
    place = {"PALIMPSEST_DATA_DIR": str(data_dir), "PATH": os.environ["PATH"]}
    reading = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=place, cwd=ROOT)
    assert reading.stdout is not None
    assert reading.stderr is not None
    with reading:
        reading.stdout.close()
        said = reading.stderr.read()
    assert (reading.returncode, said) == (Exit.OUTPUT_CLOSED, b"")


@pytest.mark.slow
def test_a_terminal_without_utf_8_gets_escapes_not_an_error(data_dir):
    ended = shell(data_dir, "compactions", "--help", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert ended.returncode == 0, ended.stderr
    listed = shell(data_dir, "sessions", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (listed.returncode, listed.stderr) == (0, "")


def test_a_database_that_is_gone_is_said_to_be_gone_and_none_is_put_in_its_place(tmp_path):
    assert shell(tmp_path, "import_sessions", write(tmp_path)).returncode == Exit.OK
    database = tmp_path / "palimpsest.sqlite3"
    database.rename(tmp_path / "elsewhere")
    for command in (("sessions",), ("verify_events",), ("policy",)):
        done = shell(tmp_path, *command)
        assert done.returncode == Exit.FAILED
        assert f"There is no database {database}. Nothing was done." in done.stderr
        assert not database.exists()
    (tmp_path / "elsewhere").rename(database)
    assert shell(tmp_path, "sessions").stdout.count("\n") == 2


def test_a_command_that_makes_a_database_says_so(tmp_path):
    done = shell(tmp_path, "import_sessions", write(tmp_path))
    assert f"A new, empty database was made: {tmp_path / 'palimpsest.sqlite3'}" in done.stderr
    assert "A new" not in shell(tmp_path, "import_sessions", write(tmp_path)).stderr
