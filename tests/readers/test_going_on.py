"""A source that is read in stretches, as it grows, tells the same as one that is read at once."""

import io
import random
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.demo import stories
from sessions_app.readers.base import ParsedEntry, Reader
from sessions_app.readers.claude_code import ClaudeCodeReader
from sessions_app.readers.codex import CodexReader
from tests.readers import codex_rollouts as codex
from tests.readers.rows import answer, boundary, call, encode, prompt, reminder, result, summary

SHARED = Path(__file__).resolve().parents[3] / "shared" / "corpus"
STORIES = [stories.session_store, stories.two_checkpoints, stories.rewound, stories.doubled_rows, stories.damaged_file]
NOW = datetime(2026, 11, 30, tzinfo=UTC)


def told(reader: Reader, data: bytes, cuts: list[int]) -> dict[str, object]:
    """All that a reading says, when its source is read in stretches that end at these lines."""
    lines = data.splitlines(keepends=True)
    stretches = [b"".join(lines[first:last]) for first, last in zip([0, *cuts], [*cuts, len(lines)], strict=True)]
    reading = reader.read(io.BytesIO(data), path="11111111-2222-4333-8444-555555555555.jsonl")
    places: list[tuple[int, int, str]] = []
    entries: dict[str, list[ParsedEntry]] = {}
    for number, stretch in enumerate(stretches):
        if number or len(stretches) > 1:
            reading.go_on(io.BytesIO(stretch))
        for record in reading:
            places.append((record.line, record.offset, record.kind))
            if record.entry is not None:
                entries.setdefault(record.entry.child_key, []).append(record.entry)
        if number < len(stretches) - 1:
            reading.off_branch(), reading.checkpoints(), reading.report(), reading.facts(), reading.child_sessions()
        reading.mark_written()
        for correction in reading.usage_corrections():
            entries[correction.child_key][correction.ordinal].usage = correction.usage
    return msgspec.to_builtins(
        {
            "places": places,
            "entries": entries,
            "off": {key: sorted(found) for key, found in reading.off_branch().items()},
            "checkpoints": reading.checkpoints(),
            "children": reading.child_sessions(),
            "facts": reading.facts(),
            "report": reading.report(),
        }
    )


def some_cuts(data: bytes, seed: int, count: int = 12) -> list[int]:
    whole = len(data.splitlines())
    return sorted(random.Random(seed).sample(range(1, whole), min(count, whole - 1)))


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_session_of_the_demo_in_stretches_is_the_session(story, seed):
    data = story().render(NOW)
    assert told(ClaudeCodeReader(), data, some_cuts(data, seed)) == told(ClaudeCodeReader(), data, [])


def test_line_by_line_is_the_same_as_well():
    data = stories.rewound().render(NOW)
    every = list(range(1, len(data.splitlines())))
    assert told(ClaudeCodeReader(), data, every) == told(ClaudeCodeReader(), data, [])


ROWS = ["prompt", "answer", "more", "result", "reminder", "branch", "orphan", "boundary"]


@settings(max_examples=150)
@given(st.lists(st.tuples(st.sampled_from(ROWS), st.integers(0, 30)), min_size=2, max_size=25), st.data())
def test_any_tree_of_rows_in_any_stretches_is_the_same(kinds, data):
    rows, uuids = [prompt("u0", None)], ["u0"]
    for number, (kind, choice) in enumerate(kinds, 1):
        uuid, last, any_row = f"r{number}", uuids[-1], uuids[choice % len(uuids)]
        match kind:
            case "prompt":
                rows.append(prompt(uuid, last))
            case "answer":
                rows.append(answer(uuid, last, call(f"c{number}")))
            case "more":
                rows.append(answer(uuid, last, "more", message=f"msg_r{max(1, number - 1)}", output=choice))
            case "result":
                rows.append(result(uuid, any_row, f"c{any_row[1:]}"))
            case "reminder":
                rows.append(reminder(uuid, any_row, "x"))
            case "branch":
                rows.append(prompt(uuid, any_row))
            case "orphan":
                rows.append(prompt(uuid, f"r{number + choice}"))
            case "boundary":
                rows.extend([boundary(uuid, any_row), summary(f"{uuid}s", uuid)])
                uuids.append(f"{uuid}s")
        uuids.append(uuid)
    encoded = encode(rows)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(rows) - 1), max_size=6)))
    assert told(ClaudeCodeReader(), encoded, cuts) == told(ClaudeCodeReader(), encoded, [])


def test_a_rollout_in_stretches_is_the_rollout():
    rows = [codex.meta(), codex.context()]
    for turn in range(6):
        rows += [codex.event("task_started"), codex.user(f"Do {turn}"), codex.said(f"I do {turn}"), codex.call(f"c{turn}")]
        rows += [codex.event("token_count", info=None), codex.said("Done."), codex.event("task_complete")]
    data = codex.encode(rows)
    for seed in range(6):
        assert told(CodexReader(), data, some_cuts(data, seed)) == told(CodexReader(), data, [])


@pytest.mark.skipif(not SHARED.exists(), reason=f"the recordings are not there ({SHARED})")
def test_recorded_files_in_stretches_are_the_files():
    checked = 0
    for folder, reader in (("claude-code", ClaudeCodeReader()), ("codex", CodexReader())):
        for path in sorted((SHARED / folder).rglob("*.jsonl"))[:40]:
            data = path.read_bytes()
            if len(data) > 3_000_000 or data.count(b"\n") < 3 or not data.endswith(b"\n") or not reader.sniff(data[:65_536]):
                continue
            assert told(reader, data, some_cuts(data, 3)) == told(reader, data, []), path.name
            checked += 1
    assert checked > 5
