"""`manage.py export SESSION`: the source byte for byte, a continuation for the agent, or the entries as text or JSON."""

import os
import shlex
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from sessions_app.management.base import SessionCommand
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.models import Session
from sessions_app.permissions import Action
from sessions_app.selectors.continuation import place_of
from sessions_app.services.exports import (
    ContinuationFile,
    ExportKind,
    export_continuation,
    export_entries,
    export_original,
    name_of,
)
from sessions_app.writers.base import CannotContinue

LONGEST_FOLDER = 200
"""Characters after which Claude Code cuts a project's folder name and adds a hash of its own."""


@dataclass
class _Export:
    """What is to be written: its name, its bytes, what `--json` tells of it, and what people are told."""

    name: str
    chunks: Iterator[bytes]
    facts: dict[str, object] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)


class Command(SessionCommand):
    help = (
        "Writes a session to standard output or a file: as it was imported, byte for byte (original); as a new session in its agent's own "
        "format that goes on with this console's view (continuation); or its entries (jsonl, markdown). Never changes the original."
    )
    examples = (
        ("export 44c5e046 > session.jsonl", "the file that was imported"),
        ("export 44c5e046 --format continuation --output .", "a new session for the agent; says how to resume it"),
        ("export 44c5e046 --format continuation --install", "the same, put where the agent looks for it"),
        ("export 44c5e046 --format markdown --output session.md", "to read"),
    )
    action = Action.EXPORT

    def add_options(self, parser: ArgumentParser) -> None:
        kinds = [kind.value for kind in ExportKind]
        parser.add_argument("--format", choices=kinds, default=ExportKind.ORIGINAL.value, help="what to write (default: original)")
        where = parser.add_mutually_exclusive_group()
        where.add_argument("--output", type=Path, metavar="FILE|DIR", help="where to write; an existing file is never overwritten")
        where.add_argument("--install", action="store_true", help="put a continuation where its agent looks for it")

    def run(self, options: Mapping[str, Any]) -> None:
        kind = ExportKind(options["format"])
        if options["install"] and kind is not ExportKind.CONTINUATION:
            raise CommandFailure("Only a continuation can be installed. Nothing was written.", Exit.USAGE, field="install")
        if self.out.is_json and options["output"] is None and not options["install"]:
            raise CommandFailure("With --json the export needs a place: give --output. Nothing was written.", Exit.USAGE, field="output")
        if kind is ExportKind.CONTINUATION:
            self._continue(options["output"], is_install=options["install"])
            return
        self._deliver(self._copy(kind), options["output"])

    def _copy(self, kind: ExportKind) -> _Export:
        if kind is not ExportKind.ORIGINAL:
            return _Export(name_of(self.session, kind), export_entries(actor=self.actor, session=self.session, kind=kind))
        exported = export_original(actor=self.actor, session=self.session)
        if exported is None:
            raise CommandFailure("This session was not read from a file, so there is none to give back. Nothing was written.")
        source, chunks = exported
        return _Export(PurePath(source.path).name or "session", chunks, {"source": source.path}, [f"{source.size} bytes of {source.path}"])

    def _continue(self, output: Path | None, *, is_install: bool) -> None:
        folder = _agents_folder(self.session) if is_install else output  # first: an export that can't be written is none
        try:
            with export_continuation(actor=self.actor, session=self.session) as written:
                self._deliver(_export_of(written, is_installed=is_install), folder)
        except CannotContinue as error:
            raise CommandFailure(f"{error} Nothing was written.", code="cannot_continue") from error

    def _deliver(self, export: _Export, target: Path | None) -> None:
        """Writes it, then says what was written and what to do with it."""
        if target is None:
            sys.stdout.buffer.writelines(export.chunks)
            sys.stdout.buffer.flush()
        else:
            target = target / export.name if target.is_dir() else target
            size = _write(target, export.chunks)
            if self.out.is_json:
                self.out.document({"object": "export", "session": str(self.session.pk), "path": str(target), "bytes": size} | export.facts)
                return
            self.out.note(f"Written: {target}")
        for words in export.words:
            self.out.note(words)


def _write(target: Path, chunks: Iterator[bytes]) -> int:
    """Writes a new file that only its owner reads, whole or not at all; returns its bytes."""
    try:
        # What agents write about is private, and so are their own files.
        opened = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise _unwritable(target, error) from error
    try:
        with os.fdopen(opened, "wb") as file:
            return sum(file.write(chunk) for chunk in chunks)
    except BaseException as error:
        target.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _unwritable(target, error) from error
        raise


def _unwritable(target: Path, error: OSError) -> CommandFailure:
    reason = error.strerror or type(error).__name__
    return CommandFailure(f"{target} can't be written ({reason}). Nothing of an existing file was changed.")


def _export_of(written: ContinuationFile, *, is_installed: bool) -> _Export:
    place = written.place
    home = f"{place.home}/{place.folder}"
    run = f"cd {shlex.quote(written.working_directory)} && {place.resume}" if written.working_directory else place.resume
    words = [f"Generation #{written.generation} as a new session {written.session_id}, {written.size} bytes.", *written.notes]
    if not is_installed:
        words.append(
            f"Put the file into {home}/ as {place.name} (where {place.home_variable} is set, below that folder), or use --install."
        )
    facts: dict[str, object] = {
        "format": ExportKind.CONTINUATION.value,
        "generation": written.generation,
        "continued_as": written.session_id,
        "sha256": written.sha256,
        "folder": home,
        "resume": run,
        "notes": written.notes,
    }
    return _Export(place.name, written.chunks(), facts, [*words, f"To go on: {run}"])


def _agents_folder(session: Session) -> Path:
    """Where the agent looks for this session. Makes the folder inside the agent's own, if that is there."""
    place = place_of(session)
    if place is None:
        raise CommandFailure("Nobody knows where this session's agent keeps its own. Nothing was written.", code="cannot_continue")
    home = Path(os.environ.get(place.home_variable) or place.home).expanduser()
    if not home.is_dir():
        raise CommandFailure(f"The agent's folder {home} is not there. Nothing was written. Set {place.home_variable}, or give --output.")
    if place.needs_directory and not session.working_directory:
        raise CommandFailure("The session does not say in which folder it ran, by which its agent finds it. Give --output instead.")
    folder = home / place.folder
    if len(folder.name) > LONGEST_FOLDER:
        folder = _cut_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise CommandFailure(f"{folder} can't be made ({error.strerror}). Nothing was written.") from error
    return folder


def _cut_folder(folder: Path) -> Path:
    beginning = folder.name[:LONGEST_FOLDER]
    found = [path for path in folder.parent.glob("*") if path.name.startswith(beginning) and path.is_dir()]
    if len(found) != 1:
        raise CommandFailure(f"The agent shortens the folder's name, and {len(found)} folders begin like it. Give --output instead.")
    return found[0]
