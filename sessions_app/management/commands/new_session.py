"""`manage.py new_session`: begins a session that this console holds itself."""

import sys
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser

from sessions_app.engine.terms import Profile
from sessions_app.management.arguments import count
from sessions_app.management.base import ConsoleCommand
from sessions_app.providers.turn_models import suggestions
from sessions_app.services.turns.sessions import MAX_SYSTEM_CHARS, begin


class Command(ConsoleCommand):
    may_make_database = True
    help = "Begins a session that is held here: messages are sent with `send`, and answered by a model without tools. Prints its id."
    examples = (
        ("new_session", "the first model that can be asked here"),
        ("new_session --model anthropic:claude-haiku-4-5 --title 'Release 4.2'", "another one, by name"),
        ("new_session --model scripted --window 8000 --system - < FILE", "a small window, and a system prompt from a file"),
    )

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("--model", help="scripted, anthropic:MODEL or openai:MODEL, with @TOKENS for another window")
        parser.add_argument("--title", default="", help="without one, the first message gives it")
        parser.add_argument("--system", default="", metavar="TEXT", help="the system prompt; - reads it from standard input")
        parser.add_argument("--window", type=count, metavar="TOKENS", help="instead of the model's own")
        parser.add_argument("--profile", default="", choices=[profile.value for profile in Profile], help="instead of the policy's")

    def run(self, options: Mapping[str, Any]) -> None:
        system = sys.stdin.read(MAX_SYSTEM_CHARS + 1) if options["system"] == "-" else options["system"]
        session = begin(
            actor=self.actor,
            model=options["model"] or suggestions()[0],
            title=options["title"],
            system=system,
            window=options["window"],
            profile=options["profile"],
        )
        if self.out.is_json:
            shape = {"object": "session", "id": session.pk, "title": session.title, "provider": session.provider, "model": session.model}
            self.out.document(shape | {"window": session.window})
        else:
            self.out.line(str(session.pk))
