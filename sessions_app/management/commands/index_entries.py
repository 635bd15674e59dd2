"""`manage.py index_entries`: indexes for the search what is not indexed yet; `--anew` everything."""

import sys
from typing import Any

from django.core.management.base import CommandParser

from sessions_app.management.base import DatabaseCommand
from sessions_app.selectors.search_state import lagging_sessions
from sessions_app.services import search_index


class Command(DatabaseCommand):
    help = "Indexes for the search whatever is not indexed yet. It may be stopped and started again, and run beside a server."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--anew", action="store_true", help="forget the index first; until it is filled again, the search finds less")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["anew"]:
            search_index.empty_index()
        sessions = len(lagging_sessions())
        entries = search_index.index_lagging(progress=self._progress)
        self.stdout.write(f"{entries:,} entries of {sessions:,} sessions were indexed; nothing is left to do.")

    def _progress(self, entries: int) -> None:
        if sys.stderr.isatty():
            self.stderr.write(f"\r{entries:,} entries", ending="")
