"""Real and recorded files of other people, which lie beside the checkout: skipped where they are not."""

import io
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from sessions_app.engine.messages import sent_parts
from sessions_app.engine.terms import Lineage, PartKind
from sessions_app.models import Session
from sessions_app.readers.claude_code import ClaudeCodeReader, ClaudeCodeReading
from sessions_app.selectors.plans import load_entries, load_view
from sessions_app.selectors.raw_page import source_bytes
from tests.services.import_scenes import take

SHARED = Path(__file__).resolve().parents[3] / "shared" / "corpus"
REAL, GENERATED = SHARED / "claude-code", SHARED / "generated" / "claude-code"
GOLDEN = GENERATED / "golden"
FILES = sorted([*REAL.glob("*.jsonl"), *GENERATED.glob("transcript-*.jsonl"), *GOLDEN.glob("session-*.jsonl")])

pytestmark = pytest.mark.skipif(not FILES, reason=f"the recordings are not there ({SHARED})")

Block = tuple[str, str, object, str]
"""(role, kind, text or arguments, call id)"""


def read(path: Path) -> ClaudeCodeReading:
    reading = ClaudeCodeReader().read(io.BytesIO(path.read_bytes()), path=path.name)
    for _ in reading:
        pass
    return reading


def by_message(session: Session) -> Iterator[tuple[str, list[Block | None]]]:
    """The agent's view: (role, blocks) of each message, white space at the ends of texts aside."""
    for message in load_view(session, Lineage.AGENT):
        blocks: list[Block | None] = []
        for part in sent_parts(message):
            body: object = json.loads(part.text) if part.kind is PartKind.CALL else part.text.strip()
            blocks.append((message.role.value, part.kind.value, body, part.call_id))
        yield message.role.value, blocks


def sent(session: Session) -> list[Block | None]:
    """The blocks of the agent's view in order."""
    return [block for _, blocks in by_message(session) for block in blocks]


def requested(messages: list[dict[str, object]]) -> list[Block]:
    """The blocks of a recorded request, in the same form."""
    return [block for message in messages for block in _blocks(str(message["role"]), message["content"])]


def _blocks(role: str, content: object) -> Iterator[Block]:
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:  # type: ignore[attr-defined]
        if block["type"] == "tool_use":
            yield role, "call", block["input"], block["id"]
        elif block["type"] == "tool_result":
            body = block["content"]
            text = body if isinstance(body, str) else "\n".join(item["text"] for item in body)
            yield role, "result", text.strip(), block["tool_use_id"]
        else:
            yield role, block["type"], str(block.get("text") or block.get("thinking")).strip(), ""


def golden_cuts() -> dict[str, int]:
    """Name of a golden pair → the line of the session file that is the last one in its request."""
    found = re.finditer(r"## request-(\S+)\.json.*?last record in the request: line (\d+)", (GOLDEN / "README.md").read_text(), re.DOTALL)
    return {match[1]: int(match[2]) for match in found}


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["1-before", "2-after-c1", "3-after-c2"])
def test_the_agents_view_is_block_for_block_what_the_agent_sent(tmp_path, name):
    lines = (GOLDEN / f"session-{name}.jsonl").read_bytes().splitlines(keepends=True)
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"".join(lines[: golden_cuts()[name]]))
    session = Session.objects.get(pk=take(path).session_id)
    body = json.loads((GOLDEN / f"request-{name}.json").read_text())
    assert sent(session) == requested(body.get("body", body)["messages"])


def merged(messages: Iterable[tuple[str, list[Block | None]]]) -> list[tuple[str, list[Block | None]]]:
    """Messages with those of one side joined: a recording may hold the first text of a message as one of its own."""
    found: list[tuple[str, list[Block | None]]] = []
    for role, blocks in messages:
        if found and found[-1][0] == role == "user":
            found[-1][1].extend(blocks)
        else:
            found.append((role, list(blocks)))
    return found


def differs(ours: Block | None, theirs: Block | None) -> bool:
    """Whether two blocks are unlike; texts that the recording has cut out on one side can't be compared."""
    if ours is None or theirs is None or "text elided" in f"{ours[2]}{theirs[2]}":
        return False
    return ours != theirs


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "requests"),
    [("transcript-after-auto", 7), ("transcript-final", 39), ("transcript-two-writers", 33), ("golden/session-3-after-c2", 22)],
)
def test_before_each_recorded_request_the_view_is_what_the_agent_sent(tmp_path, name, requests):
    """The rows name each request's messages; answers stand in rows of their own and are compared as calls and texts there."""
    rows = (GENERATED / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
    path, bodies, messages, compared = tmp_path / "session.jsonl", {}, [], 0
    for number, row in enumerate(map(json.loads, rows)):
        if row["type"] == "api-request-blob":
            bodies[row["hash"]] = row["message"]
        if row["type"] != "api-request":
            continue
        messages = messages[: row["keep"]] + [bodies.get(digest) for digest in row["tail"]]
        path.write_bytes(b"".join(rows[:number]))
        session = Session.objects.get(pk=take(path).session_id)
        wanted = merged((str(told["role"]), list(requested([told]))) if told else ("assistant", [None]) for told in messages)
        ours = merged(by_message(session))
        assert [role for role, _ in ours] == [role for role, _ in wanted], f"line {number + 1}"
        for (_, mine), (_, theirs) in zip(ours, wanted, strict=True):
            if theirs != [None]:
                assert len(mine) == len(theirs), f"line {number + 1}"
                assert [pair for pair in zip(mine, theirs, strict=True) if differs(*pair)] == [], f"line {number + 1}"
        compared += 1
    assert compared == requests


@pytest.mark.django_db
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name[:60])
def test_every_file_imports_and_comes_back_byte_for_byte(path):
    outcome = take(path)
    assert outcome.error == ""
    session = Session.objects.get(pk=outcome.session_id)
    assert b"".join(source_bytes(session.source_files.get())) == path.read_bytes()
    assert sum(1 for _ in load_entries(session.pk)) == session.entry_count


# Counted apart from the reader, with a few lines of Python and jq over the files.
FIELDS = ("records", "entries", "checkpoints", "calls", "errors", "messages", "output")
COUNTED = {
    "entireio__cli__cd95adddad32-0-full.jsonl": (893, 835, 3, 206, 12, 225, 70_618),
    "marot__spotter__258c7280-ae70-4798-800f-63464d01a85d.jsonl": (1_863, 496, 1, 186, 7, 152, 38_899),
    "entireio__cli__8cfa910f8ef9-5-full.jsonl": (221, 190, 0, 58, 2, 56, 157),
    "iansherr__claude-code-log__ef958aa1-0e93-49f0-bb71-150f63befcd1.jsonl": (180, 116, 0, 40, 0, 17, 22_901),
}


@pytest.mark.django_db
@pytest.mark.parametrize("name", COUNTED)
def test_what_is_stored_is_what_was_counted_by_hand(name):
    session = Session.objects.get(pk=take(REAL / name).session_id)
    usages = list(session.entries.filter(usage__isnull=False).values_list("usage", flat=True))
    counted = (
        session.source_files.get().record_count,
        session.entry_count,
        session.compaction_count,
        session.entries.filter(kind="call").count(),
        session.failure_count,
        len(usages),
        sum(usage.get("output", 0) for usage in usages),
    )
    assert dict(zip(FIELDS, counted, strict=True)) == dict(zip(FIELDS, COUNTED[name], strict=True))


def test_the_old_layout_keeps_its_405_side_chain_rows_apart_in_five_chains():
    reading = read(REAL / "d-kimuson__claude-code-viewer__fe5e1c67-53e7-4862-81ae-d0e013e3270b.jsonl")
    assert (reading.report().entries, reading.report().side_chain_entries) == (437, 405)
    assert len({child.call_id for child in reading.child_sessions()} - {""}) == 5
    assert reading.off_branch() == {}


@pytest.mark.django_db
def test_a_growing_file_is_one_session_in_three_steps_of_one_version():
    steps = [take(path) for path in sorted(REAL.glob("*growing-*"))]
    assert [(step.state.value, step.entries) for step in steps] == [("new", 32), ("grown", 38), ("grown", 52)]
    assert len({step.session_id for step in steps}) == 1
    assert Session.objects.get().source_files.get().version == 1


@pytest.mark.django_db
@pytest.mark.parametrize("backwards", [False, True])
def test_flattened_sub_agent_files_find_their_session_in_either_order(backwards):
    files = sorted(REAL.glob("*ef958aa1*"), reverse=backwards)
    for path in files:
        take(path)
    main = Session.objects.get(source_key="claude-code:ef958aa1-0e93-49f0-bb71-150f63befcd1")
    children = Session.objects.filter(parent=main)
    assert (children.count(), children.exclude(parent_call_id="").count()) == (3, 3)


def test_two_processes_on_one_session_leave_one_abandoned_turn_and_fourteen_compactions():
    reading = read(GENERATED / "transcript-two-writers.jsonl")
    assert (len(reading.checkpoints()), {lane: len(rows) for lane, rows in reading.off_branch().items()}) == (14, {"": 4})
