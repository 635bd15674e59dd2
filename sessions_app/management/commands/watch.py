"""`manage.py watch FOLDER…`: follows the session files of agents and takes in what they write while they write it."""

import signal
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from sessions_app.management.base import DatabaseCommand
from sessions_app.management.exits import failure_of
from sessions_app.management.output import plain_line
from sessions_app.permissions import ActionRefused, NoAccess, command_actor
from sessions_app.services.imports.database_place import DatabaseGoneError
from sessions_app.services.watching import Watch, WatchStatus, check_folders


class Command(DatabaseCommand):
    may_make_database = True
    help = "Follows folders of session files: imports what is there, then every new line as it is written. Ctrl-C stops it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folders", nargs="+", metavar="FOLDER", help="for example ~/.claude/projects or ~/.codex/sessions")
        parser.add_argument("--as", dest="as_user", default="", metavar="NAME", help="the user in whose name this is done")
        parser.add_argument("--poll", action="store_true", help="look through the folders, where the file system does not tell of changes")
        parser.add_argument("--quiet", action="store_true", help="no line per file; only problems")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            folders = check_folders(options["folders"])
            status = StatusLine(self, is_quiet=options["quiet"])
            watch = Watch(actor=command_actor(options["as_user"]), folders=folders, tell=status, polls=options["poll"])
        except (ValueError, NoAccess, ActionRefused) as error:
            raise failure_of(error) or CommandError(str(error)) from error
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: watch.stop())
        self.stdout.write(f"Following {', '.join(map(str, folders))} (Ctrl-C stops it).")
        if watch.polled:
            names = ", ".join(map(str, watch.polled))
            often = "twice a second, and of more than 10,000 files less often"
            self.stdout.write(f"Changes in {names} are looked for {often}: the file system does not tell of them.")
        self.stdout.flush()
        try:
            watch.run()
        except DatabaseGoneError as error:
            raise CommandError(f"{error}\n{status.summary()}") from error
        self.stdout.write(status.summary())


class StatusLine:
    """One line on standard error that is written over, when a person watches; a line for each file that came or was rewritten."""

    def __init__(self, command: DatabaseCommand, *, is_quiet: bool) -> None:
        self._command, self._is_quiet = command, is_quiet
        self._is_shown = not is_quiet and sys.stderr.isatty()
        self._last = WatchStatus()

    def __call__(self, status: WatchStatus) -> None:
        was_first, self._last = self._last.is_first_pass, status
        clear = "\r\x1b[2K" if self._is_shown else ""
        if status.problem:
            self._command.stderr.write(f"{clear}{plain_line(status.problem)}")
        news = status.news
        if news is not None and not self._is_quiet and (news.state.value != "grown" or not self._is_shown):
            line = f"{news.state.value:9} {_counted(news.entries):>14}  {plain_line(news.title or Path(news.name).name)}"
            self._command.stdout.write(f"{clear}{line}")
            self._command.stdout.flush()
        if was_first and not status.is_first_pass and not self._is_quiet:
            self._command.stdout.write(f"{clear}What was there is taken in: {_counted(status.entries)} added. Following.")
            self._command.stdout.flush()
        if self._is_shown:
            self._command.stderr.write(clear + self._words(), ending="")
            self._command.stderr.flush()

    def summary(self) -> str:
        """What came of it all."""
        clear = "\r\x1b[2K" if self._is_shown else ""
        return f"{clear}Stopped. {self._words()}"

    def _words(self) -> str:
        status = self._last
        words = f"{status.files:,} file{'s' if status.files != 1 else ''} · {_counted(status.entries)} added"
        words += f" · {status.failures:,} could not be read" if status.failures else ""
        if status.is_first_pass:
            words += " · taking in what is there"
        elif status.news is not None:
            words += f" · last: {plain_line(status.news.title or Path(status.news.name).name)[:50]}"
        return words


def _counted(entries: int) -> str:
    return f"{entries:,} {'entry' if entries == 1 else 'entries'}"
