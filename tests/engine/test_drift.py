"""Ten generations on: what was said, done and left open at the start is still told, and told as what it is."""

import json
import re

import pytest

from sessions_app.engine import retention, summary
from sessions_app.engine.entries import Checkpoint, Part
from sessions_app.engine.facts import FactClass, Facts
from sessions_app.engine.mechanical import facts_of
from sessions_app.engine.steps import Commit
from sessions_app.engine.summary import Section
from sessions_app.engine.terms import Kind, PartKind, Role
from sessions_app.engine.view import build
from tests.engine.attempts import FILLER, attempt, checkpoint_of
from tests.engine.fact_examples import call, todos
from tests.engine.histories import Story, text

GENERATIONS = 10
RULES = "Standing rules of the project:\n1. Never   push to main.\n2. Run `make check` before a commit.\n\té — keep tabs.\n"
PLAN = [("Read the ledger", "completed"), ("Hold the lock", "in_progress"), ("Write the migration", "pending")]


def begun() -> Story:
    """A first generation with facts of every kind, a job, a sub-agent and a plan."""
    story = Story()
    story.add(Role.SYSTEM, Kind.MESSAGE, text(RULES))
    story.user("The posting job loses parcels: make LockKeeper hold. You must never call the carrier twice. See OPS-2231.")
    call("Bash", command="cd /w/parcels && git checkout -b hold-the-lock", result="Switched to a new branch 'hold-the-lock'")(story)
    call("Read", file_path="/w/parcels/app/ledger.py", result=FILLER)(story)
    call("Bash", command="pytest -q tests/test_ledger.py", result="Exit code 1\nValueError: the lock is held", is_error=True)(story)
    story.says("The root cause is that `ledger.py` opens the file twice, so the lock of 429 ms is never seen. " + FILLER)
    call("Edit", file_path="/w/parcels/app/ledger.py", result="done")(story)
    call("WebFetch", url="https://docs.test/guide/locks", result=FILLER)(story)
    todos(*PLAN)(story)
    call("Bash", command="make watch", run_in_background=True, result="Command running in background with ID: job7")(story)
    story.says(f"The lock holds now, because the file is opened once. {FILLER}")
    return story


def goes_on(story: Story, generation: int) -> None:
    for turn in range(4):
        name = f"g{generation}t{turn}"
        story.user(f"Now look at part {name}. {FILLER * 5}")
        call("Bash", command=f"pytest -q tests/test_{name}.py", result=FILLER * 10)(story)
        story.says(f"Part {name} is sound, because its reader is closed first. {FILLER * 5}")


@pytest.fixture(scope="module")
def generations() -> tuple[Facts, Story, list[Commit]]:
    story = begun()
    first = facts_of(story.entries)
    chain: list[Checkpoint] = []
    commits: list[Commit] = []
    for generation in range(1, GENERATIONS + 1):
        goes_on(story, generation)
        commit = attempt(story.entries, chain=chain, previous_summary=commits[-1].summary if commits else "", force=True).commit
        chain.append(checkpoint_of(commit, generation))
        commits.append(commit)
    return first, story, commits


def test_every_fact_of_the_first_generation_is_in_every_later_view(generations):
    first, story, commits = generations
    assert len(first.found) >= 12
    for commit in commits:
        tail = [part.text for entry in story.entries[commit.boundary_index :] for part in entry.parts]
        report = retention.report(first, summary=commit.summary, block=commit.block, tail_texts=tail)
        lost = [found.fact for found in report.facts if found.place is None]
        # Old commands are the one list that a budget cuts from its oldest; each of them is still counted in the block.
        assert [fact for fact in lost if fact.kind is not FactClass.COMMAND] == []


def test_standing_rules_are_the_same_bytes_after_every_compaction(generations):
    _, story, commits = generations
    for generation, commit in enumerate(commits, 1):
        view = build(iter(story.entries), checkpoint_of(commit, generation))
        assert view[0].parts[0].part.text == RULES


def test_the_plan_keeps_its_states_and_what_is_done_is_never_next(generations):
    for commit in generations[2]:
        told = summary.parse(commit.summary).bodies
        assert "- [in progress] Hold the lock" in told[Section.PENDING]
        assert "- [pending] Write the migration" in told[Section.PENDING]
        assert "Read the ledger" not in told[Section.PENDING] + told[Section.NEXT]
        assert "Hold the lock" in told[Section.NEXT]


def test_the_last_answered_request_is_marked_answered(generations):
    for commit in generations[2]:
        listed = re.findall(r"^- #(\d+) \((\w+)", commit.block.split("## What the user said", 1)[1], re.MULTILINE)
        *earlier, (last, status) = listed
        assert {word for _, word in earlier} == {"answered"}
        told = summary.parse(commit.summary).bodies
        assert ("still open" in told[Section.INTENT]) is (status == "open")
        assert [int(index) for index in re.findall(r"Answer the user's request #(\d+)", told[Section.NEXT])] == (
            [int(last)] if status == "open" else []
        )


def test_where_the_work_is_and_what_still_runs_stay_told(generations):
    for commit in generations[2]:
        assert "Working directory: `/w/parcels`. Branch: `hold-the-lock`." in commit.block
        assert "make watch" in summary.parse(commit.summary).bodies[Section.PENDING]
        assert "job7" in commit.block
        for name in ("OPS-2231", "LockKeeper", "https://docs.test/guide/locks"):
            assert name in commit.block


def test_a_sub_agent_without_a_report_is_listed_as_running():
    story = begun()
    goes_on(story, 1)
    story.user(f"Ask somebody else about the carrier. {FILLER * 5}")
    arguments = json.dumps({"description": "Look into the carrier", "prompt": "…"})
    story.add(Role.ASSISTANT, Kind.CALL, Part(kind=PartKind.CALL, name="Task", text=arguments, call_id="agent1"))
    commit = attempt(story.entries, force=True).commit
    view = build(iter(story.entries), checkpoint_of(commit, 1))
    assert "Look into the carrier" in commit.block + "".join(part.part.text for message in view for part in message.parts)


def test_nothing_that_a_summary_says_is_made_up_in_any_generation(generations):
    assert [commit.unsupported for commit in generations[2]] == [()] * GENERATIONS
