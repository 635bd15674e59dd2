"""`manage.py route SESSION`: what a router of models tells of a turn, and what follows for the session's context."""

import uuid
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser

from sessions_app.engine.triggers import Route, TierResult
from sessions_app.management.arguments import count
from sessions_app.management.base import SessionCommand
from sessions_app.management.exits import Exit
from sessions_app.permissions import Action
from sessions_app.services.compactions import automatic
from sessions_app.services.compactions.automatic import Decision

ENDS = {TierResult.HANDLED: Exit.OK, TierResult.NOT_APPLICABLE: Exit.NOTHING_TO_DO, TierResult.COMPACT_FAILED: Exit.FAILED}


class Command(SessionCommand):
    help = (
        "Takes a router's report that it moves a turn to another tier of models, c0 to c3 (t0 to t3 mean the same), and compacts before a "
        "move up to the highest, where the history would not fit with its margin. Prints handled, not_applicable or compact_failed."
    )
    action = Action.COMPACT
    examples = (
        ("route 44c5e046 --tier c3 --from c1", "before the turn is sent to the highest tier"),
        ("route 44c5e046 --tier c3 --base c1 --final c3 --json", "where the router does not know the tier before"),
        ("route 44c5e046 --tier c3 --from c2 --history-tokens 48000", "the request leaves so much for history"),
    )

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("--tier", required=True, metavar="TIER", help="the tier that the turn is sent to")
        parser.add_argument("--from", dest="previous", default="", metavar="TIER", help="the tier of the turn before")
        parser.add_argument("--base", default="", metavar="TIER", help="the tier that the router began with")
        parser.add_argument("--final", default="", metavar="TIER", help="the tier that it ended with")
        parser.add_argument("--observed", action="store_true", help="the router only watches, and nothing is routed")
        parser.add_argument("--history-tokens", type=count, metavar="N", help="what the request leaves for history; by default the window")
        parser.add_argument("--active-entry", type=count, metavar="N", help="the message that the turn answers; by default a person's last")
        parser.add_argument("--turn", type=uuid.UUID, metavar="ID", help="of several reports of one turn, one compacts")

    def run(self, options: Mapping[str, Any]) -> Exit:
        report = Route(
            routed_tier=options["tier"],
            previous_tier=options["previous"],
            base_tier=options["base"],
            final_tier=options["final"],
            routing_applied=not options["observed"],
        )
        decision = automatic.route(
            session=self.session,
            actor=self.actor,
            turn_id=options["turn"],
            report=report,
            history_tokens=options["history_tokens"],
            active_index=options["active_entry"],
        )
        assert decision.result is not None
        self._show(decision, decision.result)
        return ENDS[decision.result]

    def _show(self, decision: Decision, result: TierResult) -> None:
        attempt = decision.compaction
        if self.out.is_json:
            self.out.document(
                {
                    "object": "route",
                    "session_id": self.session.pk,
                    "result": result,
                    "reason": decision.verdict.reason,
                    "explanation": decision.verdict.explanation,
                    "compaction_id": attempt.pk if attempt else None,
                    "status": attempt.status if attempt else None,
                }
            )
            return
        self.out.line(result)
        self.out.note(decision.verdict.explanation)
        if attempt is not None:
            self.out.note(f"a{attempt.attempt} {attempt.outcome or attempt.status}. {attempt.explanation}".rstrip())
