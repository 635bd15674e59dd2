"""The middle of an attempt: reading the span chunk by chunk, asking summarisers in turn, folding what they say."""

from collections.abc import Callable, Collection, Generator, Iterator, Sequence

import msgspec

from sessions_app.engine import chunks as packing
from sessions_app.engine import prompts
from sessions_app.engine import summary as summaries
from sessions_app.engine.chunks import Chunk
from sessions_app.engine.counting import estimate_text
from sessions_app.engine.entries import Entry
from sessions_app.engine.extractive import ExtractiveSummariser
from sessions_app.engine.facts import Facts
from sessions_app.engine.grounding import Checked
from sessions_app.engine.mechanical import Collector
from sessions_app.engine.plan import Plan
from sessions_app.engine.policy import Policy
from sessions_app.engine.redaction import redact, redact_entries
from sessions_app.engine.state import MechanicalState
from sessions_app.engine.steps import (
    ChunkSummarised,
    ShouldStop,
    Step,
    Stopped,
    Summariser,
    SummariserFailed,
    SummariserTry,
    SummaryAnswer,
    SummaryRequest,
)
from sessions_app.engine.summary import Rejection
from sessions_app.engine.terms import Outcome, SummarySource
from sessions_app.engine.texts import storable

Load = Callable[[int, int], Iterator[Entry]]
"""Entries from the first index to the last, inclusive, in order."""

LOAD_AT_ONCE = 500  # entries, so that a store's cursor is never open while a summariser works
MAX_HELD_CHARS = 32_000_000
"""Of entries that were read, kept at hand for the check of the summary; what lies beyond is loaded again."""

ATTEMPTS_EACH = 2
LEAST_ANSWER_TOKENS = 400
"""A summariser whose window leaves less than this for its answer is passed over."""

ANSWER_SHARE = 4
"""One part in so many of a summariser's window is its answer's, however much there is to read."""

SMALLEST_SHARE = 0.7
"""Of the length first asked for, on the second attempt: what was cut off once would be cut off again."""


class NoSummaryError(Exception):
    """Every summariser of the policy failed, or answered twice with something unusable."""

    def __init__(self, outcome: Outcome, reason: str, words: str, *, is_final: bool = False, is_of_request: bool = False) -> None:
        self.outcome, self.reason, self.is_final, self.is_of_request = outcome, reason, is_final, is_of_request
        super().__init__(words)


class Reading:
    """Reads a history from its start, once, and keeps what code can know of it. Credentials go no further than here."""

    def __init__(self, load: Load, entries: int, should_stop: ShouldStop) -> None:
        self.redactions = 0
        self._load = load
        self._entries = entries  # of the whole history when the attempt began
        self.should_stop = should_stop
        self._collector = Collector()
        self._next = 0  # index of the first entry that was not read
        self._known: tuple[int, MechanicalState] | None = None  # up to which entry, and what that was
        self._held: list[list[Entry]] = []  # pages from the start on, as long as they are small enough to hold
        self._held_chars = 0

    def check(self) -> None:
        """Raises `Stopped` when the attempt must end."""
        if (stop := self.should_stop()) is not None:
            raise Stopped(stop)

    def redact(self, text: str) -> str:
        clean, found = redact(text)
        self.redactions += found
        return clean

    def take(self, plan: Plan, chunk: Chunk, last: int) -> tuple[Entry, ...]:
        """The chunk's entries that leave the view; everything up to `last` is read on the way."""
        return tuple(entry for entry in self._read(last) if entry.index in plan.span and chunk.first <= entry.index <= chunk.last)

    def taken(self, wanted: Collection[int], last: int) -> tuple[Entry, ...]:
        """The entries of these indexes; everything up to `last` is read on the way."""
        return tuple(entry for entry in self._read(last) if entry.index in wanted)

    def state(self, plan: Plan) -> MechanicalState:
        """What code knows of everything before the boundary."""
        return self.state_before(plan.boundary_index)

    def state_before(self, index: int) -> MechanicalState:
        """What code knows of everything before an entry."""
        for _ in self._read(index - 1):
            pass
        return self.known()

    def facts(self) -> Facts:
        """What the entries read so far state."""
        return self._collector.facts()

    def again(self) -> Iterator[list[Entry]]:
        """The entries read so far, page by page once more. Those that are not held any more are loaded again."""
        yield from self._held
        first = self._held[-1][-1].index + 1 if self._held else 0
        while first < self._next:
            self.check()
            end = min(first + LOAD_AT_ONCE, self._next) - 1
            yield redact_entries(list(self._load(first, end)))[0]
            first = end + 1

    def known(self) -> MechanicalState:
        """What code knows of the entries read so far."""
        if self._known is None or self._known[0] != self._next:
            self._known = self._next, self._collector.state()
        return self._known[1]

    def tail(self, carried: Collection[int], boundary: int) -> Iterator[Entry]:
        """What stands word for word in a view: single entries from before its boundary, and all from it on."""
        for index in sorted(carried):
            yield from redact_entries(list(self._load(index, index)))[0]
        while boundary < self._entries:
            self.check()
            end = min(boundary + LOAD_AT_ONCE, self._entries) - 1
            yield from redact_entries(list(self._load(boundary, end)))[0]
            boundary = end + 1

    def _hold(self, page: list[Entry]) -> None:
        """Keeps the page at hand, unless that is too much or one before it was let go."""
        first = self._held[-1][-1].index + 1 if self._held else 0
        if page and page[0].index == first and self._held_chars < MAX_HELD_CHARS:
            self._held.append(page)
            self._held_chars += sum(len(part.text) for entry in page for part in entry.parts)

    def _read(self, last: int) -> Iterator[Entry]:
        while self._next <= last:
            self.check()
            end = min(self._next + LOAD_AT_ONCE - 1, last)
            page, found = redact_entries(list(self._load(self._next, end)))
            self.redactions += found
            self._next = end + 1
            self._hold(page)
            self._collector.add_all(page)
            yield from page


class Summarising:
    """One summary of a plan's span, by the first summariser of the chain that gives a usable answer to each call."""

    def __init__(
        self,
        reading: Reading,
        summarisers: Sequence[Summariser],
        policy: Policy,
        *,
        grounded: Callable[[str], Checked],
        previous_summary: str,
        instructions: str,
        force: bool,
    ) -> None:
        self.tried: list[SummariserTry] = []
        self.sources: set[SummarySource] = set()
        self.names: list[str] = []  # of those whose answers were used
        self._reading = reading
        self._summarisers = summarisers
        self._policy = policy
        self._grounded = grounded  # looks up in what was read what a text claims
        self.previous_summary = previous_summary
        self._instructions = instructions
        self._force = force
        self._replaced_tokens = 0
        self._given_up: set[str] = set()  # models that gave nothing usable in either attempt: the next chunk would only wait for them
        self._last_failure: NoSummaryError | None = None
        self._last_source = SummarySource.SKIPPED

    @property
    def source(self) -> SummarySource:
        return SummarySource.MIXED if len(self.sources) > 1 else next(iter(self.sources), SummarySource.SKIPPED)

    def summarise(self, plan: Plan) -> Generator[Step, None, str]:
        """The accepted summary of the span. Raises `NoSummaryError` and `Stopped`."""
        self._replaced_tokens = 0 if self._force else plan.span_tokens
        partials: list[str] = []
        for number, chunk in enumerate(plan.chunks, start=1):
            is_last = number == len(plan.chunks)
            entries = self._reading.take(plan, chunk, plan.boundary_index - 1 if is_last else chunk.last)
            partials.append(self._ask(self._request(plan, number, entries=entries), by_model=not chunk.is_surplus))
            yield ChunkSummarised(chunk_index=number, chunk_count=len(plan.chunks), source=self._last_source)
        return self._fold(plan, partials)

    def _fold(self, plan: Plan, partials: list[str]) -> str:
        while len(partials) > 1:
            groups = packing.fold_groups([estimate_text(text) for text in partials], self._summarisers[0].window)
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
            previous_summary=self.previous_summary if final else "",
            state=self._reading.state(plan) if final else None,
            instructions=self._instructions,
            standing_instructions=self._policy.standing_instructions,
            profile=self._policy.profile,
            max_tokens=plan.summary_tokens,
            chunk_index=number,
            chunk_count=len(plan.chunks),
        )

    def _ask(self, request: SummaryRequest, *, by_model: bool = True) -> str:
        """An answer that passed validation, of the first summariser in the chain that gives one."""
        failure = self._last_failure
        for summariser in self._able(request, by_model=by_model):
            if summariser.name in self._given_up:
                continue
            try:
                return self._ask_one(summariser, request)
            except NoSummaryError as refused:
                failure = self._last_failure = refused
                if summariser.is_model and not refused.is_of_request:
                    self._given_up.add(summariser.name)
        raise failure or NoSummaryError(Outcome.FAILED, "summariser_failed", "No summariser of the policy takes a request of this size.")

    def _able(self, request: SummaryRequest, *, by_model: bool) -> Sequence[Summariser]:
        """Those that the request fits. What no call is left for is summarised without a model."""
        if not by_model:
            return [summariser for summariser in self._summarisers if not summariser.is_model] or [ExtractiveSummariser()]
        if not any(summariser.is_model for summariser in self._summarisers):
            return self._summarisers
        least = prompts.sent_tokens(request, prompts.CLIPS[-1]) + LEAST_ANSWER_TOKENS
        return [summariser for summariser in self._summarisers if not summariser.is_model or least <= summariser.window]

    def _ask_one(self, summariser: Summariser, request: SummaryRequest) -> str:
        """A second attempt asks for less. Raises `NoSummaryError`, `Stopped`."""
        failure = NoSummaryError(Outcome.FAILED, "summariser_failed", "")
        if summariser.is_model:
            # Where what is to be read fills the window, it gives way to the answer and not the other way round.
            left = summariser.window - prompts.sent_tokens(request)
            room = max(left, min(summariser.window // ANSWER_SHARE, summariser.window - prompts.sent_tokens(request, prompts.CLIPS[-1])))
            request = msgspec.structs.replace(request, max_tokens=min(request.max_tokens, room))
        for attempt in range(1, ATTEMPTS_EACH + 1):
            self._reading.check()
            asked = msgspec.structs.replace(request, attempt=attempt)
            if attempt > 1:
                asked = msgspec.structs.replace(asked, max_tokens=int(request.max_tokens * SMALLEST_SHARE))
            try:
                return self._accepted(summariser, asked)
            except NoSummaryError as refused:
                failure = refused
                if refused.is_final:
                    break
        raise failure

    def _accepted(self, summariser: Summariser, request: SummaryRequest) -> str:
        answer = self._answer(summariser, request)
        self._reading.check()
        is_model = summariser.is_model
        rejection = summaries.validate(
            answer.text,
            truncated=answer.truncated,
            tokens=estimate_text(answer.text),
            replaced_tokens=self._replaced_tokens if request.state else 0,
            asked_tokens=request.max_tokens if is_model else 0,
            inputs=(part.text for entry in request.entries for part in entry.parts) if is_model else (),
            # With entries to join to it, an earlier summary is never the whole answer.
            earlier=(request.previous_summary, *(request.partial_summaries or ("",))) if is_model else (),
        )
        rejection = rejection or self._unsupported(summariser, request, answer)
        self._note(summariser, request, answer=answer, refused=rejection.words if rejection else "")
        if rejection is not None:
            words = f"Both attempts of “{summariser.name}” to summarise were refused: {rejection.words}."
            raise NoSummaryError(rejection.outcome, rejection.value, words)
        self.sources.add(answer.source)
        self._last_source = answer.source
        if summariser.name not in self.names:
            self.names.append(summariser.name)
        return answer.text

    def _unsupported(self, summariser: Summariser, request: SummaryRequest, answer: SummaryAnswer) -> Rejection | None:
        """Whether a model tells of something else. Asked of the last answer alone: the others are only read by the next call."""
        if not (self._policy.coverage_blocking and summariser.is_model and request.state):
            return None
        return Rejection.UNSUPPORTED if self._grounded(answer.text).is_blocking else None

    def _answer(self, summariser: Summariser, request: SummaryRequest) -> SummaryAnswer:
        try:
            answer = summariser.summarise(request, self._reading.should_stop)
            return msgspec.structs.replace(answer, text=storable(answer.text))
        except Stopped:
            raise
        except SummariserFailed as failed:
            words, is_final, is_of_request = f"The summariser “{summariser.name}” failed: {failed}", failed.is_final, failed.is_of_request
        except Exception as error:  # whatever a model client raises ends its turn, not the worker
            # The type alone: a client's message may quote the request, and with it the transcript.
            words, is_final, is_of_request = f"The summariser “{summariser.name}” failed with {type(error).__name__}.", False, False
        self._note(summariser, request, refused=words)
        raise NoSummaryError(Outcome.FAILED, "summariser_failed", words, is_final=is_final, is_of_request=is_of_request)

    def _note(self, summariser: Summariser, request: SummaryRequest, *, refused: str, answer: SummaryAnswer | None = None) -> None:
        self.tried.append(
            SummariserTry(
                summariser=summariser.name,
                chunk_index=request.chunk_index,
                model=answer.model if answer else "",
                usage=answer.usage if answer else None,
                cost_usd=answer.cost_usd if answer else None,
                refused=refused,
            )
        )
