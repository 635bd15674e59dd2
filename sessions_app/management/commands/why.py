"""`manage.py why SESSION`: why automatic compaction last did or did not fire."""

from collections.abc import Mapping
from typing import Any

from sessions_app.management.base import SessionCommand
from sessions_app.management.exits import Exit
from sessions_app.management.shapes import Shape, iso
from sessions_app.permissions import Action
from sessions_app.selectors.verdicts import Evaluation, Resting, awaited, evaluation_of, resting_of


class Command(SessionCommand):
    help = "Says why automatic compaction last did or did not fire in a session, and whether it rests after failures."
    action = Action.READ
    examples = (("why 44c5e046", "the last evaluation"), ("why 44c5e046 --json", "the same with its numbers apart"))

    def run(self, options: Mapping[str, Any]) -> Exit:
        evaluation, resting = evaluation_of(self.session), resting_of(self.session)
        if self.out.is_json:
            self.out.document(_shape(self.session.pk, evaluation, resting))
            return Exit.OK
        self.out.line(evaluation.explanation if evaluation else awaited(self.session))
        if evaluation:
            self.out.line(
                f"Evaluated {evaluation.at:%Y-%m-%d %H:%M:%S} UTC, trigger {evaluation.trigger}, window {evaluation.window:,} tokens."
            )
        for sentence in filter(None, (resting.words, resting.refill_warning)):
            self.out.line(sentence)
        return Exit.OK


def _shape(session_id: object, evaluation: Evaluation | None, resting: Resting) -> Shape:
    told: Shape | None = None
    if evaluation:
        told = {
            "fires": evaluation.fires,
            "trigger": evaluation.trigger,
            "reason": evaluation.reason,
            "explanation": evaluation.explanation,
            "signal": {"tokens": evaluation.tokens, "origin": evaluation.origin},
            "limit": evaluation.limit,
            "window": evaluation.window,
            "at": iso(evaluation.at),
        }
    breaker = {"failures": resting.failures, "failed_at": iso(resting.failed_at), "rests_until": iso(resting.until)}
    return {
        "object": "evaluation",
        "session_id": session_id,
        "evaluation": told,
        "breaker": breaker,
        "refill_warning": resting.refill_warning or None,
    }
