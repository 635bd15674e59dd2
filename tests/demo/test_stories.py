"""The demo's transcripts are session files as an agent writes them, and always the same."""

import json
from datetime import UTC, datetime

import pytest

from sessions_app.demo.catalogue import CATALOGUE

END = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SOUND = [demo for demo in CATALOGUE if demo.story.__name__ != "damaged_file"]


def rows(demo) -> list[dict]:
    return [json.loads(line) for line in demo.files()[0].render(END).splitlines()]


def name(demo) -> str:
    return demo.story.__name__


def test_there_are_about_a_dozen_sessions_and_one_of_them_is_long():
    sizes = sorted(demo.files()[0].record_count for demo in CATALOGUE)
    assert 12 <= len(sizes) <= 16
    assert sizes[-1] >= 3_000


@pytest.mark.parametrize("demo", CATALOGUE, ids=name)
def test_a_story_is_the_same_bytes_every_time(demo):
    assert demo.files()[0].render(END) == demo.files()[0].render(END)


@pytest.mark.parametrize("demo", SOUND, ids=name)
def test_every_row_hangs_on_an_earlier_one(demo):
    seen: set[str | None] = {None}
    for row in rows(demo):
        if "uuid" in row:
            assert row["parentUuid"] in seen
            assert row["uuid"] not in seen
            seen.add(row["uuid"])


@pytest.mark.parametrize("demo", SOUND, ids=name)
def test_times_never_go_back_and_end_where_asked(demo):
    times = [row["timestamp"] for row in rows(demo) if "timestamp" in row]
    assert times == sorted(times)
    assert times[-1] == "2026-11-30T12:00:00.000Z"


@pytest.mark.parametrize("demo", SOUND, ids=name)
def test_every_result_answers_a_call(demo):
    calls: set[str] = set()
    for row in rows(demo):
        content = row.get("message", {}).get("content")
        for block in content if isinstance(content, list) else []:
            if block["type"] == "tool_use":
                calls.add(block["id"])
            if block["type"] == "tool_result":
                assert block["tool_use_id"] in calls


@pytest.mark.parametrize("demo", SOUND, ids=name)
def test_what_an_agents_compaction_preserves_stands_in_the_file(demo):
    seen: set[str] = set()
    for row in rows(demo):
        for kept in row.get("compactMetadata", {}).get("preservedMessages", {}).get("uuids", []):
            assert kept in seen
        seen.add(row.get("uuid", ""))
