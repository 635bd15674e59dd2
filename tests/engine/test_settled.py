"""What is done is not called for again, whoever writes the summary: the record of code is set against it (C03, C04, C06)."""

import pytest

from sessions_app.engine import summary
from sessions_app.engine.extractors.base import Todo, TodoStatus
from sessions_app.engine.mechanical import collect
from sessions_app.engine.settled import settle
from sessions_app.engine.state import CommandRecord, MechanicalState, Mention, UserMessage
from sessions_app.engine.summary import Section
from tests.engine.attempts import FILLER, Canned, answer, attempt
from tests.engine.fact_examples import todos
from tests.engine.histories import Story


def record(*done: str, still_open: tuple[str, ...] = (), **more) -> MechanicalState:
    mentions = tuple(Mention(text, 10 + place) for place, text in enumerate(done))
    return MechanicalState(done=mentions, todos=tuple(Todo(text, TodoStatus.PENDING) for text in still_open), **more)


def told(pending: str, next_step: str = "Go on.") -> str:
    return f"## Primary request and intent\nMove it.\n\n## Pending tasks\n{pending}\n\n## Current work\nTests.\n\n## Next step\n{next_step}"


def bodies(text: str) -> dict[Section, str]:
    return summary.parse(text).bodies


@pytest.mark.parametrize(
    "step",
    [
        "- Write the migration",
        "- [ ] Write the migration.",
        "2. **Write the migration**",
        "* write the `migration` (pending)",
    ],
)
def test_a_completed_step_is_taken_out_of_what_is_open_and_said_to_be_done(step):
    found = settle(told(f"- Hold the lock\n{step}"), record("Write the migration"))
    assert bodies(found.text)[Section.PENDING] == "- Hold the lock"
    assert bodies(found.text)[Section.CURRENT] == ("Tests.\n\nRecorded as done, and not to be done again: “Write the migration” (#10).")
    assert found.done == (Mention("Write the migration", 10),)


def test_a_completed_step_is_never_the_next_one_and_what_code_knows_to_be_next_takes_its_place():
    state = record("Write the migration", still_open=("Hold the lock",))
    found = settle(told("Nothing.", "Write the migration."), state)
    assert bodies(found.text)[Section.NEXT] == "Go on with: Hold the lock."
    found = settle(told("Nothing.", "Write the migration. Then hold the lock."), state)
    assert bodies(found.text)[Section.NEXT] == "Then hold the lock."


@pytest.mark.parametrize(
    "step",
    [
        "- Write the migration of the parcels table back to the old store",  # another thing
        "- Hold the lock while the migration runs",
        "- Test the migration",
        "- Write the tests",
    ],
)
def test_another_step_that_shares_its_words_stays(step):
    text = told(step)
    assert settle(text, record("Write the migration")) == (text, ())


def test_a_step_that_is_open_again_stays():
    text = told("- Write the migration")
    assert settle(text, record("Write the migration", still_open=("Write the migration",))).text == text
    assert settle(text, record("Write the old migration", still_open=("Write the migration",))).text == text


def test_a_command_that_ran_and_a_request_that_was_answered_are_marked():
    asked = (
        UserMessage(3, "Deploy the parcel service to staging tonight.", 45, answered_index=9),
        UserMessage(12, "And now look at the logs of the carrier.", 40),
    )
    state = record(commands=(CommandRecord("cd /w && make deploy 2>&1 | tail -5", "ok", 7),), user_messages=asked)
    body = bodies(settle(told("None.", "Run `make deploy`, then answer #12."), state).text)[Section.NEXT]
    assert body == "Run `make deploy`, then answer #12.\n\nBy the record, `make deploy` last ran at #7 (ok)."
    for step in ("Deploy the parcel service to staging tonight.", "Meet request #3."):
        body = bodies(settle(told("None.", step), state).text)[Section.NEXT]
        assert body == f"{step}\n\nBy the record, the request #3 was answered at #9."


@pytest.mark.parametrize(
    "text",
    [
        "A summary without any sections, which calls for write the migration.",
        told("- Hold the lock", "Hold the lock."),
        "## Primary request and intent\nWrite the migration.",
        "",
    ],
)
def test_what_the_record_has_nothing_to_say_to_stays_byte_for_byte(text):
    assert settle(text, record("Write the migration")).text == text


def test_headings_of_another_writer_and_code_between_fences_stay_as_they_are():
    text = (
        "**1. Primary Request and Intent:**\nMove it.\n\n```\n## Pending tasks\n- Write the migration\n```\n\n"
        "**7. Pending Tasks:**\n- Write the migration\n- Hold the lock\n\n**9. Optional Next Step:**\nHold the lock."
    )
    found = settle(text, record("Write the migration")).text
    assert "```\n## Pending tasks\n- Write the migration\n```" in found
    assert "**7. Pending Tasks:**\n- Hold the lock\n" in found
    assert found.endswith("Recorded as done, and not to be done again: “Write the migration” (#10).")


def planned(*plans: list[tuple[str, str]]) -> Story:
    story = Story().user("Move the ledger to the new store.")
    for number, plan in enumerate(plans):
        todos(*plan)(story)
        story.says(f"So far, so good. {FILLER * 20}").user(f"Go on, part {number}. {FILLER * 10}")
    for turn in range(4):
        story.says(f"Part {turn}. {FILLER * 12}").user(f"More of part {turn}. {FILLER * 12}")
    return story.says(f"That is all. {FILLER * 5}")


def test_a_plan_that_another_one_replaced_stays_done():
    """The new list does not name the old steps; a model that reads the first pages still does."""
    story = planned([("Write the migration", "pending")], [("Write the migration", "completed")], [("Hold the lock", "in_progress")])
    assert [mention.text for mention in collect(story.entries).done] == ["Write the migration"]
    writer = Canned(answer(told("- Write the migration\n- Hold the lock", "Write the migration.")))
    made = attempt(story.entries, summariser=writer, force=True).commit
    assert "Write the migration" not in bodies(made.summary)[Section.PENDING] + bodies(made.summary)[Section.NEXT]
    assert any("recorded as done" in warning and "Write the migration" in warning for warning in made.warnings)
    assert "To-dos that are done:\n- Write the migration (#" in made.block


def test_a_step_that_was_taken_up_again_is_no_longer_done():
    story = planned([("Write the migration", "completed")], [("Write the migration", "in_progress")])
    assert collect(story.entries).done == ()
