"""Sub-agents' own files: where they lie, how deep they go, and the small files beside them."""

import json
from pathlib import Path

import pytest

from sessions_app.models import Session
from sessions_app.services import imports
from tests.importing import ACTOR
from tests.readers.rows import SESSION, answer, call, encode, prompt, result
from tests.services.import_scenes import the_session

pytestmark = pytest.mark.django_db


def agent(folder: Path, name: str, *rows, beside: object = None) -> None:
    """A sub-agent's file, with what is told beside it."""
    common = {"isSidechain": True, "agentId": name}
    folder.mkdir(parents=True, exist_ok=True)
    told = rows or (prompt("k1", None, f"Ask {name}"), answer("k2", "k1", "There"))
    (folder / f"agent-{name}.jsonl").write_bytes(encode([{**row, **common} for row in told]))
    if beside is not None:
        (folder / f"agent-{name}.meta.json").write_bytes(beside if isinstance(beside, bytes) else json.dumps(beside).encode())


def child(name: str) -> Session:
    return the_session(f"claude-code:{SESSION}/agent-{name}")


@pytest.fixture
def folder(tmp_path) -> Path:
    """The project's folder, with a session that started a sub-agent which has not answered."""
    steps = [prompt("u", None), answer("a", "u", call("task", "Task", prompt="Ask one"))]
    (tmp_path / f"{SESSION}.jsonl").write_bytes(encode(steps))
    return tmp_path


def test_sub_agents_of_any_place_and_depth_hang_where_they_were_started(folder):
    below = folder / SESSION / "subagents"
    deeper = [prompt("k1", None, "Ask one"), answer("k2", "k1", call("second", "Task", prompt="Ask two"))]
    deepest = [prompt("k1", None, "Ask two"), answer("k2", "k1", call("third", "Task", prompt="Ask three"))]
    agent(below, "one", *deeper, beside={"agentType": "Explore", "toolUseId": "task", "spawnDepth": 1})
    agent(below, "two", *deepest, result("k3", "k2", "third", toolUseResult={"agentId": "three"}), beside={"toolUseId": "second"})
    agent(below / "workflows" / "run1", "three")
    (below / "workflows" / "run1" / "journal.jsonl").write_bytes(encode([{"type": "step", "id": 1}]))
    run = imports.import_paths(actor=ACTOR, paths=[folder])
    assert (run.state, run.counts["sources"]) == ("completed", 4)
    tied = {name: (child(name).parent, child(name).parent_call_id, child(name).relation) for name in ("one", "two", "three")}
    assert tied == {
        "one": (the_session(), "task", "sub_agent"),
        "two": (child("one"), "second", "sub_agent"),
        "three": (child("two"), "third", "sub_agent"),
    }
    assert list(Session.objects.listed()) == [the_session()]


@pytest.mark.parametrize(
    "beside",
    [None, b"", b"{", b"[]", b"\xff\xfe", {"toolUseId": 7}, {"toolUseId": "unknown"}, {"toolUseId": ""}, {"toolUseId": "x" * 100_000}],
)
def test_what_is_told_beside_a_sub_agent_may_be_missing_or_wrong(folder, beside):
    agent(folder / SESSION / "subagents", "one", beside=beside)
    assert imports.import_paths(actor=ACTOR, paths=[folder]).state == "completed"
    assert (child("one").parent, child("one").parent_call_id) == (the_session(), "")


def test_what_is_told_beside_a_sub_agent_may_be_no_file(folder):
    below = folder / SESSION / "subagents"
    agent(below, "one")
    (below / "agent-one.meta.json").symlink_to("/dev/zero")
    assert imports.import_paths(actor=ACTOR, paths=[folder]).state == "completed"
