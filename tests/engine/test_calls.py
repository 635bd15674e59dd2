"""The calls that are foreseen of a plan are those that its attempt makes: as many, and as long within the estimator's error."""

import random

import pytest

from sessions_app.engine import calls, plan, prompts
from sessions_app.engine.counting import estimate_text
from sessions_app.engine.plan import Plan
from sessions_app.engine.policy import Policy
from sessions_app.engine.shapes import shape_of
from sessions_app.engine.steps import ChunkSummarised, SummaryAnswer, SummaryRequest
from sessions_app.engine.terms import Profile, SummarySource
from tests.engine.attempts import FILLER, attempt
from tests.engine.histories import Story

OUTPUT = "drwxr-xr-x 2 root root 4096 Mar 03 10:12 /srv/app/state.py -> 7f3a, passed in 0.41s; exit=0\n"
HEADINGS = "## Primary request and intent\nBuild it.\n\n## Next step\n"


class Long:
    """A model that writes as much as it may, and keeps what it was asked."""

    name = "long"
    is_model = True

    def __init__(self, window: int) -> None:
        self.window = window
        self.requests: list[SummaryRequest] = []

    def summarise(self, request: SummaryRequest, should_stop) -> SummaryAnswer:
        self.requests.append(request)
        dice = random.Random(len(self.requests))
        words = ["".join(dice.choices("abcdefghiklmnoprstuvw", k=dice.randint(3, 9))) for _ in range(request.max_tokens)]
        left = request.max_tokens - estimate_text(HEADINGS)
        while estimate_text(" ".join(words)) > left:
            words = words[: len(words) * left // estimate_text(" ".join(words))]
        return SummaryAnswer(text=f"{HEADINGS}{' '.join(words)}", source=SummarySource.LLM)


def story(seed: int, turns: int, *, longest: int) -> Story:
    """Messages, calls and results of many lengths; some results longer than a summariser is shown of them."""
    dice = random.Random(seed)
    made = Story().system("You are an agent.")
    for turn in range(turns):
        made.user(f"Please do part {turn}. {FILLER * dice.randint(1, 12)}")
        for number in range(dice.randint(0, 3)):
            made.calls(f"c{turn}-{number}").result(f"c{turn}-{number}", words=OUTPUT * dice.randint(1, longest))
        made.says(f"Part {turn} is done. {FILLER * dice.randint(1, 12)}")
    return made


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("turns", "longest", "window", "most"),
    [(12, 10, 100_000, 64), (120, 400, 100_000, 64), (200, 200, 40_000, 64), (300, 60, 30_000, 4)],
    ids=["one call", "long results", "several folds", "with a surplus"],
)
def test_what_is_foreseen_is_what_is_asked(seed, turns, longest, window, most):
    entries = story(seed, turns, longest=longest).entries
    model, policy = Long(window), Policy(max_summary_calls=most, coverage_blocking=False, profile=Profile.CODING)
    made = attempt(entries, policy=policy, summariser=model, window=1_000_000)
    assert made.commit.tried
    assert not [one.refused for one in made.commit.tried if one.refused]
    shapes = [shape_of(entry) for entry in entries]
    signal = sum(shape.tokens for shape in shapes)
    planned = plan.make(
        shapes, previous=None, policy=policy, window=1_000_000, summariser_window=window, signal_tokens=signal, manual=True, force=False
    )
    assert isinstance(planned, Plan)
    found = calls.material((shape for shape in shapes if shape.index in planned.span), planned.chunks)
    asked = SummaryRequest(profile=policy.profile, max_tokens=planned.summary_tokens)
    foreseen = calls.foresee(found, asked, window=window)
    assert foreseen.count == len(model.requests)
    assert found.surplus == sum(chunk.is_surplus for chunk in planned.chunks)
    told = [warning for warning in made.commit.warnings if "without a model" in warning]
    assert bool(told) == bool(found.surplus)
    sent = sum(prompts.sent_tokens(request) for request in model.requests)
    assert foreseen.read == pytest.approx(sent, rel=0.15)


def test_nothing_is_foreseen_of_the_oldest_part_that_no_call_is_left_for():
    entries = story(1, 300, longest=60).entries
    shapes = [shape_of(entry) for entry in entries]
    few, many = (
        plan.make(
            shapes, previous=None, policy=Policy(max_summary_calls=most), window=1_000_000, summariser_window=30_000,
            signal_tokens=sum(shape.tokens for shape in shapes), manual=True, force=False,
        )
        for most in (3, 64)
    )  # fmt: skip
    asked = SummaryRequest()
    costs = [
        calls.foresee(calls.material((s for s in shapes if s.index in made.span), made.chunks), asked, window=30_000)
        for made in (few, many)
    ]
    assert (costs[0].count, costs[0].read < costs[1].read / 3) == (3, True)


def test_an_attempt_says_how_much_it_summarised_without_a_model_for_want_of_calls():
    made = attempt(story(1, 300, longest=60).entries, policy=Policy(max_summary_calls=4), summariser=Long(30_000), window=1_000_000)
    assert made.commit.summary_source is SummarySource.MIXED
    count = sum(isinstance(step, ChunkSummarised) for step in made.steps)
    words = f"The oldest 2 parts were summarised without a model, of {count} in all: the policy allows no more calls (max_summary_calls)."
    assert words in made.commit.warnings
