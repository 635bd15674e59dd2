"""What a session is for is told beside every summary, in the same bytes, whatever the summaries say (C07)."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.engine import goal, prompts
from sessions_app.engine.mechanical import collect
from sessions_app.engine.policy import Policy
from tests.engine.attempts import FILLER, Canned, answer, attempt, checkpoint_of
from tests.engine.histories import Story, histories

FIRST = "Move the ledger to the new store.\n\n1. Keep every parcel's history.\n2.   Never call the carrier twice — see OPS-2231."
QUOTED = "> Move the ledger to the new store.\n>\n> 1. Keep every parcel's history.\n> 2.   Never call the carrier twice — see OPS-2231."
FORGETFUL = "## Primary request and intent\nLook at the last part.\n\n## Next step\nLook at the next one."


def goal_of(block: str) -> str:
    """The section of a block, without its heading."""
    return block.partition("\n## Goal\n")[2].partition("\n\n## State")[0]


def goes_on(story: Story, generation: int) -> None:
    for turn in range(4):
        story.user(f"Now look at part {generation}.{turn}. {FILLER * 6}")
        story.calls(f"c{generation}.{turn}").result(f"c{generation}.{turn}", words=FILLER * 12).says(f"That part is sound. {FILLER * 5}")


def test_ten_generations_on_it_is_the_same_bytes_although_no_summary_tells_it():
    story, chain, previous, told = Story().user(FIRST).says(f"I begin. {FILLER}"), [], "", []
    for generation in range(1, 11):
        goes_on(story, generation)
        made = attempt(
            story.entries, chain=chain, previous_summary=previous, summariser=Canned(answer(FORGETFUL)), force=True,
            policy=Policy(summary_max_tokens=400 if generation % 2 else 3_000),
        ).commit  # fmt: skip
        chain.append(checkpoint_of(made, generation))
        previous = made.summary
        told.append(goal_of(made.block))
        assert "ledger" not in made.summary
    assert set(told) == {f"As the user first put it; later requests may go beyond it (#0):\n{QUOTED}"}


def test_the_model_is_told_it_with_what_else_code_recorded():
    story = Story().user(FIRST).says("I begin.")
    goes_on(story, 1)
    chosen = Canned(answer(FORGETFUL))
    attempt(story.entries, summariser=chosen, force=True)
    asked = prompts.user_prompt(chosen.requests[-1])
    recorded = asked.partition("[recorded by a program")[2].partition("</material>")[0]
    assert QUOTED in recorded
    assert "The user's last message is #" in recorded


def found(*messages: str) -> goal.Goal | None:
    story = Story()
    for words in messages:
        story.user(words).says("Yes.")
    return goal.find(collect(story.entries).user_messages)


@pytest.mark.parametrize(
    ("messages", "text", "index"),
    [
        (["hi", "Move the ledger to the new store.", "Thanks, and now the tests."], "Move the ledger to the new store.", 2),
        (["Move the ledger.", "Our goal: no parcel is lost.\nNot one.\n\nBegin with tests."], "no parcel is lost.\nNot one.", 2),
        (["Goal: one.", "Something else entirely, please.", "**Goal:** two"], "two", 4),
        (["Look.\n目标：不丢包裹"], "不丢包裹", 0),
        (["The goalkeeper: who is it?", "And then?"], "The goalkeeper: who is it?", 0),
        (["Move it over there.", "<command-name>/goal</command-name><command-args>all tests pass</command-args>"], "all tests pass", 2),
        (
            [
                "Move the ledger over.",
                "<command-name>/goal</command-name><command-args>all tests pass</command-args>",
                "<command-name>/goal</command-name><command-args>clear</command-args>",
            ],
            "Move the ledger over.",
            0,
        ),
        (["<command-name>/compact</command-name>", "[Request interrupted by user]", "Move the ledger."], "Move the ledger.", 4),
    ],
)
def test_what_a_person_states_last_is_it_else_the_first_request_that_wants_something(messages, text, index):
    told = found(*messages)
    assert (told.text, told.index) == (text, index)


def test_without_a_request_there_is_none_and_a_long_one_is_cut_where_it_always_is():
    assert found() is None
    assert found("<command-name>/compact</command-name>") is None
    long = found(f"Move the ledger. {FILLER * 20}")
    assert (len(long.text), long.text[-1], long.is_stated) == (goal.MAX_CHARS, "…", False)


def test_where_its_message_stands_word_for_word_it_is_not_told_twice():
    story = Story().user(FIRST)
    for step in range(30):
        story.calls(f"c{step}").result(f"c{step}", words=FILLER * 3).says(f"Step {step}. {FILLER * 2}")
    made = attempt(story.entries, force=True).commit
    assert goal_of(made.block) == "As the user first put it; later requests may go beyond it: message #0, word for word below."


@given(entries=histories(), text=st.text(min_size=1, max_size=80))
def test_a_goal_that_is_set_comes_before_all_that_is_said(entries, text):
    state = msgspec.structs.replace(collect(entries), goal=text)
    assert goal.of(state) == goal.Goal(text, None, is_stated=True)
