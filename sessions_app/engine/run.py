"""One attempt as a generator: it says what it does, asks whether to stop, and returns a checkpoint or why there is none."""

from collections.abc import Callable, Generator, Iterator, Sequence

import msgspec

from sessions_app.engine import block as blocks
from sessions_app.engine import chunks as packing
from sessions_app.engine import plan as planning
from sessions_app.engine import summary as summaries
from sessions_app.engine.boundary import IllegalBoundary
from sessions_app.engine.chunks import Chunk
from sessions_app.engine.counting import ENTRY_OVERHEAD, estimate_text
from sessions_app.engine.entries import Checkpoint, Entry
from sessions_app.engine.explanations import EXPLANATIONS
from sessions_app.engine.mechanical import Collector
from sessions_app.engine.plan import Plan
from sessions_app.engine.policy import Policy
from sessions_app.engine.redaction import redact, redact_entries
from sessions_app.engine.shapes import EntryShape
from sessions_app.engine.steps import (
    ChunkSummarised,
    Commit,
    Ended,
    PhaseStarted,
    Planned,
    Result,
    ShouldStop,
    Step,
    Stop,
    Stopped,
    Summariser,
    SummaryAnswer,
    SummaryRequest,
    Verified,
)
from sessions_app.engine.summary import Rejection
from sessions_app.engine.terms import Outcome, Phase, SkipReason, Status, SummarySource

Load = Callable[[int, int], Iterator[Entry]]
"""Entries from the first index to the last, inclusive, in order."""

LOAD_AT_ONCE = 500  # entries, so that a store's cursor is never open while a summariser works
ATTEMPTS_PER_CHUNK = 2
_UNCHANGED = "Nothing was changed."


def run(
    *,
    shapes: Sequence[EntryShape],
    load: Load,
    chain: Sequence[Checkpoint],
    previous_summary: str,
    policy: Policy,
    window: int,
    signal_tokens: int,
    summariser: Summariser,
    instructions: str,
    force: bool,
    manual: bool,
    boundary: int | None = None,
    should_stop: ShouldStop,
) -> Generator[Step, None, Result]:
    """One attempt on the history of which `shapes` is the whole. Changes nothing: the caller commits what it returns.

    `chain` are the checkpoints in force, oldest first; the last one's view is compacted further. Costs one pass over
    the entries before the boundary. Never raises but for `Stopped` when the lease was lost: whoever runs this then no
    longer owns the attempt.
    """
    attempt = _Attempt(load, previous_summary, policy, summariser, instructions, should_stop, force=force)
    try:
        yield PhaseStarted(phase=Phase.PLAN)
        attempt.check()
        try:
            plan = planning.make(
                shapes,
                previous=chain[-1] if chain else None,
                policy=policy,
                window=window,
                summariser_window=summariser.window,
                signal_tokens=signal_tokens,
                manual=manual,
                force=force,
                wanted=boundary,
            )
        except IllegalBoundary as refusal:
            return _skipped(SkipReason.NO_LEGAL_BOUNDARY, f"{refusal} {_UNCHANGED}")
        if isinstance(plan, SkipReason):
            return _skipped(plan)
        yield _planned(plan)
        result = yield from attempt.carry_out(plan)
        return _refuse_useless(result, policy, window, signal_tokens, force=force, manual=manual) or result
    except Stopped as stopped:
        if stopped.stop is Stop.LEASE_LOST:
            raise
        return _stopped(stopped.stop)


class _SummariserFailedError(Exception):
    """A summariser raised, or answered twice with something unusable."""

    def __init__(self, outcome: Outcome, reason: str, words: str) -> None:
        self.outcome, self.reason = outcome, reason
        super().__init__(words)


class _Attempt:
    def __init__(
        self,
        load: Load,
        previous_summary: str,
        policy: Policy,
        summariser: Summariser,
        instructions: str,
        should_stop: ShouldStop,
        *,
        force: bool,
    ) -> None:
        self._load = load
        self._policy = policy
        self._summariser = summariser
        self._instructions = instructions
        self._should_stop = should_stop
        self._force = force
        self._collector = Collector()
        self._previous_summary, self._redactions = redact(previous_summary)
        self._sources: set[SummarySource] = set()
        self._last_source = SummarySource.SKIPPED
        self._replaced_tokens = 0

    def check(self) -> None:
        """Raises `Stopped` when the attempt must end."""
        if (stop := self._should_stop()) is not None:
            raise Stopped(stop)

    def carry_out(self, plan: Plan) -> Generator[Step, None, Commit | Ended]:
        yield PhaseStarted(phase=Phase.SUMMARISE)
        self._replaced_tokens = 0 if self._force else plan.span_tokens
        try:
            text = yield from self._summarise(plan)
        except _SummariserFailedError as failure:
            return Ended(status=Status.FAILED, outcome=failure.outcome, reason=failure.reason, explanation=f"{failure} {_UNCHANGED}")
        yield PhaseStarted(phase=Phase.VERIFY)
        self.check()
        text, found = redact(text)
        self._redactions += found
        state = self._collector.state()
        block = blocks.render(
            summary=text,
            state=state,
            entries_folded=state.entries - len(plan.carried) - plan.system_entries,
            budget_tokens=plan.block_tokens,
            carried=plan.carried,
        )
        tokens_after = plan.kept_tokens + block.tokens + ENTRY_OVERHEAD
        warnings = (*summaries.warnings(text), *_redaction_warning(self._redactions))
        yield Verified(tokens_after=tokens_after, warnings=warnings)
        self.check()
        return Commit(
            outcome=Outcome.COMMITTED,
            boundary_index=plan.boundary_index,
            boundary_source_id=plan.boundary_source_id,
            segments=plan.segments(block.text),
            block=block.text,
            block_tokens=block.tokens,
            summary=text,
            summary_source=SummarySource.MIXED if len(self._sources) > 1 else next(iter(self._sources)),
            summariser=self._summariser.name,
            mechanical_state=msgspec.to_builtins(state),
            entries_folded=len(plan.span),
            entries_kept=plan.kept,
            tokens_before=plan.tokens_before,
            tokens_after=tokens_after,
            warnings=warnings,
        )

    def _summarise(self, plan: Plan) -> Generator[Step, None, str]:
        """The accepted summary of the span: chunk by chunk, then folded; mechanical state is collected on the way."""
        partials: list[str] = []
        position = 0
        for number, chunk in enumerate(plan.chunks, start=1):
            is_last = number == len(plan.chunks)
            entries = self._take(plan, chunk, position, plan.boundary_index - 1 if is_last else chunk.last)
            position = chunk.last + 1
            partials.append(self._ask(self._request(plan, number, entries=entries)))
            yield ChunkSummarised(chunk_index=number, chunk_count=len(plan.chunks), source=self._last_source)
        return self._fold(plan, partials)

    def _take(self, plan: Plan, chunk: Chunk, first: int, last: int) -> tuple[Entry, ...]:
        """The chunk's entries, out of all from `first` to `last`, each of which the mechanical state sees."""
        taken: list[Entry] = []
        for start in range(first, last + 1, LOAD_AT_ONCE):
            self.check()
            page, found = redact_entries(list(self._load(start, min(start + LOAD_AT_ONCE - 1, last))))
            self._redactions += found
            for entry in page:
                self._collector.add(entry)
                if entry.index in plan.span and chunk.first <= entry.index <= chunk.last:
                    taken.append(entry)
        return tuple(taken)

    def _fold(self, plan: Plan, partials: list[str]) -> str:
        while len(partials) > 1:
            groups = packing.fold_groups([estimate_text(text) for text in partials], self._summariser.window)
            is_final = len(groups) == 1
            partials = [
                self._ask(self._request(plan, len(plan.chunks), partials=partials[start:end], is_final=is_final)) for start, end in groups
            ]
        return partials[0]

    def _request(
        self, plan: Plan, number: int, *, entries: tuple[Entry, ...] = (), partials: Sequence[str] = (), is_final: bool | None = None
    ) -> SummaryRequest:
        """A request. The last one of an attempt alone is told what went before and what code knows of the whole."""
        final = len(plan.chunks) == 1 if is_final is None else is_final
        return SummaryRequest(
            entries=entries,
            partial_summaries=tuple(partials),
            previous_summary=self._previous_summary if final else "",
            state=self._collector.state() if final else None,
            instructions=self._instructions,
            profile=self._policy.profile,
            max_tokens=plan.summary_tokens,
            chunk_index=number,
            chunk_count=len(plan.chunks),
        )

    def _ask(self, request: SummaryRequest) -> str:
        """An answer that passed validation. A second attempt asks for less. Raises `_SummariserFailedError`, `Stopped`."""
        rejection = Rejection.EMPTY
        for attempt in range(ATTEMPTS_PER_CHUNK):
            self.check()
            asked = msgspec.structs.replace(request, max_tokens=request.max_tokens * (10 - 3 * attempt) // 10)
            answer = self._answer(asked)
            self.check()
            found = summaries.validate(
                answer.text,
                truncated=answer.truncated,
                tokens=estimate_text(answer.text),
                replaced_tokens=self._replaced_tokens if request.state else 0,
                inputs=(entry.text for entry in request.entries),
            )
            if found is None:
                self._sources.add(answer.source)
                self._last_source = answer.source
                return answer.text
            rejection = found
        raise _SummariserFailedError(rejection.outcome, rejection.value, f"Both attempts to summarise were refused: {rejection.words}.")

    def _answer(self, request: SummaryRequest) -> SummaryAnswer:
        try:
            return self._summariser.summarise(request, self._should_stop)
        except Stopped:
            raise
        except Exception as error:  # whatever a model client raises ends the attempt, not the worker
            # The type alone: a client's message may quote the request, and with it the transcript.
            words = f"The summariser “{self._summariser.name}” failed with {type(error).__name__}."
            raise _SummariserFailedError(Outcome.FAILED, "summariser_failed", words) from error


def _planned(plan: Plan) -> Planned:
    return Planned(
        boundary_index=plan.boundary_index,
        boundary_source_id=plan.boundary_source_id,
        entries_folded=len(plan.span),
        entries_kept=plan.kept,
        tokens_before=plan.tokens_before,
        chunk_count=len(plan.chunks),
    )


def _refuse_useless(result: Result, policy: Policy, window: int, signal_tokens: int, *, force: bool, manual: bool) -> Ended | None:
    """Why the result may not be committed, or None. A view that is full beyond its estimate is worth any fold."""
    if force or isinstance(result, Ended):
        return None
    if result.tokens_after >= result.tokens_before:
        numbers = f"The view would go from {result.tokens_before:,} to {result.tokens_after:,} tokens. {_UNCHANGED}"
        if manual:
            return _skipped(SkipReason.WOULD_NOT_SHRINK, f"Folding would not make the view smaller. {numbers}")
        if signal_tokens < max(policy.trigger_tokens(window), result.tokens_before + 1):
            return Ended(status=Status.FAILED, outcome=Outcome.REJECTED_INFLATED, reason=Rejection.INFLATED.value, explanation=numbers)
    if not manual and result.tokens_after > policy.target_tokens(window):
        return _skipped(SkipReason.NON_HISTORY_ENVELOPE_EXHAUSTS_BUDGET)
    return None


def _skipped(reason: SkipReason, explanation: str = "") -> Ended:
    return Ended(
        status=Status.SKIPPED, outcome=Outcome.SKIPPED, reason=reason, explanation=explanation or f"{EXPLANATIONS[reason]} {_UNCHANGED}"
    )


def _stopped(stop: Stop) -> Ended:
    if stop is Stop.CANCELLED:
        words = f"The compaction was cancelled before it committed. {_UNCHANGED}"
        return Ended(status=Status.CANCELLED, outcome=Outcome.CANCELLED, reason=stop.value, explanation=words)
    words = f"The compaction ran out of time before it committed. {_UNCHANGED} It may be asked for again."
    return Ended(status=Status.TIMED_OUT, outcome=Outcome.TIMED_OUT, reason=stop.value, explanation=words)


def _redaction_warning(count: int) -> tuple[str, ...]:
    if not count:
        return ()
    return (f"{count} credential{'s were' if count > 1 else ' was'} removed from what the summary was made of.",)
