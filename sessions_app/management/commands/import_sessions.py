"""`manage.py import_sessions PATH…`: takes session files in."""

import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser
from django.db import DatabaseError

from sessions_app.management.base import ConsoleCommand
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.management.output import Output, plain_line
from sessions_app.models import ImportRun
from sessions_app.models.import_run import ImportState
from sessions_app.permissions import Action, require
from sessions_app.services.imports import import_paths
from sessions_app.services.imports.outcomes import database_sentence

CLEAR = "\r\x1b[2K"


class Command(ConsoleCommand):
    may_make_database = True
    help = "Imports session files and folders of them; `-` reads one file from standard input. Unchanged files are skipped."
    examples = (
        ("import_sessions ~/.claude/projects ~/.codex/sessions", "all that these agents wrote"),
        ("import_sessions - < FILE", "one file from standard input"),
    )

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("paths", nargs="+", metavar="PATH", help="a file, a folder, or - for standard input")
        parser.add_argument("--quiet", action="store_true", help="no progress, no line per file; only the summary")

    def run(self, options: Mapping[str, Any]) -> Exit:
        require(self.actor, Action.IMPORT)
        is_quiet = options["quiet"] or self.out.is_json
        progress = _Progress(self, is_quiet=is_quiet)
        try:
            with tempfile.TemporaryDirectory(prefix="palimpsest-stdin-", dir=_data_folder()) as folder:
                paths = [_from_stdin(Path(folder)) if path == "-" else path for path in options["paths"]]
                run = import_paths(actor=self.actor, paths=paths, progress=progress, may_spawn=True)
        except DatabaseError as error:
            raise CommandFailure(database_sentence(error), code="database_error") from error
        finally:
            progress.clear()
        if self.out.is_json:
            self.out.document({"object": "import", "id": run.pk, "state": run.state, "counts": run.counts, "files": run.files})
        else:
            _report(self.out, run, is_quiet=is_quiet)
        return Exit.OK if run.state == ImportState.COMPLETED else Exit.FAILED


def _report(out: Output, run: ImportRun, *, is_quiet: bool) -> None:
    for outcome in run.files:
        if outcome["state"] == "failed":
            out.note(f"{outcome['name']}: {outcome['error']}")
        elif not is_quiet and outcome["state"] not in {"unchanged", "skipped"}:
            out.write(f"{_line(outcome)}\n")
            out.write("".join(f"{'':9}  {plain_line(note)}\n" for note in outcome.get("notes", [])))
    for why, names in _skipped(run.files).items() if not is_quiet else ():
        others = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
        out.write(f"skipped    {plain_line(names[0])}{others}: {plain_line(why)}\n")
    if (unlisted := run.counts.get("sources", 0) - len(run.files)) > 0 and not is_quiet:
        failed = run.counts.get("sources_failed", 0) - sum(outcome["state"] == "failed" for outcome in run.files)
        out.write(f"{unlisted:,} more not listed{f', {failed:,} of which failed' if failed else ''}.\n")
    out.line(_summary(run.counts))


def _skipped(files: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Why files of folders were left out → which: hundreds of them may have the same reason."""
    found: dict[str, list[str]] = {}
    for outcome in files:
        if outcome["state"] == "skipped":
            found.setdefault(outcome["error"], []).append(outcome["name"])
    return found


class _Progress:
    """One line on standard error that is written over, when a person watches."""

    def __init__(self, command: ConsoleCommand, *, is_quiet: bool) -> None:
        self._out = command.stderr
        self._is_shown = not is_quiet and sys.stderr.isatty()

    def __call__(self, name: str, done: int, total: int, sources: int, found: int) -> None:
        if not self._is_shown:
            return
        share = f"{100 * done // total} %" if total else ""
        of = f"{sources:,} of {found:,}" if found > 1 else f"{sources:,}"
        self._show(f"{CLEAR}{of} done · {plain_line(Path(name).name[:60])} {share}")

    def clear(self) -> None:
        """Takes the line away."""
        if self._is_shown:
            self._show(CLEAR)

    def _show(self, text: str) -> None:
        self._out.write(text, style_func=str, ending="")  # it is no error


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
        raise CommandFailure(text) from error
    return str(path)


def _line(outcome: dict[str, Any]) -> str:
    entries = outcome.get("entries", 0)
    said = [f"{outcome['state']:9}", f"{entries:>7,} {'entry  ' if entries == 1 else 'entries'}"]
    for name, word in (("checkpoints", "compactions"), ("children", "side chains"), ("problems", "problems")):
        if outcome.get(name):
            said.append(f"{outcome[name]} {word if outcome[name] != 1 else word.removesuffix('s')}")
    return "  ".join([*said, plain_line(outcome.get("title") or outcome["name"])])


def _summary(counts: dict[str, int]) -> str:
    states = ("new", "grown", "rewritten", "unchanged", "skipped", "failed", "cancelled")
    told = [f"{counts[f'sources_{state}']:,} {state}" for state in states if counts.get(f"sources_{state}")]
    files = counts.get("sources", 0)
    return f"{files:,} {'file' if files == 1 else 'files'}: {', '.join(told) or 'nothing'} · {counts.get('entries', 0):,} entries added"
