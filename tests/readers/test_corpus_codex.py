"""Real and recorded rollouts of other people, which lie beside the checkout: skipped where they are not."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from sessions_app.engine.messages import sent_parts
from sessions_app.engine.terms import PartKind
from sessions_app.engine.view import ViewMessage
from sessions_app.readers.claude_code import ClaudeCodeReader
from sessions_app.readers.codex import CodexReader, CodexReading
from sessions_app.readers.detect import HEAD_BYTES
from tests.readers.codex_rollouts import agent_view, problems, read_bytes

SHARED = Path(__file__).resolve().parents[3] / "shared" / "corpus"
REAL, GENERATED = SHARED / "codex", SHARED / "generated" / "codex"
GOLDEN = (GENERATED / "golden", GENERATED / "golden" / "variant-long-prompts")
ROLLOUTS = sorted(
    [
        *(path for path in REAL.glob("*.jsonl") if "codex_sdk" not in path.name),  # that one is another tool's stream of events
        *GENERATED.glob("rollout-*.jsonl"),
        *(path for folder in GOLDEN for path in folder.glob("session-*.jsonl")),
    ],
)

pytestmark = pytest.mark.skipif(not ROLLOUTS, reason=f"the recordings are not there ({SHARED})")

Block = tuple[str, str, object, str]
"""(role, kind, text or arguments, call id); what stands elided in a recording is an empty text."""


def sent(view: Iterable[ViewMessage]) -> Iterator[Block]:
    for message in view:
        for part in sent_parts(message):
            body: object = json.loads(part.text) if part.kind is PartKind.CALL else _said(part.text)
            yield message.role.value, part.kind.value, body, part.call_id


def requested(items: list[dict], ours: list[Block]) -> Iterator[Block]:
    """The blocks of a recorded request. A developer's message is the system's or the user's in a view, so it takes our role."""
    for item in items:
        if item["type"] == "function_call":
            yield "assistant", "call", json.loads(item["arguments"]), item["call_id"]
        elif item["type"] == "function_call_output":
            yield "user", "result", _said(item["output"]), item["call_id"]
        else:
            assert item["type"] == "message"
            yield from ((item["role"], "text", _said(part["text"]), "") for part in item["content"])


def _said(text: str) -> str:
    return "" if "elided" in text else text.strip()


def golden_cuts(folder: Path) -> dict[str, int]:
    """Name of a golden pair → the line of the session file that is the last one in its request."""
    found = re.finditer(r"## request-(\S+)\.json.*?last record in the request: line (\d+)", (folder / "README.md").read_text(), re.DOTALL)
    return {match[1]: int(match[2]) for match in found}


@pytest.mark.parametrize("name", ["1-before", "2-after-c1", "3-after-c2"])
@pytest.mark.parametrize("folder", GOLDEN, ids=lambda folder: folder.name)
def test_the_agents_view_is_block_for_block_what_the_agent_sent(folder, name):
    lines = (folder / f"session-{name}.jsonl").read_bytes().splitlines(keepends=True)
    ours = list(sent(agent_view(*read_bytes(b"".join(lines[: golden_cuts(folder)[name]])))))
    body = json.loads((folder / f"request-{name}.json").read_text())
    theirs = list(requested(body.get("body", body)["input"], ours))
    assert [block[1:] for block in ours] == [block[1:] for block in theirs]
    roles = {(mine[0], their[0]) for mine, their in zip(ours, theirs, strict=True)}
    assert roles <= {("user", "user"), ("assistant", "assistant"), ("system", "developer"), ("user", "developer")}


@pytest.mark.parametrize("path", ROLLOUTS, ids=lambda path: path.name[:60])
def test_every_byte_of_every_file_is_kept_in_its_records(path):
    reading, records = read_bytes(path.read_bytes(), path.name)
    assert b"".join(record.raw for record in records) == path.read_bytes()
    assert reading.report().entries == sum(record.entry is not None for record in records)


def last_total(path: Path) -> tuple[int, int, int]:
    """(prompt, of it cached, output) tokens, as the last count of a file has them: told by jq and Python apart from the reader."""
    counts = [json.loads(line)["payload"]["info"] for line in path.read_bytes().splitlines() if b'"type":"token_count"' in line]
    total = [info["total_token_usage"] for info in counts if info][-1]
    return total["input_tokens"], total["cached_input_tokens"], total["output_tokens"]


@pytest.mark.parametrize(
    "path", [path for path in ROLLOUTS if "daaain" not in path.name and "small" not in path.name], ids=lambda path: path.name[:60]
)
def test_the_costs_of_all_entries_add_up_to_the_total_of_the_file(path):
    _, records = read_bytes(path.read_bytes(), path.name)
    usages = [record.entry.usage for record in records if record.entry is not None and record.entry.usage]
    assert (sum(u.prompt for u in usages), sum(u.cache_read for u in usages), sum(u.output for u in usages)) == last_total(path)


# Counted apart from the reader, with a few lines of Python over the files.
FIELDS = ("records", "prompts", "answers", "calls", "results", "errors", "thinking", "checkpoints", "problems")
COUNTED = {
    "EntityProcess__agentv__796eaddfe2f9-0-full.jsonl": (2_302, 9, 266, 531, 531, 31, 0, 3, {}),
    "jnarowski__agentcmd__rollout-2025-09-24T19-22-20-01997e76-d124-7592-9cac-2ec05abbca08.jsonl": (823, 13, 9, 123, 123, 12, 125, 0, {}),
    "jazzyalex__agent-sessions__small.jsonl": (118, 3, 1, 6, 6, 0, 2, 6, {"foreign_session": 6, "orphan_result": 1}),
    "daaain__claude-code-log__rollout-66666666-6666-4666-8666-666666666666.jsonl": (3, 1, 0, 0, 0, 0, 0, 0, {"unreadable": 1}),
    "rollout-final.jsonl": (377, 24, 33, 15, 15, 4, 0, 6, {}),
    "rollout-two-writers.jsonl": (103, 6, 9, 3, 3, 1, 0, 2, {}),
}


@pytest.mark.parametrize("path", [path for path in ROLLOUTS if path.name in COUNTED], ids=lambda path: path.name[:60])
def test_what_is_read_is_what_was_counted_by_hand(path):
    reading, records = read_bytes(path.read_bytes(), path.name)
    kinds = Counter(f"{record.entry.role}/{record.entry.kind}" for record in records if record.entry is not None)
    counted = (
        len(records),
        kinds["user/message"],
        kinds["assistant/message"],
        kinds["assistant/call"],
        kinds["tool/result"],
        sum(part.is_error for record in records if record.entry is not None for part in record.entry.parts),
        kinds["assistant/thinking"],
        len(reading.checkpoints()),
        problems(reading),
    )
    assert dict(zip(FIELDS, counted, strict=True)) == dict(zip(FIELDS, COUNTED[path.name], strict=True))


def triggers(reading: CodexReading) -> list[str]:
    return [checkpoint.trigger.value for checkpoint in reading.checkpoints()]


def test_one_compaction_of_the_recording_came_by_itself_and_five_were_asked_for():
    reading, _ = read_bytes((GENERATED / "rollout-final.jsonl").read_bytes())
    assert triggers(reading) == ["threshold", *["manual"] * 5]


def test_the_summaries_that_a_provider_keeps_to_itself_are_said_to_be_unreadable():
    reading, _ = read_bytes((REAL / "EntityProcess__agentv__796eaddfe2f9-0-full.jsonl").read_bytes())
    assert [checkpoint.detail["summary_readable"] for checkpoint in reading.checkpoints()] == [False] * 3
    first = reading.checkpoints()[0]
    assert (first.tokens_before, first.tokens_after) == (237_823, 23_278)


def test_no_file_of_another_format_is_taken_for_a_rollout_and_no_rollout_for_another():
    files = [path for path in SHARED.rglob("*") if path.is_file()]
    heads = {path: path.read_bytes()[:HEAD_BYTES] for path in files}
    assert sorted(path for path, head in heads.items() if CodexReader().sniff(head)) == ROLLOUTS
    assert [path for path in ROLLOUTS if ClaudeCodeReader().sniff(heads[path])] == []
