"""Running attempts on histories in memory."""

from collections.abc import Sequence

import msgspec

from sessions_app.engine import counting
from sessions_app.engine.asking import Crew
from sessions_app.engine.attempt import Task, run
from sessions_app.engine.entries import Checkpoint, Entry
from sessions_app.engine.extractive import ExtractiveSummariser
from sessions_app.engine.policy import Policy
from sessions_app.engine.shapes import shape_of
from sessions_app.engine.steps import Commit, Result, Step, Stop, Summariser, SummaryAnswer, SummaryRequest
from sessions_app.engine.terms import Lineage, SummarySource, Trigger
from tests.engine.histories import Story

FILLER = "The parser keeps `state.py` because the reader must never block. It was measured at 40 ms on 12 files. "


class Attempt(msgspec.Struct):
    steps: list[Step]
    result: Result

    @property
    def commit(self) -> Commit:
        assert isinstance(self.result, Commit), self.result
        return self.result


def attempt(
    entries: Sequence[Entry],
    *,
    chain: Sequence[Checkpoint] = (),
    previous_summary: str = "",
    policy: Policy | None = None,
    window: int = 200_000,
    signal_tokens: int | None = None,
    summariser: Summariser | None = None,
    instructions: str = "",
    force: bool = False,
    manual: bool = True,
    trigger: Trigger = Trigger.THRESHOLD,
    fallbacks: Sequence[Summariser] = (),
    boundary: int | None = None,
    should_stop=lambda: None,
    crew: Crew | None = None,
) -> Attempt:
    """One attempt to its end."""
    shapes = [shape_of(entry) for entry in entries]
    estimate = sum(shape.tokens for shape in shapes if shape.is_sent)
    task = Task(
        shapes=shapes,
        load=lambda first, last: iter(entries[first : last + 1]),
        chain=chain,
        previous_summary=previous_summary,
        policy=policy or Policy(),
        window=window,
        signal_tokens=estimate if signal_tokens is None else signal_tokens,
        summarisers=[summariser or ExtractiveSummariser(), *fallbacks],
        trigger=Trigger.MANUAL if manual else trigger,
        instructions=instructions,
        force=force,
        boundary=boundary,
        crew=crew,
    )
    steps = run(task, should_stop=should_stop)
    taken: list[Step] = []
    while True:
        try:
            taken.append(next(steps))
        except StopIteration as end:
            return Attempt(taken, end.value)


def checkpoint_of(commit: Commit, generation: int) -> Checkpoint:
    return Checkpoint(generation=generation, lineage=Lineage.CONSOLE, segments=commit.segments, boundary_index=commit.boundary_index)


def long_story(turns: int = 12, words: str = FILLER * 8) -> Story:
    story = Story().system("You are an agent.")
    for turn in range(turns):
        story.user(f"Please do part {turn}. {words}").calls(f"c{turn}").result(f"c{turn}", words=words).says(
            f"Part {turn} is done. {words}"
        )
    return story


def wordy(entries: Sequence[Entry], times: int = 6) -> list[Entry]:
    """The same history with longer texts, so that folding it pays."""
    longer = []
    for entry in entries:
        parts = tuple(
            msgspec.structs.replace(part, text=f"{part.text} {FILLER * times}") if part.text and part.name == "" else part
            for part in entry.parts
        )
        longer.append(msgspec.structs.replace(entry, parts=parts, tokens=counting.estimate_parts(parts)))
    return longer


class StopAfter:
    """Answers `stop` from the n-th question on."""

    def __init__(self, questions: int, stop: Stop = Stop.CANCELLED) -> None:
        self.left = questions
        self.stop = stop
        self.asked = 0

    def __call__(self) -> Stop | None:
        self.asked += 1
        self.left -= 1
        return self.stop if self.left < 0 else None


class Canned:
    """A summariser that gives the answers it was handed, one after the other, and keeps what it was asked."""

    name = "canned"
    window = 100_000
    is_model = True

    def __init__(self, *answers: SummaryAnswer | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[SummaryRequest] = []

    def summarise(self, request: SummaryRequest, should_stop) -> SummaryAnswer:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def answer(text: str, *, truncated: bool = False) -> SummaryAnswer:
    return SummaryAnswer(text=text, source=SummarySource.LLM, truncated=truncated)
