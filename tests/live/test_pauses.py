"""What a server loaded at its start is not looked through again whenever memory is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.test_up import free_port

ROOT = Path(__file__).resolve().parents[2]
SERVED = """
import gc
from project import checks
for name in ("refuse_work_that_nobody_does", "refuse_unsafe_settings", "refuse_missing_static_files"):
    setattr(checks, name, lambda: None)
import project.asgi
print(gc.get_freeze_count(), len(gc.get_objects()))
"""
STARTED = """
import gc, os, sys
import project
from sessions_app.live import pauses
def keep():
    kept()
    print("frozen", gc.get_freeze_count(), len(gc.get_objects()), flush=True)
    os._exit(0)
kept, pauses.keep_what_is_loaded = pauses.keep_what_is_loaded, keep
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", "up", "--port", sys.argv[2], "--data-dir", sys.argv[1]])
"""
SERVICES = {
    "PALIMPSEST_DATABASE_URL": "postgres://nobody@127.0.0.1:1/none",
    "PALIMPSEST_REDIS_URL": "redis://127.0.0.1:1/0",
    "PALIMPSEST_SECRET_KEY": "k" * 60,
}


def printed(code: str, *arguments: str, **environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PALIMPSEST_", "DJANGO_", "PYTEST_"))}
    call = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(call, cwd=ROOT, env=kept | environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("form", ["asgi", "up"])
def test_a_server_that_is_ready_keeps_nearly_all_of_its_objects_out_of_collections(form, tmp_path):
    said = printed(SERVED, **SERVICES) if form == "asgi" else printed(STARTED, str(tmp_path), str(free_port()))
    frozen, looked_through = map(int, said.splitlines()[-1].split()[-2:])
    assert frozen > 50_000
    assert looked_through < frozen / 10
