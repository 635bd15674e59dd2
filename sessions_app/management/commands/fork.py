"""`manage.py fork SESSION`: a session of its own that begins with a copy of another one's history."""

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser

from sessions_app.management.arguments import count
from sessions_app.management.base import SessionCommand
from sessions_app.permissions import Action
from sessions_app.services.forks import fork


class Command(SessionCommand):
    help = "Forks a session at one of its generations: the copy shows the same view, and goes its own way from there. Prints its id."
    action = Action.FORK
    examples = (
        ("fork 44c5e046", "with what is in force now"),
        ("fork 44c5e046 --generation 2", "with checkpoint #2, and all that came after it"),
        ("fork 44c5e046 --generation 2 --as-it-was", "as it was when checkpoint #2 was committed"),
        ("fork 44c5e046 --model scripted", "to go on here, with that model"),
    )

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("--generation", type=count, metavar="N", help="the checkpoint in force; 0 for none of this console")
        parser.add_argument("--as-it-was", action="store_true", help="end the history where it ended when that checkpoint was committed")
        parser.add_argument("--model", default="", help="go on here with scripted, anthropic:MODEL or openai:MODEL")
        parser.add_argument("--title", default="", help="without one, the origin's title and the generation")

    def run(self, options: Mapping[str, Any]) -> None:
        names = ("generation", "as_it_was", "model", "title")
        copy = fork(actor=self.actor, session=self.session, **{name: options[name] for name in names})
        if self.out.is_json:
            checkpoint = copy.active_console or copy.active_agent
            self.out.document(
                {
                    "object": "session",
                    "id": copy.pk,
                    "title": copy.title,
                    "kind": copy.kind,
                    "origin": self.session.pk,
                    "generation": checkpoint.generation if checkpoint else 0,
                    "entries": copy.entry_count,
                    "inherited": copy.inherited_count,
                }
            )
            return
        self.out.note(f"“{copy.title}” begins with {copy.inherited_count:,} entries of “{self.session.title}”.")
        self.out.line(str(copy.pk))
