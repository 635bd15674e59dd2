"""`manage.py verify_events [STREAM…]`: checks the hash chain of every stream, or of those named."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from sessions_app.events.verify import stream_names, verify_stream
from sessions_app.management.base import DatabaseCommand


class Command(DatabaseCommand):
    help = "Verifies that no event of the log was changed or removed. Exit code 1 when one was."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("streams", nargs="*", metavar="STREAM", help="for example security or session:ID; all when none is given")

    def handle(self, *args: Any, **options: Any) -> None:
        broken = 0
        names = options["streams"] or stream_names()
        for name in names:
            verdict = verify_stream(name)
            if verdict.broken_at is not None:
                broken += 1
                self.stderr.write(f"{name}: broken at event {verdict.broken_at}: {verdict.reason}")
        if broken:
            raise CommandError(f"{broken} of {len(names)} streams are not as they were written.")
        self.stdout.write(f"{len(names)} streams verified; every event is as it was written.")
