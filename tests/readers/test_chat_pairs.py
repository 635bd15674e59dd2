"""Requests with their answers beside them, and answers alone, as gateways and batch files keep them."""

import io
import json

import pytest

from sessions_app.readers.detect import READERS, reader_for
from sessions_app.readers.json_scan import JsonScanner

MESSAGES = [{"role": "developer", "content": "Be brief"}, {"role": "user", "content": "Which fare?"}]
CHOICE = {"index": 0, "message": {"role": "assistant", "content": "The day ticket."}, "finish_reason": "stop"}
ANSWER = {
    "id": "c1",
    "object": "chat.completion",
    "model": "gpt-5.5",
    "choices": [CHOICE],
    "usage": {"prompt_tokens": 9, "completion_tokens": 3},
}
BLOCKS = [{"type": "text", "text": "The day ticket."}]
USAGE = {"input_tokens": 9, "output_tokens": 3}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-5", "content": BLOCKS, "usage": USAGE}
ASKED = {"model": "claude-opus-4-5", "max_tokens": 9, "system": [{"type": "text", "text": "Be brief"}], "messages": MESSAGES[1:]}
REQUEST = {"model": "gpt-5.5", "messages": MESSAGES}
PAIRS = {
    "openai, beside": ("openai-chat", {**REQUEST, "response": ANSWER}),
    "openai, around": ("openai-chat", {"request": REQUEST, "response": ANSWER}),
    "openai, answer first": ("openai-chat", {"response": ANSWER, "request": REQUEST}),
    "anthropic, around": ("anthropic-messages", {"request": ASKED, "response": MESSAGE}),
}


def read(data: bytes, path: str):
    reader = reader_for(data)
    assert reader is not None
    reading = reader.read(io.BytesIO(data), path=path)
    records = list(reading)
    assert b"".join(record.raw for record in records) == data
    assert all(data[record.offset : record.offset + record.length] == record.raw for record in records)
    assert all(record.line == data[: record.offset].count(b"\n") + 1 for record in records)
    return reader.name, reading, [record.entry for record in records if record.entry is not None]


def told(entries, lane=""):
    return [(entry.role.value, entry.parts[0].text) for entry in entries if entry.child_key == lane]


CONVERSATION = [("system", "Be brief"), ("user", "Which fare?"), ("assistant", "The day ticket.")]


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize(("name", "document"), PAIRS.values(), ids=list(PAIRS))
def test_an_answer_beside_its_request_ends_the_conversation(name, document, indent):
    reader, reading, entries = read(json.dumps(document, indent=indent).encode(), "pair.json")
    assert (reader, told(entries)) == (name, CONVERSATION)
    assert [entry.usage.prompt for entry in entries if entry.usage] == [9]
    assert (reading.facts().open_turn, reading.report().by_problem) == (False, {})


@pytest.mark.parametrize(("name", "document"), PAIRS.values(), ids=list(PAIRS))
def test_lines_of_pairs_are_conversations_of_their_own(name, document):
    reader, reading, entries = read(b"".join(json.dumps(document).encode() + b"\n" for _ in range(3)), "log.jsonl")
    assert reader == name
    assert [child.key for child in reading.child_sessions()] == ["conversation-1", "conversation-2", "conversation-3"]
    assert all(told(entries, child.key) == CONVERSATION for child in reading.child_sessions())
    assert sum(entry.usage.output for entry in entries if entry.usage) == 9


@pytest.mark.parametrize(("name", "answer"), [("openai-chat", ANSWER), ("anthropic-messages", MESSAGE)])
def test_an_answer_alone_is_one_entry_with_what_it_took(name, answer):
    reader, reading, (entry,) = read(json.dumps(answer, indent=2).encode(), "answer.json")
    assert (reader, entry.usage.prompt, entry.model) == (name, 9, answer["model"])
    assert reading.report().by_problem == {}


def test_a_batch_file_of_requests_is_read_by_its_bodies():
    lines = [{"custom_id": f"r{n}", "method": "POST", "url": "/v1/chat/completions", "body": REQUEST} for n in range(2)]
    reader, reading, _ = read(b"".join(json.dumps(line).encode() + b"\n" for line in lines), "batch.jsonl")
    assert (reader, len(reading.child_sessions())) == ("openai-chat", 2)


def test_messages_deeper_than_a_request_are_not_taken_for_a_conversation():
    data = json.dumps({"other": {"messages": MESSAGES}}).encode()
    assert [span.place.value for span in JsonScanner(io.BytesIO(data))] == ["item"]
    assert not any(reader.sniff(data) for reader in READERS)
