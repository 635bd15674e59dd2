"""`manage.py goal SESSION`: what a session is for; sets it in words of one's own, or leaves it to its messages again."""

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser

from sessions_app.management.base import SessionCommand
from sessions_app.management.exits import Exit
from sessions_app.management.output import plain_text
from sessions_app.permissions import Action
from sessions_app.selectors.goals import goal_of
from sessions_app.services.goals import set_goal


class Command(SessionCommand):
    help = (
        "Tells the goal of a session, which stands beside every summary in the same words. Without one that somebody set, it is the "
        "goal that the user stated last, else the first request. What is set stands there from the next compaction on."
    )
    action = Action.READ
    examples = (
        ("goal 44c5e046", "what the session is for, and who says so"),
        ("goal 44c5e046 --set 'Replace the old importer; never touch legacy.py.'", "in words of your own, at most 600 characters"),
        ("goal 44c5e046 --clear", "as its messages tell it"),
    )

    def add_options(self, parser: CommandParser) -> None:
        either = parser.add_mutually_exclusive_group()
        either.add_argument("--set", metavar="TEXT", help="the goal, at most 600 characters")
        either.add_argument("--clear", action="store_true", help="leave it to what the messages tell")

    def run(self, options: Mapping[str, Any]) -> Exit:
        is_changed = True
        if options["set"] is not None or options["clear"]:
            is_changed = set_goal(actor=self.actor, session=self.session, text=options["set"] or "")
        self._show()
        return Exit.OK if is_changed else Exit.NOTHING_TO_DO

    def _show(self) -> None:
        goal = goal_of(self.session)
        if self.out.is_json:
            origin = "set" if goal.is_set else "found" if goal.text else None
            self.out.document(
                {"object": "goal", "session_id": self.session.pk, "text": goal.text or None, "origin": origin, "index": goal.index}
            )
            return
        if not goal.text:
            self.out.line("Goal, none: nobody asked for anything yet.")
            return
        self.out.line("Goal, set by a person:" if goal.is_set else f"Goal, found in message #{goal.index}:")
        for line in goal.text.splitlines():
            self.out.line(plain_text(line))
