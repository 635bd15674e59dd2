"""The rollouts of our own making under `tests/data/codex`: a session with all that a rollout may hold, and a fork of it."""

from pathlib import Path

import pytest

from sessions_app.engine.messages import sent_parts
from sessions_app.engine.terms import Kind
from sessions_app.engine.view import problems as problems_of_view
from tests.readers.codex_rollouts import agent_view, problems, read_bytes

DATA = Path(__file__).resolve().parents[1] / "data" / "codex"
SESSION, FORK = sorted(DATA.glob("*.jsonl"))


def reading_of(path):
    return read_bytes(path.read_bytes(), str(path))


@pytest.mark.parametrize("path", [SESSION, FORK], ids=["session", "fork"])
def test_what_is_sent_next_is_the_replacement_and_what_came_after_it(path):
    view = agent_view(*reading_of(path))
    begun = [part.text.strip()[:20] for message in view for part in sent_parts(message)]
    assert begun[:11] == [
        "You are a coding age",
        "Why is the total one",
        "<permissions instruc",
        "# AGENTS.md instruct",
        "<environment_context",
        "Another language mod",
        "Fix it",
        '{"input":"*** Begin ',
        "Exit code: 0\nWall ti",
        '{"cmd": "pytest -q"}',
        "Chunk ID: 9f8e7d\nWal",
    ]
    assert begun[11:] == ["One test still fails", *(["Change the test inst", "Done."] if path == FORK else [])]
    assert problems_of_view(view) == []


def test_the_session_is_read_as_it_was_written():
    reading, records = reading_of(SESSION)
    found = [record.entry for record in records if record.entry is not None]
    usages = [entry.usage for entry in found if entry.usage]
    (checkpoint,) = reading.checkpoints()
    assert (sum(usage.prompt for usage in usages), sum(usage.cache_read for usage in usages)) == (10_300, 6_900)
    assert (checkpoint.trigger.value, checkpoint.tokens_before, checkpoint.tokens_after) == ("manual", 2_260, 900)
    assert [found[place].parts[0].text for place in reading.off_branch()[""]] == ["Forget that. What is the date?", "30 November 2026."]
    assert sum(entry.kind is Kind.COMPACTED for entry in found) == 1
    assert problems(reading) == {}


def test_the_fork_pays_only_for_its_own_turn():
    reading, records = reading_of(FORK)
    found = [record.entry for record in records if record.entry is not None]
    own = [entry for entry in found if "inherited_from" not in entry.annex]
    assert [entry.parts[0].text for entry in own] == ["You are a coding agent.", "Change the test instead", "Done."]
    assert [entry.usage.prompt for entry in found if entry.usage] == [1_500]
    assert problems(reading) == {"foreign_session": 1}
