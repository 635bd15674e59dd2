"""Chat messages that other people and programs recorded, which lie beside the checkout: skipped where they do not."""

import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sessions_app.engine.messages import sent_parts
from sessions_app.engine.terms import Kind, Lineage, PartKind, Role
from sessions_app.models import Session
from sessions_app.readers.base import Record
from sessions_app.readers.chat_reading import ChatReading
from sessions_app.readers.detect import HEAD_BYTES, READERS
from sessions_app.selectors.plans import load_blob, load_view
from sessions_app.selectors.raw_page import source_bytes
from tests.readers.test_corpus_claude_code import requested
from tests.services.import_scenes import take

SHARED = Path(__file__).resolve().parents[3] / "shared" / "corpus"
EVERY = sorted(path for path in SHARED.rglob("*") if path.is_file())
OPENAI, ANTHROPIC = "openai-chat", "anthropic-messages"
GOLDEN = {"claude-code": ANTHROPIC, "pi": OPENAI, "opencode": OPENAI}
TAU_ONE, TAU_ALL = (
    SHARED / OPENAI / "TransluceAI__docent__tb_airline.json",
    SHARED / OPENAI / "sierra-research__tau-bench__gpt-4o-airline.json",
)
WEB_SESSION = SHARED / ANTHROPIC / "simonw__claude-code-transcripts__sample_session.json"

pytestmark = pytest.mark.skipif(not EVERY, reason=f"the recordings are not there ({SHARED})")


def right_reader(path: Path) -> str:
    """The name of the chat reader that should claim a file, or an empty string."""
    parts = path.relative_to(SHARED).parts
    if parts[0] in (OPENAI, ANTHROPIC):
        return parts[0]
    if parts[0] == "litellm-log":
        return OPENAI
    is_request = parts[0] == "generated" and "golden" in parts and "request" in path.name and path.suffix == ".json"
    return GOLDEN.get(parts[1], "") if is_request else ""


CHATS = [path for path in EVERY if right_reader(path)]


def read(path: Path) -> tuple[ChatReading, list[Record]]:
    reader = next(reader for reader in READERS if reader.name == right_reader(path))
    reading = reader.read(io.BytesIO(path.read_bytes()), path=path.name)
    assert isinstance(reading, ChatReading)
    return reading, list(reading)


def messages_in(path: Path) -> Iterator[dict[str, Any]]:
    """The messages of a file, found the simple way."""
    document = json.loads(path.read_bytes())
    for conversation in document if isinstance(document, list) else [document]:
        for item in conversation.get("messages") or conversation.get("traj") or conversation["loglines"]:
            yield item.get("message", item)
        if "response" in conversation:
            yield conversation["response"]["choices"][0]["message"]


def test_no_file_is_claimed_by_a_wrong_reader_or_by_two():
    wrong = []
    for path in EVERY:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        claims = {reader.name for reader in READERS if reader.sniff(head)}
        expected = right_reader(path)
        if len(claims) > 1 or claims & {OPENAI, ANTHROPIC} != ({expected} if expected else set()):
            wrong.append((str(path.relative_to(SHARED)), claims))
    assert wrong == []


@pytest.mark.parametrize("path", CHATS, ids=lambda path: "/".join(path.relative_to(SHARED).parts[-3:]))
def test_every_message_is_one_record_and_every_byte_is_kept(path):
    reading, records = read(path)
    assert b"".join(record.raw for record in records) == path.read_bytes()
    report = reading.report()
    told = Counter(message["role"] for message in messages_in(path))
    assert {kind: count for kind, count in report.by_kind.items() if kind != "envelope"} == told
    is_open = path.parent.name == "litellm-log"  # its answer ends with a call
    assert report.by_problem == ({"unanswered_call": 1} if is_open else {})
    assert report.lines == len(path.read_bytes().splitlines())
    assert sum(record.entry is not None and record.kind != "envelope" for record in records) == told.total()


def test_one_trial_of_an_airline_agent():
    reading, records = read(TAU_ONE)
    report = reading.report()
    assert (report.records, report.entries, report.lines) == (44, 42, 1)
    assert report.by_kind == {"envelope": 2, "system": 1, "user": 9, "assistant": 20, "tool": 12}
    kinds = Counter(record.entry.kind for record in records if record.entry)
    assert (kinds[Kind.CALL], kinds[Kind.RESULT]) == (12, 12)
    assert [note.partition(" in the source")[0] for note in report.notes] == ["42 entries have no id", "42 entries have no time"]


@pytest.mark.django_db
def test_two_hundred_trials_are_two_hundred_sessions(tmp_path):
    outcome = take(TAU_ALL)
    assert (outcome.children, outcome.problems) == (200, 0)
    parent = Session.objects.get(pk=outcome.session_id)
    children = Session.objects.filter(parent=parent)
    assert parent.entry_count == 400  # a call and a result for each
    assert children.count() == 200
    assert sum(children.values_list("entry_count", flat=True)) == 5_308
    assert b"".join(source_bytes(parent.source_files.get())) == TAU_ALL.read_bytes()
    reading, records = read(TAU_ALL)
    calls = [part for record in records if record.entry and record.entry.role is Role.ASSISTANT for part in record.entry.parts]
    assert sum(part.kind is PartKind.CALL for part in calls) == 1_164
    assert reading.report().by_kind == {"envelope": 402, "system": 200, "user": 1_490, "assistant": 2_454, "tool": 1_164}


def test_a_web_session_of_claude_code():
    reading, records = read(WEB_SESSION)
    report = reading.report()
    assert (report.records, report.entries, report.lines, report.checkpoints) == (35, 33, 522, 1)
    found = [record.entry for record in records if record.entry]
    assert Counter(entry.kind for entry in found) == {Kind.CALL: 12, Kind.RESULT: 12, Kind.MESSAGE: 8, Kind.SUMMARY: 1}
    assert sum(part.is_error for entry in found for part in entry.parts) == 1
    assert sum(part.kind is PartKind.THINKING for entry in found for part in entry.parts) == 1
    assert (reading.facts().started, reading.facts().last_activity) == ("2025-12-24T10:00:00.000Z", "2025-12-24T10:05:15.000Z")
    assert report.notes == ["33 entries have no id in the source: theirs are made from what they say."]


def blocks_of(path: Path) -> list[tuple[str, str, object, str]]:
    """The blocks of a recorded request as its maker's interface reads them: (role, kind, text or arguments, call id)."""
    messages = [message for message in messages_in(path) if message["role"] != "system"]
    if right_reader(path) == ANTHROPIC:
        return requested(messages)
    found: list[tuple[str, str, object, str]] = []
    for message in messages:
        content = message.get("content") or ""
        texts = [content] if isinstance(content, str) else [part["text"] for part in content]
        if message["role"] == "tool":
            found.append(("user", "result", "\n".join(texts).strip(), message["tool_call_id"]))
            continue
        found += [(message["role"], "text", text.strip(), "") for text in texts if text]
        for call in message.get("tool_calls", ()):
            found.append((message["role"], "call", json.loads(call["function"]["arguments"]), call["id"]))
    return found


@pytest.mark.django_db
@pytest.mark.parametrize("path", [path for path in CHATS if "golden" in path.parts], ids=lambda path: "/".join(path.parts[-3:]))
def test_the_view_of_a_recorded_request_is_block_for_block_that_request(path):
    session = Session.objects.get(pk=take(path).session_id)
    shown: list[tuple[str, str, object, str]] = []
    for message in load_view(session, Lineage.AGENT):
        if message.role is Role.SYSTEM:
            continue
        for part in sent_parts(message):
            text = load_blob(part.blob).decode() if part.chars else part.text
            body: object = json.loads(text) if part.kind is PartKind.CALL else text.strip()
            shown.append((message.role.value, part.kind.value, body, part.call_id))
    assert shown == blocks_of(path)
    assert b"".join(source_bytes(session.source_files.get())) == path.read_bytes()
