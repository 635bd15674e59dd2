"""`manage.py reset_breaker SESSION`: lets automatic compaction start again after failures."""

from collections.abc import Mapping
from typing import Any

from sessions_app.management.base import SessionCommand
from sessions_app.management.exits import Exit
from sessions_app.permissions import Action
from sessions_app.selectors.verdicts import resting_of
from sessions_app.services.compactions import breakers


class Command(SessionCommand):
    help = "Lets automatic compaction of a session start again at once after failures, and takes the warning away that it makes no headway."
    action = Action.RESET_BREAKER
    examples = (("reset_breaker 44c5e046", "what the button on its page does"),)

    def run(self, options: Mapping[str, Any]) -> Exit:
        before = resting_of(self.session)
        is_changed = bool(before.failures or before.refill_warning)
        breakers.reset(actor=self.actor, session=self.session)
        if self.out.is_json:
            told = {"object": "breaker", "session_id": self.session.pk, "changed": is_changed, "failures_before": before.failures}
            self.out.document(told | {"failures": 0})
        elif is_changed:
            self.out.line(f"Automatic compaction starts again where it is due. {before.failures} failures in a row were counted before.")
        else:
            self.out.line("Nothing holds automatic compaction back. Nothing was changed.")
        return Exit.OK if is_changed else Exit.NOTHING_TO_DO
