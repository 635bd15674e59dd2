"""One attempt as a generator: it climbs the ladder, says what it does, asks whether to stop, and returns a checkpoint or why not."""

from collections.abc import Generator, Sequence

import msgspec

from sessions_app.engine import block as blocks
from sessions_app.engine import clearing, overrides, settled, telling, unreadable, verification
from sessions_app.engine import plan as planning
from sessions_app.engine import summary as summaries
from sessions_app.engine.asking import Crew, NoSummaryError
from sessions_app.engine.boundary import IllegalBoundary
from sessions_app.engine.calibration import NONE, Calibration
from sessions_app.engine.counting import ENTRY_OVERHEAD
from sessions_app.engine.entries import Checkpoint, Segment
from sessions_app.engine.explanations import EXPLANATIONS
from sessions_app.engine.plan import Plan
from sessions_app.engine.policy import Policy
from sessions_app.engine.shapes import EntryShape, in_view
from sessions_app.engine.steps import (
    Commit,
    Ended,
    PhaseStarted,
    Result,
    RungReport,
    ShouldStop,
    Step,
    Stop,
    Stopped,
    Summariser,
    Verified,
)
from sessions_app.engine.summarising import Load, Reading, Summarising
from sessions_app.engine.summary import Rejection
from sessions_app.engine.terms import CoverageStatus, Outcome, Phase, Rung, SegmentKind, SkipReason, Status, SummarySource, Trigger


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What one attempt is about: a history, the checkpoints in force, and how it is to be compacted.

    `shapes` is the whole history; `chain` are the checkpoints in force, oldest first: the view of the last one is
    compacted further. `signal_tokens` is what the view is believed to occupy. What the last checkpoint says is excluded
    counts as off the branch: an attempt neither counts nor reads it.
    """

    shapes: Sequence[EntryShape]
    load: Load
    chain: Sequence[Checkpoint]
    policy: Policy
    window: int
    signal_tokens: int
    summarisers: Sequence[Summariser]  # in the order in which they are tried; at least one
    previous_summary: str = ""
    trigger: Trigger = Trigger.MANUAL
    instructions: str = ""
    goal: str = ""  # that somebody set for the session; without one code finds it in the messages
    force: bool = False
    boundary: int | None = None
    crew: Crew | None = None  # makes calls of models side by side; without one they come one after the other
    calibration: Calibration = NONE  # between estimates, which plans and views are counted in, and the tokens that a policy speaks of

    def __post_init__(self) -> None:
        excluded = self.previous.excluded if self.previous else frozenset()
        msgspec.structs.force_setattr(self, "shapes", overrides.without(self.shapes, excluded))
        msgspec.structs.force_setattr(self, "load", overrides.reading(self.load, excluded))

    @property
    def previous(self) -> Checkpoint | None:
        return self.chain[-1] if self.chain else None

    @property
    def is_manual(self) -> bool:
        return self.trigger is Trigger.MANUAL

    @property
    def target_tokens(self) -> int:
        return self.policy.target_tokens(self.window)

    def exceeds_target(self, view_tokens: int) -> bool:
        """Whether a request with a view of this estimate would measure more than a compaction may leave."""
        return self.calibration.request(view_tokens) > self.target_tokens

    @property
    def would_overflow(self) -> bool:
        """Whether the view can't stay as it is: then a trim is better than nothing. A switch of the model may as well be refused."""
        if self.trigger is Trigger.MODEL_SWITCH:
            return False
        return self.trigger is Trigger.OVERFLOW or self.signal_tokens >= self.policy.trigger_tokens(self.window)


def run(task: Task, *, should_stop: ShouldStop) -> Generator[Step, None, Result]:
    """One attempt. Changes nothing: the caller commits what it returns.

    The rungs, cheapest first: an automatic attempt clears old results; whoever asks, the span is summarised, but for an
    overflow, which no model may have to resolve; what no summary can do is done by a trim. Costs one pass over the
    entries before the boundary. Never raises but for `Stopped` when the lease was lost: whoever runs this then no
    longer owns the attempt.
    """
    attempt = _Attempt(task, Reading(task.load, len(task.shapes), should_stop))
    try:
        yield PhaseStarted(phase=Phase.PLAN)
        attempt.reading.check()
        try:
            plan = attempt.plan()
        except IllegalBoundary as refusal:
            return telling.skipped(SkipReason.NO_LEGAL_BOUNDARY, f"{refusal} {telling.UNCHANGED}")
        if not task.is_manual and (cleared := attempt.clear(plan)) is not None:
            yield telling.planned_by(cleared, chunk_count=0)
            return (yield from attempt.verify(cleared))
        if isinstance(plan, SkipReason):
            return attempt.ended(attempt.skipped(plan))
        yield telling.planned(plan)
        return (yield from attempt.carry_out(plan))
    except Stopped as stopped:
        if stopped.stop is Stop.LEASE_LOST:
            raise
        return attempt.ended(telling.stopped(stopped.stop))


def foresee(task: Task) -> SkipReason | int | None:
    """What an automatic attempt comes to before it reads anything: its skip, or the boundary of what it would fold.

    None where clearing old results alone would do. Costs one pass over the shapes.
    """
    attempt = _Attempt(task, Reading(task.load, len(task.shapes), lambda: None))
    plan = attempt.plan()
    if attempt.clear(plan) is not None:
        return None
    return plan if isinstance(plan, SkipReason) else plan.boundary_index


def trim(task: Task, *, should_stop: ShouldStop) -> Commit | Ended:
    """What is left of a view without any summary: for a request that can't wait, whether or not it is stored."""
    attempt = _Attempt(task, Reading(task.load, len(task.shapes), should_stop))
    try:
        plan = attempt.plan()
        return attempt.ended(attempt.skipped(plan)) if isinstance(plan, SkipReason) else attempt.trim(plan)
    except Stopped as stopped:
        if stopped.stop is Stop.LEASE_LOST:
            raise
        return telling.stopped(stopped.stop)


class _Attempt:
    def __init__(self, task: Task, reading: Reading) -> None:
        self.reading = reading
        self._task = task
        self._rungs: list[RungReport] = []
        reading.goal = reading.redact(task.goal)
        self._shapes = clearing.as_cleared(task.shapes, task.previous)
        self._previous_summary = reading.redact(task.previous_summary)
        self._unread = [] if self._previous_summary.strip() else unreadable.covered(task.shapes, task.previous)
        self._summarising = Summarising(
            reading,
            task.summarisers,
            task.policy,
            grounded=lambda text: verification.grounded(text, reading, self._previous_summary),
            previous_summary=self._previous_summary,
            instructions=task.instructions,
            force=task.force,
            crew=task.crew,
        )

    def plan(self, *, force: bool = False) -> Plan | SkipReason:
        """Where to cut. Raises `IllegalBoundary`."""
        task = self._task
        return planning.make(
            self._shapes,
            previous=task.previous,
            policy=task.policy,
            window=task.window,
            summariser_window=task.summarisers[0].window,
            signal_tokens=task.signal_tokens,
            manual=task.is_manual,
            force=force or task.force,
            wanted=task.boundary,
            calibration=task.calibration,
        )

    def ended(self, ended: Ended) -> Ended:
        """How the attempt ends, with what it tried."""
        return msgspec.structs.replace(ended, rungs=tuple(self._rungs), tried=tuple(self._summarising.tried))

    def skipped(self, reason: SkipReason) -> Ended:
        """The skip; where what has to stay is too much, with the size of each part, so that a person sees what to do about it."""
        if reason is not SkipReason.NON_HISTORY_ENVELOPE_EXHAUSTS_BUDGET:
            return telling.skipped(reason)
        task = self._task
        sizes = {name: task.calibration.tokens(size) for name, size in planning.sizes(self._shapes, task.previous).items()}
        sizes["what no entry holds (tools and the like)"] = task.signal_tokens - sum(sizes.values())
        told = [f"{name} {tokens:,}" for name, tokens in sizes.items() if tokens > 0]
        target = f"The target is {task.target_tokens:,} tokens; in the view are: {', '.join(told)}."
        return telling.skipped(reason, f"{EXPLANATIONS[reason]} {target} {telling.UNCHANGED}")

    # The rungs.

    def clear(self, plan: Plan | SkipReason) -> Commit | None:
        """A view whose old results are cleared, if that alone brings it down to the target."""
        task, previous = self._task, self._task.previous
        if not task.policy.clear_results:
            return None
        before = len(self._shapes) if isinstance(plan, SkipReason) else plan.boundary_index
        if isinstance(plan, SkipReason) and plan is not SkipReason.NON_HISTORY_ENVELOPE_EXHAUSTS_BUDGET:
            return None
        if isinstance(plan, SkipReason):
            before = planning.tail_start(self._shapes, task.policy, task.window, task.calibration)
        found = clearing.clearable(self._shapes, previous, before)
        if not found.indexes:
            return None
        tokens_before = planning.view_tokens(self._shapes, previous)
        tokens_after = tokens_before - found.saved_tokens
        # A measured signal counts what no entry holds: tools and the system prompt stay on top of the estimate.
        expected = task.calibration.after(task.signal_tokens, tokens_before, tokens_after)
        enough = expected <= task.target_tokens
        note = "" if enough else f"Not enough: about {expected:,} tokens would stay, and the target is {task.target_tokens:,}."
        self._report(Rung.CLEAR, tokens_before, tokens_after, len(found.indexes), note)
        if not enough:
            return None
        return Commit(
            outcome=Outcome.COMMITTED,
            boundary_index=previous.boundary_index if previous else 0,
            boundary_source_id=self._shapes[previous.boundary_index if previous else 0].source_id,
            segments=overrides.unfolded(previous) if previous else (Segment(kind=SegmentKind.RANGE, first=0),),
            block="",
            block_tokens=planning.added_tokens(previous),
            summary=task.previous_summary,
            summary_source=SummarySource.SKIPPED,
            summariser="",
            mechanical_state={},
            entries_folded=0,
            entries_kept=len(in_view(self._shapes, previous)),
            tokens_before=tokens_before,
            tokens_after=tokens_after,
            cleared=tuple(sorted(found.indexes | (previous.cleared if previous else frozenset()))),
            rungs=tuple(self._rungs),
        )

    def carry_out(self, plan: Plan) -> Generator[Step, None, Result]:
        """Summarises what the plan folds, or trims it where no summary comes about or makes room."""
        task = self._task
        self._tell_unread()
        result: Result
        if task.trigger is Trigger.OVERFLOW:
            result = self.trim(plan)
        else:
            yield PhaseStarted(phase=Phase.SUMMARISE)
            try:
                text = yield from self._summarising.summarise(plan)
            except NoSummaryError as failure:
                self._report(Rung.SUMMARISE, plan.tokens_before, plan.tokens_before, 0, str(failure))
                result = Ended(
                    status=Status.FAILED,
                    outcome=failure.outcome,
                    reason=failure.reason,
                    explanation=f"{failure} {telling.UNCHANGED}",
                    coverage_status=CoverageStatus.FAIL_BLOCKED if failure.reason == Rejection.UNSUPPORTED else CoverageStatus.UNKNOWN,
                )
            else:
                result = self._useful(self._summarised(plan, text))
            if isinstance(result, Ended) and task.would_overflow and task.policy.allow_fallback:
                trimmed = self.trim(plan)
                result = trimmed if isinstance(trimmed, Commit) else result
        if isinstance(result, Ended):
            return self.ended(result)
        if result.boundary_index != plan.boundary_index:  # whoever stores it must know the prefix that it stands on
            yield telling.planned_by(result, chunk_count=len(plan.chunks))
        return (yield from self.verify(result))

    def _tell_unread(self) -> None:
        """Tells anew what the checkpoint before stands for, where its own summary can't be read: it must not be lost with it."""
        if self._unread and not self._previous_summary and self._task.previous is not None:
            budget = self._task.policy.summary_max_tokens
            told = unreadable.told_anew(self.reading, self._unread, self._task.previous.boundary_index, budget)
            self._previous_summary = self._summarising.previous_summary = told

    def trim(self, plan: Plan) -> Commit | Ended:
        """The plan without a summary; where that leaves too much, everything but the last round."""
        self._tell_unread()
        trimmed = self._trimmed(plan)
        if self._task.exceeds_target(trimmed.tokens_after) and self._task.boundary is None:
            further = self.plan(force=True)
            if isinstance(further, Plan) and further.boundary_index > plan.boundary_index:
                trimmed = self._trimmed(further)
        if trimmed.tokens_after >= trimmed.tokens_before:
            return self.ended(telling.skipped(SkipReason.WOULD_NOT_SHRINK))
        return trimmed

    def verify(self, result: Commit) -> Generator[Step, None, Commit]:
        """The last step before a commit: what the new view kept of the facts, and whether the summary says more than they."""
        yield PhaseStarted(phase=Phase.VERIFY)
        self.reading.check()
        if result.block:
            result = verification.of(result, self._task.shapes, self._task.previous, self.reading, self._previous_summary)
        yield Verified(
            tokens_after=result.tokens_after,
            source=result.summary_source,
            warnings=result.warnings,
            coverage_status=result.coverage_status,
        )
        self.reading.check()
        return result

    # What they come to.

    def _summarised(self, plan: Plan, text: str) -> Commit:
        self.reading.check()
        found = settled.settle(self.reading.redact(text), self.reading.state(plan))
        made = self._commit(plan, found.text, Outcome.COMMITTED, self._summarising.source)
        self._report(Rung.SUMMARISE, plan.tokens_before, made.tokens_after, len(plan.span))
        surplus = sum(chunk.is_surplus for chunk in plan.chunks) if any(one.is_model for one in self._task.summarisers) else 0
        warnings = (*summaries.warnings(made.summary), *telling.done_warning(found.done))
        return self._final(made, warnings=(*warnings, *telling.surplus_warning(surplus, len(plan.chunks))))

    def _trimmed(self, plan: Plan) -> Commit:
        text = summaries.of_trim(self._previous_summary, len(plan.span), plan.boundary_index)
        made = self._commit(plan, text, Outcome.TRIMMED, SummarySource.TRIM)
        self._report(Rung.TRIM, plan.tokens_before, made.tokens_after, len(plan.span))
        return self._final(made)

    def _commit(self, plan: Plan, text: str, outcome: Outcome, source: SummarySource) -> Commit:
        state = self.reading.state(plan)
        block = blocks.render(
            summary=text,
            state=state,
            entries_folded=state.entries - len({*plan.carried, *plan.pinned}) - plan.system_entries,
            budget_tokens=plan.block_tokens,
            carried=plan.carried,
            pinned=plan.pinned,
        )
        previous = self._task.previous
        return Commit(
            outcome=outcome,
            boundary_index=plan.boundary_index,
            boundary_source_id=plan.boundary_source_id,
            segments=plan.segments(block.text),
            block=block.text,
            block_tokens=block.tokens,
            summary=text,
            summary_source=source,
            summariser=", ".join(self._summarising.names) if outcome is Outcome.COMMITTED else "",
            mechanical_state=msgspec.to_builtins(state),
            entries_folded=len(plan.span),
            entries_kept=plan.kept,
            tokens_before=plan.tokens_before,
            tokens_after=plan.kept_tokens + block.tokens + ENTRY_OVERHEAD,
            # What was cleared stays cleared while it stands in the view.
            cleared=tuple(sorted(index for index in (previous.cleared if previous else ()) if index >= plan.boundary_index)),
        )

    def _final(self, made: Commit, warnings: tuple[str, ...] = ()) -> Commit:
        unread = (unreadable.warning(len(self._unread)),) if self._unread else ()
        warnings = (*warnings, *unread, *telling.redaction_warning(self.reading.redactions))
        return msgspec.structs.replace(made, warnings=warnings, rungs=tuple(self._rungs), tried=tuple(self._summarising.tried))

    def _report(self, rung: Rung, before: int, after: int, entries: int, note: str = "") -> None:
        self._rungs.append(RungReport(rung=rung, tokens_before=before, tokens_after=after, entries=entries, note=note))

    def _useful(self, result: Commit) -> Result:
        """The result, or why it may not be committed. A view that is full beyond its estimate is worth any fold."""
        task = self._task
        if task.force:
            return result
        if result.tokens_after >= result.tokens_before:
            numbers = f"The view would go from {result.tokens_before:,} to {result.tokens_after:,} tokens. {telling.UNCHANGED}"
            if task.is_manual:
                return telling.skipped(SkipReason.WOULD_NOT_SHRINK, f"Folding would not make the view smaller. {numbers}")
            if task.signal_tokens < max(task.policy.trigger_tokens(task.window), result.tokens_before + 1):
                return Ended(status=Status.FAILED, outcome=Outcome.REJECTED_INFLATED, reason=Rejection.INFLATED.value, explanation=numbers)
        if not task.is_manual and task.exceeds_target(result.tokens_after):
            return self.skipped(SkipReason.NON_HISTORY_ENVELOPE_EXHAUSTS_BUDGET)
        return result
