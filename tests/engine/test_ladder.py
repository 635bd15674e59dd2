"""The ladder: clear, summarise, trim. Each rung says what it saved, and nothing that a rung did is lost to the next."""

import pytest

from sessions_app.engine.entries import Checkpoint, Usage
from sessions_app.engine.extractive import ExtractiveSummariser
from sessions_app.engine.fates import fate_of
from sessions_app.engine.policy import Policy
from sessions_app.engine.shapes import shape_of
from sessions_app.engine.steps import Commit, Ended, SummariserFailed, SummaryAnswer
from sessions_app.engine.terms import Fate, Lineage, Outcome, Rung, SkipReason, SummarySource, Trigger
from sessions_app.engine.view import build, problems
from tests.engine.attempts import FILLER, Canned, attempt, checkpoint_of, long_story
from tests.engine.histories import Story

GOOD = SummaryAnswer(text="## Primary request and intent\nBuild it.", source=SummarySource.LLM, model="m-1", usage=Usage(input=9, output=3))
EMPTY = SummaryAnswer(text="  ", source=SummarySource.LLM)
CUT_OFF = SummaryAnswer(text="## Primary request and intent\nBuild", source=SummarySource.LLM, truncated=True)


def heavy(turns: int = 6) -> Story:
    """A history that is full of large results."""
    story = Story().system("You are an agent.")
    for turn in range(turns):
        story.user(f"Request {turn}.").calls(f"c{turn}").result(f"c{turn}", words=FILLER * 120).says(f"Done {turn}. {FILLER * 12}")
    return story


def rungs(result: Commit | Ended) -> list[Rung]:
    return [report.rung for report in result.rungs]


def test_an_automatic_attempt_only_clears_where_that_is_enough():
    story = heavy()
    result = attempt(story.entries, manual=False, window=16_000).commit
    assert (result.outcome, result.summary_source, rungs(result)) == (Outcome.COMMITTED, SummarySource.SKIPPED, [Rung.CLEAR])
    assert result.tokens_after < result.tokens_before
    assert result.cleared
    assert result.block == ""
    messages = build(story.entries, checkpoint(result))
    assert problems(messages) == []
    assert [fate_of(shape_of(entry), [checkpoint(result)]).fate for entry in story.entries].count(Fate.CLEARED) == len(result.cleared)


def test_what_was_cleared_stays_cleared_behind_the_next_boundary_only():
    story = heavy(8)
    first = attempt(story.entries, manual=False, window=24_000).commit
    assert first.cleared
    second = attempt(story.entries, chain=[checkpoint(first)], boundary=story.entries[-8].index, force=True).commit
    assert second.cleared == tuple(index for index in first.cleared if index >= second.boundary_index)
    assert second.tokens_before == first.tokens_after


def test_a_person_who_asks_gets_a_summary_and_no_cleared_results():
    result = attempt(heavy().entries).commit
    assert rungs(result) == [Rung.SUMMARISE]
    assert result.cleared == ()


def test_clearing_may_be_switched_off():
    result = attempt(heavy().entries, manual=False, window=16_000, policy=Policy(clear_results=False)).result
    assert Rung.CLEAR not in rungs(result)


def test_the_next_summariser_takes_over_and_the_attempt_tells_of_both():
    failing = Canned(SummariserFailed("the provider is overloaded"), EMPTY)
    result = attempt(long_story().entries, summariser=failing, fallbacks=[ExtractiveSummariser()]).commit
    assert (result.summary_source, result.summariser) == (SummarySource.EXTRACTIVE, "extractive")
    assert [tried.summariser for tried in result.tried if tried.refused] == ["canned", "canned"]
    assert "overloaded" in result.tried[0].refused


def test_usage_and_model_of_every_call_are_kept():
    (tried,) = attempt(long_story().entries, summariser=Canned(GOOD)).commit.tried
    assert (tried.model, tried.usage, tried.refused) == ("m-1", Usage(input=9, output=3), "")


@pytest.mark.parametrize(
    ("answers", "outcome"),
    [
        ([EMPTY, EMPTY], Outcome.REJECTED_EMPTY),
        ([CUT_OFF, CUT_OFF], Outcome.REJECTED_TRUNCATED),
        ([SummariserFailed("no key"), RuntimeError("?")], Outcome.FAILED),
    ],
)
def test_a_chain_without_a_usable_answer_ends_by_its_last_refusal_and_changes_nothing(answers, outcome):
    result = attempt(long_story().entries, summariser=Canned(*answers), policy=Policy(allow_fallback=False)).result
    assert isinstance(result, Ended)
    assert result.outcome is outcome
    assert "Nothing was changed." in result.explanation
    assert len(result.tried) == 2


def test_a_full_view_is_trimmed_where_no_summary_comes_about():
    story = long_story(turns=40)
    result = attempt(story.entries, manual=False, summariser=Canned(EMPTY, EMPTY), signal_tokens=190_000).commit
    assert (result.outcome, result.summary_source) == (Outcome.TRIMMED, SummarySource.TRIM)
    assert rungs(result)[-2:] == [Rung.SUMMARISE, Rung.TRIM]
    assert "No summary was made" in result.block
    assert "## How to go on" in result.block


def test_a_view_with_room_left_is_not_trimmed():
    result = attempt(long_story().entries, summariser=Canned(EMPTY, EMPTY)).result
    assert isinstance(result, Ended)
    assert result.outcome is Outcome.REJECTED_EMPTY


def test_an_overflow_never_calls_a_model():
    """Invariant 11."""
    asked = Canned()
    result = attempt(long_story(turns=40).entries, manual=False, trigger=Trigger.OVERFLOW, summariser=asked, window=8_000).commit
    assert asked.requests == []
    assert result.outcome in (Outcome.TRIMMED, Outcome.COMMITTED)
    assert Rung.SUMMARISE not in rungs(result)


def test_repeated_trims_say_so_once_and_keep_the_last_summary():
    story = long_story(turns=30)
    first = attempt(story.entries, summariser=Canned(GOOD)).commit
    summary, chain = first.summary, [checkpoint_of(first, 1)]
    for generation in range(2, 5):
        for turn in range(12):
            story.user(f"More {generation}.{turn} {FILLER}").says(f"Yes. {FILLER}")
        made = attempt(
            story.entries, chain=chain, previous_summary=summary, manual=False, trigger=Trigger.OVERFLOW, window=6_000,
            policy=Policy(clear_results=False),
        ).commit  # fmt: skip
        assert made.outcome is Outcome.TRIMMED
        assert made.summary.count("No summary was made") == 1
        assert "Build it." in made.summary
        chain.append(checkpoint_of(made, generation))
        summary = made.summary


def test_more_chunks_than_calls_are_left_for_are_summarised_without_a_model():
    story = long_story(turns=60)
    answers = [GOOD] * 20
    asked = Canned(*answers)
    asked.window = 8_000
    result = attempt(story.entries, summariser=asked, policy=Policy(max_summary_calls=4), fallbacks=[ExtractiveSummariser()]).commit
    assert len(asked.requests) <= 4
    assert result.summary_source is SummarySource.MIXED


def test_nothing_to_fold_is_a_clean_skip():
    result = attempt(Story().user().says().entries).result
    assert isinstance(result, Ended)
    assert result.reason is SkipReason.FEWER_THAN_THREE_ROUNDS


def checkpoint(commit: Commit) -> Checkpoint:
    return Checkpoint(
        generation=1,
        lineage=Lineage.CONSOLE,
        segments=commit.segments,
        boundary_index=commit.boundary_index,
        cleared=frozenset(commit.cleared),
    )
