"""What definitions of tools count, how near that is to a real vocabulary, and what an attempt makes of it."""

import json
from pathlib import Path

import pytest

from sessions_app.engine.attempt import Task
from sessions_app.engine.bpe import BpeCounter
from sessions_app.engine.extractive import ExtractiveSummariser
from sessions_app.engine.library import compact, to_its_end
from sessions_app.engine.policy import Policy
from sessions_app.engine.shapes import shape_of
from sessions_app.engine.steps import Commit, Ended
from sessions_app.engine.terms import SkipReason, Trigger
from sessions_app.engine.tools import beside_view, estimate_tools
from tests.engine.attempts import long_story

RECORDED = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "litellm-log"
ANTHROPIC = {
    "name": "read_file",
    "description": "Reads a file from the local file system. Its path must be absolute. By default it reads 2000 lines from the beginning.",
    "input_schema": {
        "type": "object",
        "properties": {
            "file_path": {"type": "string", "description": "The absolute path of the file to read"},
            "offset": {
                "type": "integer",
                "description": "The line to start from, where the file is too large for one",
                "minimum": 0,
            },
            "limit": {"type": "integer", "description": "How many lines to read", "exclusiveMinimum": 0},
        },
        "required": ["file_path"],
        "additionalProperties": False,
    },
}
OPENAI = {
    "type": "function",
    "function": {
        "name": "search_orders",
        "description": "Look up the orders of a customer. Dates are ISO 8601; amounts are cents of the given currency.",
        "parameters": {
            "type": "object",
            "properties": {
                "customer_id": {"type": "string", "pattern": "^C-[0-9]{6}$"},
                "status": {"type": "string", "enum": ["open", "paid", "shipped", "returned", "cancelled"]},
                "since": {"type": "string", "format": "date-time"},
            },
            "required": ["customer_id"],
        },
        "strict": True,
    },
}


@pytest.fixture(scope="module")
def bpe(tmp_path_factory) -> BpeCounter:
    return BpeCounter(tmp_path_factory.mktemp("vocabulary"))


def by_vocabulary(bpe: BpeCounter, definitions) -> int:
    return sum(bpe.count(json.dumps(one, separators=(",", ":"), ensure_ascii=False)) for one in definitions)


@pytest.mark.parametrize("definitions", [[ANTHROPIC], [OPENAI], [ANTHROPIC, OPENAI] * 20], ids=["anthropic", "openai", "forty"])
def test_the_estimate_is_near_what_a_vocabulary_counts(bpe, definitions):
    assert estimate_tools(definitions) == pytest.approx(by_vocabulary(bpe, definitions), rel=0.2)


@pytest.mark.skipif(not RECORDED.is_dir(), reason="no recorded requests are here")
def test_of_recorded_requests_it_is_near_too(bpe):
    found = [tools for path in RECORDED.glob("*.json") for tools in tools_in(json.loads(path.read_text()))]
    assert found
    for definitions in found:
        assert estimate_tools(definitions) == pytest.approx(by_vocabulary(bpe, definitions), rel=0.15)


def tools_in(value: object):
    """Every list of definitions in a recorded request, wherever it stands."""
    if isinstance(value, dict):
        if isinstance(value.get("tools"), list) and value["tools"] and isinstance(value["tools"][0], dict):
            yield value["tools"]
        for inner in value.values():
            yield from tools_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from tools_in(inner)


def test_nothing_counts_nothing_and_what_is_no_json_is_refused():
    assert estimate_tools([]) == 0
    with pytest.raises(TypeError):
        estimate_tools([{"name": object()}])


def automatic(tools: int, window: int):
    entries = long_story(40).entries
    shapes = [shape_of(entry) for entry in entries]
    task = Task(
        shapes=shapes,
        load=lambda first, last: iter(entries[first : last + 1]),
        chain=(),
        policy=Policy(clear_results=False),
        window=window,
        signal_tokens=sum(shape.tokens for shape in shapes) + tools,
        summarisers=[ExtractiveSummariser()],
        trigger=Trigger.THRESHOLD,
        calibration=beside_view(tools),
    )
    return to_its_end(task)


def test_the_tail_gives_way_to_the_tools():
    without, beside = automatic(0, 24_000), automatic(7_000, 24_000)
    assert isinstance(without, Commit)
    assert isinstance(beside, Commit)
    target = Policy().target_tokens(24_000)
    assert beside.tokens_after + 7_000 <= target < without.tokens_after + 7_000 + 1_000
    assert beside.boundary_index >= without.boundary_index


def test_where_they_alone_exceed_the_target_the_attempt_ends_and_says_so():
    ended = automatic(12_000, 24_000)
    assert isinstance(ended, Ended)
    assert ended.reason == SkipReason.NON_HISTORY_ENVELOPE_EXHAUSTS_BUDGET
    assert "what no entry holds (tools and the like) 12,000" in ended.explanation


def test_the_short_way_in_takes_them():
    story = long_story(20)
    plain, beside = compact(story.entries, window=24_000), compact(story.entries, window=24_000, tool_definitions=[ANTHROPIC, OPENAI] * 40)
    assert isinstance(plain, Commit)
    assert isinstance(beside, Commit)
    assert beside.block_tokens < plain.block_tokens  # the target holds the tools as well
