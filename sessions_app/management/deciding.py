"""What the commands that decide about one entry have in common."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from django.core.management.base import CommandParser

from sessions_app.management.arguments import count
from sessions_app.management.base import SessionCommand
from sessions_app.management.exits import Exit
from sessions_app.selectors import plans
from sessions_app.services.overrides import OverrideAnswer


class DecidingCommand(SessionCommand):
    """Decides about an entry, or with `--undo` takes it back. A subclass names both services."""

    decide: ClassVar[Callable[..., OverrideAnswer]]
    take_back: ClassVar[Callable[..., OverrideAnswer]]

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("entry", type=count, metavar="ENTRY", help="its number in the history, counted from 0")
        parser.add_argument("--undo", action="store_true", help="takes the decision back")

    def run(self, options: Mapping[str, Any]) -> Exit:
        service = type(self).take_back if options["undo"] else type(self).decide
        answer = service(actor=self.actor, session=self.session, index=options["entry"])
        if self.out.is_json:
            held = plans.overrides_of(answer.session)
            self.out.document(
                {
                    "object": "overrides",
                    "session_id": self.session.pk,
                    "changed": list(answer.indexes),
                    "version": held.version,
                    "pinned": sorted(held.pinned),
                    "excluded": sorted(held.excluded),
                }
            )
        else:
            self.out.line(answer.sentence)
        return Exit.OK if answer.indexes else Exit.NOTHING_TO_DO
