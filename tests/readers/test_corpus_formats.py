"""Every recording of every agent beside the checkout: read by the reader of its format, or refused by its name."""

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from sessions_app.readers.detect import HEAD_BYTES, MAX_FIRST_LINE, READERS
from sessions_app.readers.others import looks_like

SHARED = Path(__file__).resolve().parents[3] / "shared" / "corpus"
FILES = sorted(path for path in SHARED.rglob("*") if path.is_file())

pytestmark = pytest.mark.skipif(not FILES, reason=f"the recordings are not there ({SHARED})")

# A pattern of paths → the reader's name, or (after a dash) what a refusal calls the file. The first that fits counts.
EXPECTED = {
    "aider/*": "- aider's chat history",
    "anthropic-messages/*": "anthropic-messages",
    "atif/*": "- a trajectory in the form ATIF",
    "claude-code/*": "claude-code",
    "claude-stream-json/*": "- Claude Code's event stream",
    "cline/*": "- Cline's messages",
    "codex/nshkrdotcom*": "- Codex's event stream",
    "codex/*": "codex",
    "codex-exec-stream/*": "- Codex's event stream",
    "codex-tui-log/*": "- a log of Codex's terminal",
    "copilot-cli/*": "- Copilot CLI's session log",
    "entire-compact/*": "- a compact transcript of Entire",
    "gemini/*": "- Gemini CLI's session log",
    "generated/*/wire*.jsonl": "- a recording of an agent's protocol",
    "generated/*/model-requests.jsonl": "- a list of requests",
    "generated/*mapping-*.json": "-",
    "generated/*summary-*-answer.json": "- a recorded answer of a model",
    "generated/claude-code/hook-inputs.jsonl": "- what Claude Code gives its hooks",
    "generated/claude-code/oneshot-compact.jsonl": "- Claude Code's event stream",
    "generated/claude-code/transcript-*.jsonl": "claude-code",
    "generated/claude-code/golden/session-*.jsonl": "claude-code",
    "generated/claude-code/golden/*.json": "anthropic-messages",
    "generated/codex/exec-json.jsonl": "- Codex's event stream",
    "generated/codex/rollout-*.jsonl": "codex",
    "generated/codex/golden/*session-*.jsonl": "codex",
    "generated/codex/**.json": "- OpenAI's Responses items",
    "generated/gemini-cli/headless-stream.jsonl": "- Gemini CLI's event stream",
    "generated/gemini-cli/*.jsonl": "- Gemini CLI's session log",
    "generated/mini-swe-agent/*.json": "- a mini-SWE-agent trajectory",
    "generated/opencode/*request-*.json": "openai-chat",
    "generated/opencode/*summary-*-request.json": "openai-chat",
    "generated/opencode/golden/*session-*.json": "- an export of OpenCode",
    "generated/opencode/export-*.json": "- an export of OpenCode",
    "generated/opencode/*messages-*.json": "- OpenCode's messages",
    "generated/openhands/conversation/events/*.json": "- OpenHands' events",
    "generated/openhands/conversation/*.json": "- OpenHands' conversation state",
    "generated/openhands/*.json": "- OpenHands' events",
    "generated/pi/*request-*.json": "openai-chat",
    "generated/pi/*summary-*-request.json": "openai-chat",
    "generated/pi/**.jsonl": "- pi's session log",
    "inspect/compaction*": "- Inspect events",
    "inspect/meridianlabs*": "- Inspect events",
    "inspect/*": "- an Inspect log",
    "kimi/*": "- Kimi's session log",
    "litellm-log/*": "openai-chat",
    "mini-swe-agent/*": "- a mini-SWE-agent trajectory",
    "openai-chat/*": "openai-chat",
    "openai-responses/*": "- OpenAI's Responses items",
    "opencode/*": "- an export of OpenCode",
    "opencode-events/*": "- OpenCode's events",
    "openhands/*output.jsonl": "- OpenHands' benchmark output",
    "openhands/*": "- OpenHands' events",
    "openhands-v1/*": "- OpenHands' events",
    "pi/*": "- pi's session log",
    "qwen/*": "- Qwen Code's session log",
    "swe-agent/*": "- a SWE-agent trajectory",
}


def expected(path: Path) -> str:
    """What should become of a file; `-` where nothing but that no reader takes it."""
    place = path.relative_to(SHARED)
    if path.suffix in (".md", ".tsv", ".db", ".history", ".lock", ".marker") or "opencode-storage" in place.parts:
        return "-"
    return next(what for pattern, what in EXPECTED.items() if fnmatchcase(str(place), pattern))


def head_of(path: Path) -> bytes:
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        return head if b"\n" in head else head + file.readline(MAX_FIRST_LINE - len(head))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SHARED))[:100])
def test_each_file_has_one_reader_or_none_and_is_called_what_it_is(path):
    head, wanted = head_of(path), expected(path)
    readers = [reader.name for reader in READERS if reader.sniff(head)]
    if wanted.startswith("-"):
        assert readers == []
        assert looks_like(head).startswith(wanted[2:])
    else:
        assert readers == [wanted]
