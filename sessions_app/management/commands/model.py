"""`manage.py model SESSION [NAME]`: which model a session has; chooses another model, or another window."""

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser

from sessions_app.management.arguments import count
from sessions_app.management.base import SessionCommand
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.management.shapes import Shape
from sessions_app.permissions import Action
from sessions_app.selectors.model_choices import name_of, window_source
from sessions_app.services import model_choice


class Command(SessionCommand):
    help = (
        "Tells the model and the window of a session. Takes a session that is held here over to another model, after a compaction "
        "where its view is too large for it; says of any other how many tokens its model takes."
    )
    action = Action.READ
    examples = (
        ("model 44c5e046", "its model, its window and where that is from"),
        ("model 44c5e046 anthropic:claude-haiku-4-5", "goes over to another model"),
        ("model 44c5e046 openai:gpt-5 --window 64000", "with a window of 64,000 tokens"),
        ("model 44c5e046 --window 1000000", "an imported session's model takes a million tokens"),
        ("model 44c5e046 --window 0", "as the agent reports it, or as the model has it"),
    )

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", nargs="?", help="scripted, anthropic:MODEL or openai:MODEL")
        parser.add_argument("--window", type=count, metavar="TOKENS", help="instead of the model's own; 0 for that")

    def run(self, options: Mapping[str, Any]) -> Exit:
        window = options["window"] or None
        if options["name"]:
            decision = model_choice.choose(actor=self.actor, session=self.session, name=options["name"], window=window)
            if decision.refusal:
                raise CommandFailure(decision.refusal, Exit.FAILED, code="model_refused")
            attempt = decision.compaction
            self._show(compacted=f"a{attempt.attempt}" if attempt is not None else None)
            return Exit.OK
        if options["window"] is None:
            self._show()
            return Exit.OK
        is_changed = model_choice.set_window(actor=self.actor, session=self.session, window=window)
        self._show()
        return Exit.OK if is_changed else Exit.NOTHING_TO_DO

    def _show(self, *, compacted: str | None = None) -> None:
        session = self.session
        if self.out.is_json:
            told: Shape = {"object": "model", "session_id": session.pk, "model": name_of(session) or None, "window": session.window}
            told |= {"window_source": window_source(session), "trigger": session.trigger_tokens, "compacted_first": compacted}
            self.out.document(told)
            return
        if compacted:
            self.out.note(f"It was compacted first ({compacted}).")
        window = f"window {session.window:,} tokens ({window_source(session)})"
        self.out.line(f"{name_of(session) or 'unknown model'}, {window}, trigger {session.trigger_tokens:,}")
