import subprocess
import sys
from pathlib import Path

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
