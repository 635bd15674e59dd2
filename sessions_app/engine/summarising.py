"""The middle of an attempt: reading the span chunk by chunk, having each summarised, folding what comes of them."""

from collections.abc import Callable, Collection, Generator, Iterator, Sequence

import msgspec

from sessions_app.engine import chunks as packing
from sessions_app.engine.asking import Asker, Crew, Job
from sessions_app.engine.chunks import Chunk
from sessions_app.engine.counting import estimate_text
from sessions_app.engine.entries import Entry
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
    SummariserTry,
    SummaryRequest,
)
from sessions_app.engine.terms import SummarySource

Load = Callable[[int, int], Iterator[Entry]]
"""Entries from the first index to the last, inclusive, in order."""

LOAD_AT_ONCE = 500  # entries, so that a store's cursor is never open while a summariser works
MAX_HELD_CHARS = 32_000_000
"""Of entries that were read, kept at hand for the check of the summary; what lies beyond is loaded again."""


class Reading:
    """Reads a history from its start, once, and keeps what code can know of it. Credentials go no further than here."""

    def __init__(self, load: Load, entries: int, should_stop: ShouldStop) -> None:
        self.redactions = 0
        self._load = load
        self._entries = entries  # of the whole history when the attempt began
        self.should_stop = should_stop
        self._collector = Collector()
        self._next = 0  # index of the first entry that was not read
        self.goal = ""  # that somebody set; it stands in what is known
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
            self._known = self._next, msgspec.structs.replace(self._collector.state(), goal=self.goal)
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
        crew: Crew | None,
    ) -> None:
        self._reading = reading
        self._window = summarisers[0].window
        self._policy = policy
        self.previous_summary = previous_summary
        self._instructions = instructions
        self._force = force
        self._asker = Asker(
            summarisers,
            should_stop=reading.should_stop,
            grounded=grounded,
            coverage_blocking=policy.coverage_blocking,
            crew=crew,
            lanes=policy.concurrency,
        )

    @property
    def tried(self) -> list[SummariserTry]:
        return self._asker.tried

    @property
    def names(self) -> list[str]:
        """Of those whose answers were used."""
        return self._asker.names

    @property
    def source(self) -> SummarySource:
        sources = self._asker.sources
        return SummarySource.MIXED if len(sources) > 1 else next(iter(sources), SummarySource.SKIPPED)

    def summarise(self, plan: Plan) -> Generator[Step, None, str]:
        """The accepted summary of the span. Raises `NoSummaryError` and `Stopped`."""
        self._asker.replaced_tokens = 0 if self._force else plan.span_tokens
        count = len(plan.chunks)
        partials: list[str] = []
        for text in self._asker.texts(self._jobs(plan), count=count):
            partials.append(text)
            yield ChunkSummarised(chunk_index=len(partials), chunk_count=count, source=self._asker.last_source)
        return self._fold(plan, partials)

    def _jobs(self, plan: Plan) -> Iterator[Job]:
        """One for each chunk, whose entries are read when it is taken."""
        for number, chunk in enumerate(plan.chunks, start=1):
            is_last = number == len(plan.chunks)
            entries = self._reading.take(plan, chunk, plan.boundary_index - 1 if is_last else chunk.last)
            yield Job(self._request(plan, number, entries=entries), by_model=not chunk.is_surplus)

    def _fold(self, plan: Plan, partials: list[str]) -> str:
        while len(partials) > 1:
            groups = packing.fold_groups([estimate_text(text) for text in partials], self._window)
            is_final = len(groups) == 1
            folds = [Job(self._request(plan, len(plan.chunks), partials=partials[start:end], is_final=is_final)) for start, end in groups]
            partials = list(self._asker.texts(iter(folds), count=len(folds)))
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
