"""What an attempt says of itself at its steps and its end, in words for people."""

from collections.abc import Sequence

from sessions_app.engine.explanations import EXPLANATIONS
from sessions_app.engine.plan import Plan
from sessions_app.engine.state import Mention
from sessions_app.engine.steps import Commit, Ended, Planned, Stop
from sessions_app.engine.terms import Outcome, SkipReason, Status

UNCHANGED = "Nothing was changed."


def planned(plan: Plan) -> Planned:
    """The plan that is going to be carried out."""
    return Planned(
        boundary_index=plan.boundary_index,
        boundary_source_id=plan.boundary_source_id,
        entries_folded=len(plan.span),
        entries_kept=plan.kept,
        tokens_before=plan.tokens_before,
        chunk_count=len(plan.chunks),
    )


def planned_by(made: Commit, *, chunk_count: int) -> Planned:
    """What a rung came to that made no plan of its own, or went further than its plan."""
    return Planned(
        boundary_index=made.boundary_index,
        boundary_source_id=made.boundary_source_id,
        entries_folded=made.entries_folded,
        entries_kept=made.entries_kept,
        tokens_before=made.tokens_before,
        chunk_count=chunk_count,
    )


def skipped(reason: SkipReason, explanation: str = "") -> Ended:
    """An end for which there was nothing to do."""
    return Ended(
        status=Status.SKIPPED, outcome=Outcome.SKIPPED, reason=reason, explanation=explanation or f"{EXPLANATIONS[reason]} {UNCHANGED}"
    )


def stopped(stop: Stop) -> Ended:
    """An end before its time."""
    if stop is Stop.CANCELLED:
        words = f"The compaction was cancelled before it committed. {UNCHANGED}"
        return Ended(status=Status.CANCELLED, outcome=Outcome.CANCELLED, reason=stop.value, explanation=words)
    words = f"The compaction ran out of time before it committed. {UNCHANGED} It may be asked for again."
    return Ended(status=Status.TIMED_OUT, outcome=Outcome.TIMED_OUT, reason=stop.value, explanation=words)


def done_warning(done: Sequence[Mention]) -> tuple[str, ...]:
    """Of steps that were taken out of what a summary calls for; none where there were none."""
    if not done:
        return ()
    told = "; ".join(f"“{mention.text}” (#{mention.index})" for mention in done)
    return (f"The summary called for what is recorded as done, which was taken out of its open and next steps: {told}.",)


def surplus_warning(surplus: int, count: int) -> tuple[str, ...]:
    """Of the oldest parts of a span for which no call of a model was left; none where there were none."""
    if not surplus:
        return ()
    was = "part was" if surplus == 1 else f"{surplus:,} parts were"
    return (f"The oldest {was} summarised without a model, of {count:,} in all: the policy allows no more calls (max_summary_calls).",)


def redaction_warning(count: int) -> tuple[str, ...]:
    """Of credentials that were taken out; none where there were none."""
    if not count:
        return ()
    return (f"{count} credential{'s were' if count > 1 else ' was'} removed from what the summary was made of.",)
