"""Takes session files in, from the command line."""

import shutil
import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db import DatabaseError

from sessions_app.management.base import DatabaseCommand
from sessions_app.models import ImportRun
from sessions_app.models.import_run import ImportState
from sessions_app.permissions import Action, ActionRefused, NoAccess, command_actor, require
from sessions_app.services.imports import import_paths
from sessions_app.services.imports.source import database_sentence

FAILED, USAGE = 1, 2


class Command(DatabaseCommand):
    help = "Imports session files and folders of them; `-` reads one file from standard input. Unchanged files are skipped."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", metavar="PATH", help="a file, a folder, or - for standard input")
        parser.add_argument("--as", dest="as_user", default="", metavar="NAME", help="the user in whose name this is done")
        parser.add_argument("--quiet", action="store_true", help="no progress, no line per file; only the summary")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            actor = command_actor(options["as_user"])
            require(actor, Action.IMPORT)
            with tempfile.TemporaryDirectory(prefix="palimpsest-stdin-", dir=_data_folder()) as folder:
                paths = [_from_stdin(Path(folder)) if path == "-" else path for path in options["paths"]]
                run = import_paths(actor=actor, paths=paths, progress=_Progress(self, is_quiet=options["quiet"]), may_spawn=True)
        except (NoAccess, ActionRefused) as error:
            raise CommandError(str(error), returncode=USAGE) from error
        except DatabaseError as error:
            raise CommandError(database_sentence(error)) from error
        self._report(run, is_quiet=options["quiet"])
        if run.state != ImportState.COMPLETED:
            sys.exit(FAILED)

    def _report(self, run: ImportRun, *, is_quiet: bool) -> None:
        for outcome in run.files:
            if outcome["state"] == "failed":
                self.stderr.write(f"{outcome['name']}: {outcome['error']}")
            elif not is_quiet and outcome["state"] not in {"unchanged", "skipped"}:
                self.stdout.write(_line(outcome))
        self.stdout.write(_summary(run.counts))


class _Progress:
    """One line on standard error that is written over, when a person watches."""

    def __init__(self, command: DatabaseCommand, *, is_quiet: bool) -> None:
        self._out = command.stderr
        self._is_shown = not is_quiet and sys.stderr.isatty()
        self._is_dirty = False

    def __call__(self, name: str, done: int, total: int, sources: int) -> None:
        if not self._is_shown:
            return
        share = f"{100 * done // total} %" if total else ""
        self._out.write(f"\r\x1b[2K{sources} done · {Path(name).name[:60]} {share}", ending="" if done < total else "\r\x1b[2K")


def _data_folder() -> Path:
    folder = Path(settings.DATA_DIR)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _from_stdin(folder: Path) -> str:
    """Standard input as a file: growth can only be proven on something that can be read twice."""
    path = folder / "stdin.jsonl"
    try:
        with path.open("wb") as target:
            shutil.copyfileobj(sys.stdin.buffer, target, 1 << 20)
    except OSError as error:
        text = f"Standard input can't be kept in {folder.parent} while it is read ({error.strerror}). Nothing was changed."
        raise CommandError(text) from error
    return str(path)


def _line(outcome: dict[str, Any]) -> str:
    said = [f"{outcome['state']:9}", f"{outcome.get('entries', 0):>7} entries"]
    for name, word in (("checkpoints", "compactions"), ("children", "side chains"), ("problems", "problems")):
        if outcome.get(name):
            said.append(f"{outcome[name]} {word if outcome[name] != 1 else word.removesuffix('s')}")
    return "  ".join([*said, outcome.get("title") or outcome["name"]])


def _summary(counts: dict[str, int]) -> str:
    states = ("new", "grown", "rewritten", "unchanged", "skipped", "failed", "cancelled")
    told = [f"{counts[f'sources_{state}']} {state}" for state in states if counts.get(f"sources_{state}")]
    files = counts.get("sources", 0)
    return f"{files} {'file' if files == 1 else 'files'}: {', '.join(told) or 'nothing'} · {counts.get('entries', 0)} entries added"
