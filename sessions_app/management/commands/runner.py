"""`manage.py runner SESSION`: whose a session is, and what follows an outcome that nobody knows."""

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser

from sessions_app.management.base import SessionCommand
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.permissions import Action
from sessions_app.selectors.runners import runner_line, runner_named
from sessions_app.services.compactions.request import settle
from sessions_app.services.runners import binding


class Command(SessionCommand):
    help = (
        "Says which runner holds a session, binds it to one or takes that back. After a compaction whose outcome at the runner is not "
        "known, --settle says that nothing is to follow; compact --through runner or --through console goes on."
    )
    action = Action.BIND_RUNNER
    examples = (
        ("runner 44c5e046", "says which it is"),
        ("runner 44c5e046 --bind box", "from now on box is asked to compact"),
        ("runner 44c5e046 --bind box --external-id conv-7", "box calls the session conv-7"),
        ("runner 44c5e046 --unbind", "takes that back"),
    )

    def add_options(self, parser: CommandParser) -> None:
        way = parser.add_mutually_exclusive_group()
        way.add_argument("--bind", default="", metavar="RUNNER", help="its name or id")
        way.add_argument("--unbind", action="store_true", help="it is bound to none")
        way.add_argument("--settle", action="store_true", help="nothing is to follow an unknown outcome")
        parser.add_argument("--external-id", default="", metavar="ID", help="what the runner calls the session; by itself our own id")

    def run(self, options: Mapping[str, Any]) -> None:
        if options["bind"]:
            runner = runner_named(options["bind"])
            if runner is None:
                raise CommandFailure(f"There is no runner {options['bind'][:80]!r}. Nothing was done.", Exit.NOT_FOUND, field="bind")
            binding.bind(actor=self.actor, session=self.session, runner=runner, external_id=options["external_id"])
        elif options["unbind"]:
            binding.unbind(actor=self.actor, session=self.session)
        elif options["settle"]:
            settle(actor=self.actor, session=self.session)
        self._show()

    def _show(self) -> None:
        line = runner_line(self.session)
        if self.out.is_json:
            told = {"object": "session.runner", "session_id": self.session.pk, "kind": self.session.kind}
            named = {"runner": line.name if line else None, "external_id": (line.external_id or None) if line else None}
            state = {"health": line.health if line else None, "undecided_attempt": line.undecided if line else None}
            self.out.document(told | named | state)
        elif line is None:
            self.out.line("This session has no runner.")
        else:
            self.out.line(f"{line.name} ({line.health}) holds it{f' as {line.external_id}' if line.external_id else ''}.")
            if line.undecided:
                self.out.note(f"Whether it carried out a{line.undecided} is not known: compact --through runner, or --through console.")
