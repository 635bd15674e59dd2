"""Every check that a change must pass, in one command."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

PYTHON = sys.executable
TOOLS = Path(PYTHON).parent
STEPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("code style", (str(TOOLS / "ruff"), "check", ".")),
    ("code format", (str(TOOLS / "ruff"), "format", "--check", ".")),
    ("types", (str(TOOLS / "mypy"), ".")),
    ("layers", (str(TOOLS / "lint-imports"), "--no-cache")),
    ("template style", (str(TOOLS / "djlint"), "templates", "--lint", "--quiet")),
    ("migrations", (PYTHON, "manage.py", "makemigrations", "--check", "--dry-run")),
    ("system checks", (PYTHON, "manage.py", "check", "--fail-level", "WARNING")),
    (
        "house rules and documents",
        (PYTHON, "-m", "pytest", "-q", "-p", "no:randomly", "tests/project/test_house.py", "tests/project/test_documents.py"),
    ),
)


class Command(BaseCommand):
    """Runs all steps, also after a failure, and ends with 1 if one failed."""

    help = "Checks style, format, types, layers, templates, migrations, settings and documents."
    requires_system_checks = ()

    def handle(self, *_: Any, **__: Any) -> None:
        failed = [name for name, command in STEPS if not self._passes(name, command)]
        if failed:
            raise CommandError(f"{len(failed)} of {len(STEPS)} checks failed: {', '.join(failed)}.")
        self.stdout.write(f"All {len(STEPS)} checks passed.")

    def _passes(self, name: str, command: tuple[str, ...]) -> bool:
        started = time.monotonic()
        done = subprocess.run(  # noqa: S603  fixed commands
            command, cwd=settings.ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        self.stdout.write(f"{'ok' if done.returncode == 0 else 'FAILED':7} {name} ({time.monotonic() - started:.1f} s)")
        if done.returncode:
            self.stdout.write(done.stdout)
        self.stdout.flush()
        return done.returncode == 0
