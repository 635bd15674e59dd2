"""The guard against attempts in vain: what came to nothing for a reason that stands is not tried again until something changed."""

import msgspec

from sessions_app.engine.attempt import foresee
from sessions_app.engine.boundary import IllegalBoundary
from sessions_app.engine.policy import Policy
from sessions_app.engine.terms import Lineage, Outcome, SkipReason, Trigger
from sessions_app.engine.triggers import Verdict
from sessions_app.models import Compaction, Session
from sessions_app.selectors import plans
from sessions_app.selectors.prefixes import prefix_hash_before
from sessions_app.services import evaluations
from sessions_app.services.compactions.request import basis_of, policy_snapshot
from sessions_app.services.compactions.task import task_of

_LASTING = frozenset({Outcome.SKIPPED, Outcome.REJECTED_INFLATED})
"""How an attempt ends that would end so again. What failed on the way may go better next time; the breaker counts that."""

_PASSING = frozenset({SkipReason.UNSAFE_FLUSH_RECEIPT.value, SkipReason.NEVER_IDLE.value})
_UNCHANGED = "Nothing was changed."


def earlier_failure(session: Session, verdict: Verdict) -> str:
    """What to say of the last automatic attempt, where another one now would be the same; empty where it is worth a try.

    The same: it would fold the same entries, byte for byte, towards the same target, or skip for the same reason; and
    checkpoint, pins, exclusions, model and policy are what they were. Costs a query, and a plan only where the last one failed.
    """
    automatic = Compaction.objects.filter(session_id=session.pk, lineage=Lineage.CONSOLE).exclude(trigger=Trigger.MANUAL)
    last = automatic.order_by("-attempt").defer("summary", "mechanical_state", "retention").first()
    if last is None or last.outcome not in _LASTING or last.reason in _PASSING:
        return ""
    attempt = Compaction(session=session, trigger=verdict.trigger, evaluation=evaluations.stored(verdict), policy=policy_snapshot(session))
    if last.evaluation.get("basis") != basis_of(session, attempt.policy) or not _would_be(last, attempt):
        return ""
    why = last.explanation.replace(_UNCHANGED, "").strip()
    return f"{last}: {' '.join(why.split())} It is tried again once the view, what is pinned, the model or the policy is another."


def _would_be(last: Compaction, attempt: Compaction) -> bool:
    """Whether the attempt would plan what the last one did."""
    policy = msgspec.convert(attempt.policy["values"], Policy)
    try:
        foreseen = foresee(task_of(attempt, plans.load_shapes(attempt.session_id), policy))
    except IllegalBoundary:
        return False
    if isinstance(foreseen, SkipReason):
        return last.boundary_index is None and last.reason == foreseen
    if foreseen is None or foreseen != last.boundary_index:
        return False
    return prefix_hash_before(attempt.session_id, foreseen) == bytes(last.prefix_hash)
