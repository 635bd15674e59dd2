"""Calls that are made side by side come to what they come to one after the other, in whatever order they are answered."""

import random
import threading
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.engine.asking import UNUSED, Raw
from sessions_app.engine.attempt import Task
from sessions_app.engine.attempt import run as engine_run
from sessions_app.engine.entries import Usage
from sessions_app.engine.extractive import ExtractiveSummariser
from sessions_app.engine.policy import Policy
from sessions_app.engine.shapes import shape_of
from sessions_app.engine.steps import (
    ChunkSummarised,
    Commit,
    Ended,
    Planned,
    ShouldStop,
    Stop,
    Stopped,
    SummariserFailed,
    SummaryAnswer,
    SummaryRequest,
)
from sessions_app.engine.terms import Outcome, Status, SummarySource
from sessions_app.providers.crew import ThreadCrew
from tests.engine.attempts import FILLER, Attempt, attempt, long_story

MANY = long_story(turns=30, words=FILLER * 6).entries
PATIENCE_S = 60.0


class ShuffledCrew:
    """Calls come back in an order that a die decides; a call is made when it comes back."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._flying: list[tuple[int, Callable[[], Raw]]] = []
        self.most = 0
        self.dismissed = 0

    def submit(self, place: int, make: Callable[[ShouldStop], Raw], should_stop: ShouldStop) -> None:
        self._flying.append((place, lambda: make(should_stop)))
        self.most = max(self.most, len(self._flying))

    def wait(self, should_stop: ShouldStop) -> tuple[int, Raw]:
        if (stop := should_stop()) is not None:
            raise Stopped(stop)
        place, made = self._flying.pop(self._dice.randrange(len(self._flying)))
        return place, made()

    def dismiss(self) -> None:
        self._flying.clear()
        self.dismissed += 1


class Moody:
    """A model that answers a request by that alone: well, badly, or not at all, as the die of this request falls."""

    is_model = True
    window = 3_500

    def __init__(self, name: str, seed: int, moods: str) -> None:
        self.name = name
        self._seed, self._moods = seed, moods
        self.asked: list[SummaryRequest] = []

    def summarise(self, request: SummaryRequest, should_stop: ShouldStop) -> SummaryAnswer:
        self.asked.append(request)
        what = (self._seed, self.name, request.chunk_index, len(request.partial_summaries), request.attempt, request.is_shortened)
        mood = random.Random(repr(what)).choice(self._moods)
        if mood == "f":
            raise SummariserFailed("no key is set.", is_final=True)
        if mood == "b":
            raise SummariserFailed("too many requests.", is_busy=True, retry_after_s=1.0)
        if mood == "o":
            raise SummariserFailed("too long.", is_final=request.is_shortened, is_of_request=True)
        if mood == "x":
            raise RuntimeError
        words = f"## Primary request and intent\n{self.name} told part {request.chunk_index} by {what[3:]}.\n\n## Next step\nGo on."
        usage = Usage(input=len(request.entries), output=request.chunk_index)
        return SummaryAnswer(text="" if mood == "e" else words, source=SummarySource.LLM, truncated=mood == "t", usage=usage)


def run(seed: int, moods: str, concurrency: int, crew, *, has_fallback: bool) -> Attempt:
    models = [Moody("first", seed, moods), Moody("second", seed, moods)]
    fallbacks = [models[1], ExtractiveSummariser()] if has_fallback else [models[1]]
    policy = Policy(keep_recent_fraction=0.05, concurrency=concurrency, coverage_blocking=False)
    return attempt(MANY, policy=policy, summariser=models[0], fallbacks=fallbacks, crew=crew)


def told(made: Attempt) -> tuple[object, ...]:
    """Everything that an attempt says, but for what it was answered in vain."""
    tried = tuple(one for one in made.result.tried if one.refused != UNUSED)
    return made.steps, msgspec.structs.replace(made.result, tried=tried)


@settings(max_examples=50)
@given(
    seed=st.integers(0, 10**6),
    order=st.integers(0, 10**6),
    moods=st.sampled_from(["g", "gggggt", "ggggge", "gggo", "gggb", "gggx", "ggf", "f", "gggggggbotexf"]),
    concurrency=st.integers(2, 6),
    has_fallback=st.booleans(),
)
def test_side_by_side_is_one_after_the_other(seed, order, moods, concurrency, has_fallback):
    crew = ShuffledCrew(order)
    together = run(seed, moods, concurrency, crew, has_fallback=has_fallback)
    alone = run(seed, moods, 1, None, has_fallback=has_fallback)
    assert told(together) == told(alone)
    assert crew.most <= concurrency
    again = run(seed, moods, concurrency, ShuffledCrew(order + 1), has_fallback=has_fallback)
    assert together.result.tried == again.result.tried or isinstance(together.result, Ended)


def test_the_order_of_progress_is_that_of_the_chunks():
    made = run(1, "g", 4, ShuffledCrew(7), has_fallback=False)
    chunks = [step.chunk_index for step in made.steps if isinstance(step, ChunkSummarised)]
    planned = next(step for step in made.steps if isinstance(step, Planned))
    assert chunks == list(range(1, planned.chunk_count + 1))
    assert planned.chunk_count > 4


def test_what_is_answered_by_a_model_that_was_given_up_meanwhile_was_paid_for():
    class SecondPartFails(Moody):
        def summarise(self, request: SummaryRequest, should_stop: ShouldStop) -> SummaryAnswer:
            if request.chunk_index == 2:
                raise SummariserFailed("the provider does not accept the key.", is_final=True)
            return super().summarise(request, should_stop)

    model = SecondPartFails("first", 1, "g")
    policy = Policy(keep_recent_fraction=0.05, concurrency=4, coverage_blocking=False)
    made = attempt(MANY, policy=policy, summariser=model, fallbacks=[ExtractiveSummariser()], crew=ShuffledCrew(3))
    unused = [one for one in made.commit.tried if one.refused == UNUSED]
    assert [one.chunk_index for one in unused] == [3, 4, 5]  # the last of them was begun when the first part was done
    assert all(one.usage for one in unused)
    assert made.commit.summary_source is SummarySource.MIXED
    assert {request.chunk_index for request in model.asked} == {1, 3, 4, 5}  # and nothing further of it


def test_a_provider_that_is_asked_too_much_at_once_is_asked_less():
    class Crowded(Moody):
        def summarise(self, request: SummaryRequest, should_stop: ShouldStop) -> SummaryAnswer:
            if request.chunk_index in (2, 3) and request.attempt == 1:
                self.asked.append(request)
                raise SummariserFailed("the provider allows no more requests for now.", is_busy=True, retry_after_s=2.0)
            return super().summarise(request, should_stop)

    crew, model = ShuffledCrew(5), Crowded("first", 1, "g")
    policy = Policy(keep_recent_fraction=0.05, concurrency=4, coverage_blocking=False)
    made = attempt(MANY, policy=policy, summariser=model, crew=crew)
    assert made.commit.outcome is Outcome.COMMITTED
    again = [request for request in model.asked if request.attempt == 2]
    assert [(request.chunk_index, request.after_s) for request in again] == [(2, 2.0), (3, 2.0)]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_no_more_is_read_ahead_than_is_asked_at_once(concurrency):
    read = -1

    def load(first: int, last: int):
        nonlocal read
        read = max(read, last)
        return iter(MANY[first : last + 1])

    model = Moody("first", 1, "g")
    policy = Policy(keep_recent_fraction=0.05, concurrency=concurrency, coverage_blocking=False)
    shapes = [shape_of(entry) for entry in MANY]
    signal = sum(shape.tokens for shape in shapes)
    crew = ShuffledCrew(1)
    task = Task(shapes=shapes, load=load, chain=(), policy=policy, window=200_000, signal_tokens=signal, summarisers=[model], crew=crew)
    steps, reads = [], []
    for step in engine_run(task, should_stop=lambda: None):
        steps.append(step)
        if isinstance(step, ChunkSummarised):
            reads.append(read)
    boundary = next(step.boundary_index for step in steps if isinstance(step, Planned))
    ends = sorted(request.entries[-1].index for request in model.asked if request.entries)
    ends[-1] = boundary - 1
    assert len(ends) == len(reads) > 4
    assert reads == [ends[min(number + concurrency, len(ends)) - 1] for number in range(len(ends))]


class Hanging:
    """A model that heeds nobody until it is let go."""

    name = "hanging"
    is_model = True
    window = 3_500

    def __init__(self) -> None:
        self.let = threading.Event()
        self.asked = threading.Semaphore(0)

    def summarise(self, request: SummaryRequest, should_stop: ShouldStop) -> SummaryAnswer:
        self.asked.release()
        assert self.let.wait(PATIENCE_S)
        raise RuntimeError


@pytest.mark.parametrize(("stop", "status"), [(Stop.CANCELLED, Status.CANCELLED), (Stop.TIMED_OUT, Status.TIMED_OUT)])
def test_a_stop_waits_for_no_model_that_hangs(stop, status):
    model, stopping = Hanging(), threading.Event()
    policy = Policy(keep_recent_fraction=0.05, concurrency=3)

    def stop_when_all_hang() -> None:
        for _ in range(3):
            assert model.asked.acquire(timeout=PATIENCE_S)
        stopping.set()

    watcher = threading.Thread(target=stop_when_all_hang)
    watcher.start()
    try:
        made = attempt(MANY, policy=policy, summariser=model, crew=ThreadCrew(), should_stop=lambda: stop if stopping.is_set() else None)
        assert isinstance(made.result, Ended)
        assert made.result.status is status
        assert not model.let.is_set()
    finally:
        model.let.set()
        watcher.join()


def test_threads_come_to_the_same():
    together = run(4, "ggggt", 4, ThreadCrew(), has_fallback=True)
    assert told(together) == told(run(4, "ggggt", 1, None, has_fallback=True))
    assert isinstance(together.result, Commit)


def test_what_is_still_under_way_when_an_attempt_ends_is_told_to_stop():
    stopped = threading.Event()

    class FirstFails(Moody):
        def summarise(self, request: SummaryRequest, should_stop: ShouldStop) -> SummaryAnswer:
            if request.chunk_index == 1:
                raise SummariserFailed("no.", is_final=True)
            while should_stop() is None:
                stopped.wait(0.01)
            stopped.set()
            raise Stopped(Stop.CANCELLED)

    policy = Policy(keep_recent_fraction=0.05, concurrency=3)
    made = attempt(MANY, policy=policy, summariser=FirstFails("first", 1, "g"), crew=ThreadCrew())
    assert isinstance(made.result, Ended)
    assert made.result.status is Status.FAILED
    assert stopped.wait(PATIENCE_S)
