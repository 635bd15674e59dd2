"""Runs a command in this process, and as the shell would in one of its own."""

import io
import os
import subprocess
import sys
from pathlib import Path

from django.core.management import call_command

ROOT = Path(__file__).resolve().parent.parent.parent


def run(name: str, *arguments: object, **options: object) -> tuple[str, str, int]:
    """What it wrote to standard output and standard error, and its exit code. Lets failures through."""
    out, err = io.StringIO(), io.StringIO()
    end = 0
    try:
        call_command(name, *map(str, arguments), stdout=out, stderr=err, **options)
    except SystemExit as ended:
        end = int(ended.code or 0)
    return out.getvalue(), err.getvalue(), end


def embedded(data_dir: Path, **changes: str) -> dict[str, str]:
    """The environment of a process that runs the embedded form on a data directory, whatever form the tests run on."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PALIMPSEST_", "DJANGO_", "PYTEST_"))}
    return kept | {"PALIMPSEST_DATA_DIR": str(data_dir)} | changes


def shell(data_dir: Path, *arguments: object, given: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """`manage.py` with these arguments, as a process of its own on a data directory."""
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *map(str, arguments)],
        env=embedded(data_dir, **environment),
        input=given,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
        cwd=ROOT,
    )
