import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from signal import SIGKILL, SIGTERM

import pytest

from tests.management.commands import embedded
from tests.readers.rows import answer, encode, prompt

ROOT = Path(__file__).resolve().parents[2]


def manage(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(command, cwd=ROOT, env=embedded(folder / "data"), capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_command_imports_many_large_files_by_several_processes_and_misses_none(tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    ids = [f"{number:08d}-2222-4333-8444-555555555555" for number in range(6)]
    for session in ids:
        rows = [{**row, "sessionId": session} for row in (prompt("u", None, "x" * 4_000_000), answer("a", "u"))]
        (files / f"{session}.jsonl").write_bytes(encode(rows))
    # The same session twice: whichever process comes second finds it unchanged, or does it again when the first is done.
    (files / "copy.jsonl").write_bytes((files / f"{ids[0]}.jsonl").read_bytes())
    assert manage(tmp_path, "migrate", "-v0").returncode == 0
    done = manage(tmp_path, "import_sessions", str(files))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "7 files: 6 new, 1 unchanged · 12 entries added"), done.stderr


def sessions(folder: Path) -> list[Path]:
    """Two files, each of a session of its own."""
    folder.mkdir()
    files = [folder / f"{number:08d}-2222-4333-8444-555555555555.jsonl" for number in range(2)]
    for file in files:
        file.write_bytes(encode([prompt("u", None) | {"sessionId": file.stem}]))
    return files


def python(folder: Path, program: str, *arguments: Path) -> "subprocess.Popen[str]":
    """A process that runs the program, and holds wherever that reads from its standard input."""
    pipe = subprocess.PIPE
    place = embedded(folder / "data", DJANGO_SETTINGS_MODULE="project.settings.embedded")
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, env=place, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


_FIRST_OUTCOME = """
import sys, uuid
from pathlib import Path
import django
django.setup()
from sessions_app.events.actors import system_actor
from sessions_app.services.imports import parallel
outcomes = parallel.import_files(actor=system_actor("tests"), files=map(Path, sys.argv[1:]), run_id=str(uuid.uuid4()))
next(outcomes)
print("one is done", flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_children_end_with_a_parent_that_is_killed(tmp_path):
    files = sessions(tmp_path / "files")
    assert manage(tmp_path, "migrate", "-v0").returncode == 0
    parent = python(tmp_path, _FIRST_OUTCOME, *files)
    try:
        assert parent.stdout.readline() == "one is done\n"
        parent.send_signal(SIGKILL)
        # Every child holds the pipe that the parent wrote to: it ends when the last of them has.
        assert parent.stdout.read() == ""
    finally:
        parent.kill()
        parent.communicate()


_HELD = """
import sys
import django
django.setup()
from django.core.management import execute_from_command_line
from sessions_app.services.imports import parallel
begin = parallel.import_files

def held(**given):
    outcomes = begin(**given)
    yield next(outcomes)
    print("under way", flush=True)
    sys.stdin.read()
    yield from outcomes

parallel.import_files, parallel.WORTHWHILE_FILES = held, 2
execute_from_command_line(["manage.py", "import_sessions", sys.argv[1]])
"""


@pytest.mark.slow
def test_a_command_that_is_told_to_end_leaves_a_run_that_was_cancelled(tmp_path):
    files = sessions(tmp_path / "files")
    assert manage(tmp_path, "migrate", "-v0").returncode == 0
    importing = python(tmp_path, _HELD, files[0].parent)
    try:
        assert importing.stdout.readline() == "under way\n"
        importing.send_signal(SIGTERM)
        _, told = importing.communicate()
    finally:
        importing.kill()
        importing.communicate()
    assert (importing.returncode, told) == (130, "Stopped.\n")
    with closing(sqlite3.connect(tmp_path / "data" / "palimpsest.sqlite3")) as database:
        assert database.execute("SELECT state FROM sessions_app_importrun").fetchall() == [("cancelled",)]
