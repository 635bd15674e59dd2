"""Asking summarisers: the chain of them for one call, and several calls side by side with one and the same result.

What comes of a call depends on its request alone, and what a chain makes of it on the calls before. So calls are made ahead, as
many at once as are allowed, and their answers kept; the chain then goes through the requests in order, and takes from what is
kept. Whatever it finds there it would have got by asking one after the other: the order in which answers come in decides nothing.
"""

from collections import deque
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec

from sessions_app.engine import prompts
from sessions_app.engine import summary as summaries
from sessions_app.engine.counting import estimate_text
from sessions_app.engine.extractive import ExtractiveSummariser
from sessions_app.engine.grounding import Checked
from sessions_app.engine.steps import ShouldStop, Stopped, Summariser, SummariserFailed, SummariserTry, SummaryAnswer, SummaryRequest
from sessions_app.engine.summary import Rejection
from sessions_app.engine.terms import Outcome, SummarySource
from sessions_app.engine.texts import storable

ATTEMPTS_EACH = 2
LEAST_ANSWER_TOKENS = 400
"""A summariser whose window leaves less than this for its answer is passed over."""

ANSWER_SHARE = 4
"""One part in so many of a summariser's window is its answer's, however much there is to read."""

SMALLEST_SHARE = 0.7
"""Of the length first asked for, on the second attempt: what was cut off once would be cut off again."""

UNUSED = "What came of it was not used: by then the summariser was given up."


class NoSummaryError(Exception):
    """Every summariser of the policy failed, or answered twice with something unusable."""

    def __init__(self, outcome: Outcome, reason: str, words: str, *, is_final: bool = False, is_of_request: bool = False) -> None:
        self.outcome, self.reason, self.is_final, self.is_of_request = outcome, reason, is_final, is_of_request
        super().__init__(words)


Raw = SummaryAnswer | Exception
"""What a call came to: an answer, or what it raised."""


class Crew(Protocol):
    """Makes calls for an attempt, several at once: the only thing that leaves its thread."""

    def submit(self, place: int, make: Callable[[ShouldStop], Raw], should_stop: ShouldStop) -> None:
        """Begins a call."""

    def wait(self, should_stop: ShouldStop) -> tuple[int, Raw]:
        """The place of a call that has come back, whichever, and what it came to. Raises `Stopped` within a second of a stop."""

    def dismiss(self) -> None:
        """Stops the calls that are still under way; nobody waits for them any more."""


class Job(NamedTuple):
    """A request, and whether a model may be asked: else no call of one is left for it."""

    request: SummaryRequest
    by_model: bool = True


_Key = tuple[str, int, int, bool]


class _Call(NamedTuple):
    summariser: Summariser
    request: SummaryRequest

    @property
    def key(self) -> _Key:
        """Tells the calls of one job apart."""
        asked = self.request
        return self.summariser.name, asked.attempt, asked.max_tokens, asked.is_shortened

    def make(self, should_stop: ShouldStop) -> Raw:
        try:
            answer = self.summariser.summarise(self.request, should_stop)
            return msgspec.structs.replace(answer, text=storable(answer.text))
        except Exception as error:  # noqa: BLE001  whatever a model client raises ends its turn, not the worker
            return error


class _Asked(msgspec.Struct):
    """What the chain came to for one job."""

    tried: list[SummariserTry]
    given_up: list[str]  # models that gave nothing usable in either attempt
    answer: SummaryAnswer | None = None
    name: str = ""
    failure: NoSummaryError | None = None  # the last one


_Asking = Generator[_Call, Raw, _Asked]


class _Lane:
    """One job, and what calls that were made ahead of it came to."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.kept: dict[_Key, Raw] = {}
        self.pending: _Call | None = None
        self.asking: _Asking | None = None


class Asker:
    """Asks the summarisers of one attempt."""

    def __init__(
        self,
        summarisers: Sequence[Summariser],
        *,
        should_stop: ShouldStop,
        grounded: Callable[[str], Checked],
        coverage_blocking: bool,
        crew: Crew | None = None,
        lanes: int = 1,
    ) -> None:
        self.tried: list[SummariserTry] = []
        self.sources: set[SummarySource] = set()
        self.names: list[str] = []  # of those whose answers were used
        self.last_source = SummarySource.SKIPPED
        self.replaced_tokens = 0
        self._summarisers = summarisers
        self._should_stop = should_stop
        self._grounded = grounded  # looks up in what was read what a text claims
        self._coverage_blocking = coverage_blocking
        self._crew = crew
        self._lanes = max(1, lanes) if crew else 1
        self._given_up: set[str] = set()  # the next job would only wait for them
        self._last_failure: NoSummaryError | None = None
        self._flying: dict[int, _Lane] = {}
        self._places = 0

    def texts(self, jobs: Iterator[Job], *, count: int) -> Iterator[str]:
        """The accepted text of each of so many jobs, in order; no more of them are taken ahead than calls may be made at once.

        Raises `NoSummaryError` and `Stopped`.
        """
        ahead: deque[_Lane] = deque()
        left = count
        try:
            while True:
                while left and len(ahead) < self._lanes:
                    left -= 1
                    ahead.append(self._begun(next(jobs), is_alone=count == 1))
                if not ahead:
                    return
                while ahead[0].pending is not None:
                    self._take_one()
                yield self._settled(ahead.popleft())
        finally:
            self._let_go(ahead)

    def check(self) -> None:
        """Raises `Stopped` when the attempt must end."""
        if (stop := self._should_stop()) is not None:
            raise Stopped(stop)

    # Ahead of the chain.

    def _begun(self, job: Job, *, is_alone: bool) -> _Lane:
        lane = _Lane(job)
        if self._lanes > 1 and job.by_model and not is_alone:
            lane.asking = self._asking(job, frozenset(self._given_up), None)
            self._go_on(lane, None)
        return lane

    def _take_one(self) -> None:
        assert self._crew is not None
        place, raw = self._crew.wait(self._should_stop)
        lane = self._flying.pop(place)
        assert lane.pending is not None
        if isinstance(raw, Stopped):
            raise raw
        lane.kept[lane.pending.key] = raw
        lane.pending = None
        # Who is asked for too much at once is asked again when nobody else asks.
        if not (isinstance(raw, SummariserFailed) and raw.is_busy):
            self._go_on(lane, raw)

    def _go_on(self, lane: _Lane, raw: Raw | None) -> None:
        """Makes the next call of a job ahead, if it is one of a model."""
        assert self._crew is not None
        assert lane.asking is not None
        try:
            call = next(lane.asking) if raw is None else lane.asking.send(raw)
        except StopIteration:
            return
        if call.summariser.is_model:
            lane.pending = call
            self._flying[self._places] = lane
            self._crew.submit(self._places, call.make, self._should_stop)
            self._places += 1

    def _let_go(self, ahead: Collection[_Lane]) -> None:
        """Leaves what was begun ahead and is of no use any more, but for what it cost."""
        if self._flying and self._crew is not None:
            self._crew.dismiss()
        self._flying.clear()
        for lane in ahead:
            self._note_unused(lane)

    def _note_unused(self, lane: _Lane) -> None:
        for (name, *_), raw in lane.kept.items():
            answer = raw if isinstance(raw, SummaryAnswer) else None
            self.tried.append(_tried(name, lane.job.request, refused=UNUSED, answer=answer))

    # The chain.

    def _settled(self, lane: _Lane) -> str:
        """The text of a job, by the chain as it stands now. Raises `NoSummaryError` and `Stopped`."""
        asking = self._asking(lane.job, self._given_up, self._last_failure)
        raw: Raw | None = None
        was_busy = False
        while True:
            try:
                call = next(asking) if raw is None else asking.send(raw)
            except StopIteration as end:
                asked: _Asked = end.value
                break
            raw = lane.kept.pop(call.key, None)
            if raw is None:
                raw = call.make(self._should_stop)
            elif isinstance(raw, SummariserFailed):
                was_busy = was_busy or raw.is_busy
            if isinstance(raw, Stopped):
                raise raw
        self.tried += asked.tried
        self._note_unused(lane)
        self._given_up.update(asked.given_up)
        self._last_failure = asked.failure or self._last_failure
        if was_busy:
            self._lanes = max(1, self._lanes // 2)
        if asked.answer is None:
            words = "No summariser of the policy takes a request of this size."
            raise asked.failure or NoSummaryError(Outcome.FAILED, "summariser_failed", words)
        self.last_source = asked.answer.source
        self.sources.add(asked.answer.source)
        if asked.name not in self.names:
            self.names.append(asked.name)
        return asked.answer.text

    def _asking(self, job: Job, given_up: Collection[str], failure: NoSummaryError | None) -> _Asking:
        """An answer that passed validation, of the first summariser in the chain that gives one. Changes nothing but what it returns."""
        asked = _Asked(tried=[], given_up=[], failure=failure)
        for summariser in self._able(job):
            if summariser.name in given_up:
                continue
            refused = yield from self._attempts(summariser, job.request, asked)
            if refused is None:
                break
            asked.failure = refused
            if summariser.is_model and not refused.is_of_request:
                asked.given_up.append(summariser.name)
        return asked

    def _able(self, job: Job) -> Sequence[Summariser]:
        """Those that the request fits. What no call is left for is summarised without a model."""
        if not job.by_model:
            return [summariser for summariser in self._summarisers if not summariser.is_model] or [ExtractiveSummariser()]
        if not any(summariser.is_model for summariser in self._summarisers):
            return self._summarisers
        least = prompts.sent_tokens(job.request, prompts.CLIPS[-1]) + LEAST_ANSWER_TOKENS
        return [summariser for summariser in self._summarisers if not summariser.is_model or least <= summariser.window]

    def _attempts(self, summariser: Summariser, request: SummaryRequest, asked: _Asked) -> Generator[_Call, Raw, NoSummaryError | None]:
        """Asks one summariser, and tells why its answers can't be used; None where one can. A second attempt asks for less.

        What its provider found too long is no attempt: it is asked for once more, and shorter.
        """
        if summariser.is_model:
            # Where what is to be read fills the window, it gives way to the answer and not the other way round.
            left = summariser.window - prompts.sent_tokens(request)
            room = max(left, min(summariser.window // ANSWER_SHARE, summariser.window - prompts.sent_tokens(request, prompts.CLIPS[-1])))
            request = msgspec.structs.replace(request, max_tokens=min(request.max_tokens, room))
        attempt, wanted = 1, request
        while True:
            self.check()
            raw = yield _Call(summariser, wanted)
            self.check()
            refused = self._judged(summariser, wanted, raw, asked)
            if refused is None or refused.is_final:
                return refused
            is_too_long = isinstance(raw, SummariserFailed) and raw.is_of_request
            if is_too_long and not wanted.is_shortened:
                wanted = msgspec.structs.replace(wanted, is_shortened=True)
                continue
            attempt += 1
            if attempt > ATTEMPTS_EACH:
                return refused
            after_s = raw.retry_after_s if isinstance(raw, SummariserFailed) else 0.0
            less = int(request.max_tokens * SMALLEST_SHARE)
            wanted = msgspec.structs.replace(wanted, attempt=attempt, max_tokens=less, after_s=after_s)

    def _judged(self, summariser: Summariser, request: SummaryRequest, raw: Raw, asked: _Asked) -> NoSummaryError | None:
        """Why an answer may not be used; None where it may. Either way it is noted."""
        if not isinstance(raw, SummaryAnswer):
            return _failed(summariser, request, raw, asked)
        is_model = summariser.is_model
        rejection = summaries.validate(
            raw.text,
            truncated=raw.truncated,
            tokens=estimate_text(raw.text),
            replaced_tokens=self.replaced_tokens if request.state else 0,
            asked_tokens=request.max_tokens if is_model else 0,
            inputs=(part.text for entry in request.entries for part in entry.parts) if is_model else (),
            # With entries to join to it, an earlier summary is never the whole answer.
            earlier=(request.previous_summary, *(request.partial_summaries or ("",))) if is_model else (),
        )
        rejection = rejection or self._unsupported(summariser, request, raw)
        asked.tried.append(_tried(summariser.name, request, refused=rejection.words if rejection else "", answer=raw))
        if rejection is None:
            asked.answer, asked.name = raw, summariser.name
            return None
        words = f"Both attempts of “{summariser.name}” to summarise were refused: {rejection.words}."
        return NoSummaryError(rejection.outcome, rejection.value, words)

    def _unsupported(self, summariser: Summariser, request: SummaryRequest, answer: SummaryAnswer) -> Rejection | None:
        """Whether a model tells of something else. Asked of the last answer alone: the others are only read by the next call."""
        if not (self._coverage_blocking and summariser.is_model and request.state):
            return None
        return Rejection.UNSUPPORTED if self._grounded(answer.text).is_blocking else None


def _failed(summariser: Summariser, request: SummaryRequest, error: Exception, asked: _Asked) -> NoSummaryError:
    if isinstance(error, SummariserFailed):
        words, is_final, is_of_request = f"The summariser “{summariser.name}” failed: {error}", error.is_final, error.is_of_request
    else:
        # The type alone: a client's message may quote the request, and with it the transcript.
        words, is_final, is_of_request = f"The summariser “{summariser.name}” failed with {type(error).__name__}.", False, False
    asked.tried.append(_tried(summariser.name, request, refused=words))
    return NoSummaryError(Outcome.FAILED, "summariser_failed", words, is_final=is_final, is_of_request=is_of_request)


def _tried(name: str, request: SummaryRequest, *, refused: str, answer: SummaryAnswer | None = None) -> SummariserTry:
    return SummariserTry(
        summariser=name,
        chunk_index=request.chunk_index,
        model=answer.model if answer else "",
        usage=answer.usage if answer else None,
        cost_usd=answer.cost_usd if answer else None,
        refused=refused,
    )
