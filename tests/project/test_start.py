"""What a command loads before it does anything: each of these would take a tenth of a second and more, in every command."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from tests.management.commands import embedded

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("anthropic", "celery", "daphne.server", "httpx2", "kombu", "openai", "playwright", "rich", "tiktoken", "twisted")
MIGRATION, READERS = "sessions_app.migrations.0001_create_tables", "sessions_app.readers.detect"
CODE = """
import json, sys
import project
from django.core.management import execute_from_command_line
try:
    execute_from_command_line(["manage.py", *sys.argv[1:]])
except SystemExit as end:
    assert not end.code, end.code
print(json.dumps(sorted(name for name in HEAVY if name in sys.modules)))
"""


def loaded_by(folder: Path, *arguments: str) -> list[str]:
    """Those of the heavy modules that a command loads in a process of its own."""
    command = [sys.executable, "-c", f"HEAVY = {(*HEAVY, MIGRATION, READERS)!r}{CODE}", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=embedded(folder), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    loaded: list[str] = json.loads(done.stdout.splitlines()[-1])
    return loaded


def test_a_command_loads_neither_the_server_nor_the_queue_nor_a_providers_library(tmp_path):
    assert MIGRATION in loaded_by(tmp_path, "migrate", "-v0")
    assert loaded_by(tmp_path, "sessions") == []
    note = tmp_path / "note.jsonl"
    note.write_text('{"role": "user", "content": "Hello"}\n{"role": "assistant", "content": "Yes?"}\n')
    assert loaded_by(tmp_path, "import_sessions", str(note)) == [READERS]
    assert loaded_by(tmp_path, "import_sessions", str(note)) == []  # nothing is new


def test_a_database_that_misses_a_migration_gets_it(tmp_path):
    loaded_by(tmp_path, "migrate", "-v0")
    with closing(sqlite3.connect(tmp_path / "palimpsest.sqlite3")) as database:
        newest = database.execute("SELECT max(name) FROM django_migrations WHERE app = 'sessions_app'").fetchone()
    call = [sys.executable, "manage.py", "migrate", "sessions_app", "0016", "-v0"]
    subprocess.run(call, cwd=ROOT, env=embedded(tmp_path), check=True, timeout=120)
    assert loaded_by(tmp_path, "sessions") == [MIGRATION]
    with closing(sqlite3.connect(tmp_path / "palimpsest.sqlite3")) as database:
        assert database.execute("SELECT max(name) FROM django_migrations WHERE app = 'sessions_app'").fetchone() == newest


def test_the_look_does_see_what_is_loaded(tmp_path):
    assert loaded_by(tmp_path, "runserver", "--help") == ["daphne.server", "twisted"]
