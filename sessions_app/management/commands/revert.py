"""`manage.py revert SESSION`: makes an earlier checkpoint, or none, the one that this console shows."""

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser

from sessions_app.management.arguments import count
from sessions_app.management.base import SessionCommand
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.models import Compaction
from sessions_app.permissions import Action
from sessions_app.services.compactions.revert import revert


class Command(SessionCommand):
    help = (
        "Takes the compaction that is in force back: the view is then what it was before it, byte for byte. "
        "The history and the checkpoints stay, so that --generation also leads forward again."
    )
    action = Action.REVERT
    examples = (
        ("revert 44c5e046", "one step back"),
        ("revert 44c5e046 --generation 3", "to checkpoint #3, whichever that is"),
        ("revert 44c5e046 --none", "to what there is without any compaction of this console"),
    )

    def add_options(self, parser: CommandParser) -> None:
        where = parser.add_mutually_exclusive_group()
        where.add_argument("--generation", type=count, metavar="N", help="the checkpoint to show; 0 for none")
        where.add_argument("--none", action="store_true", help="no checkpoint of this console")
        parser.add_argument("--as-it-was", action="store_true", help="with the pins and exclusions of that time, not today's")

    def run(self, options: Mapping[str, Any]) -> Exit:
        before = self.session.active_console
        wanted = None if options["none"] else options["generation"]
        if wanted is None and not options["none"]:
            wanted = _one_back(before)
        session = revert(actor=self.actor, session=self.session, generation=wanted or None, as_it_was=options["as_it_was"])
        now = session.active_console or session.active_agent
        is_changed = session.active_console_id != (before.pk if before else None) or session.overrides != self.session.overrides
        if self.out.is_json:
            self.out.document(
                {
                    "object": "revert",
                    "session_id": session.pk,
                    "changed": is_changed,
                    "before": _place(before or self.session.active_agent),
                    "after": _place(now),
                }
            )
        else:
            shown = f"generation #{now.generation} ({now.lineage})" if now else "the whole history"
            self.out.line(f"The view is {shown} now." if is_changed else f"The view is {shown} already. Nothing was changed.")
        return Exit.OK if is_changed else Exit.NOTHING_TO_DO


def _one_back(in_force: Compaction | None) -> int | None:
    """The generation that was in force before; None for no checkpoint. Raises `CommandFailure` when there is nothing to take back."""
    if in_force is None:
        sentence = "No compaction of this console is in force, so there is nothing to take back. Nothing was changed."
        raise CommandFailure(sentence, Exit.NOTHING_TO_DO)
    return in_force.parent.generation if in_force.parent else None


def _place(checkpoint: Compaction | None) -> dict[str, Any] | None:
    return {"generation": checkpoint.generation, "lineage": checkpoint.lineage, "id": checkpoint.pk} if checkpoint else None
