"""OpenAI's chat messages: what each kind of message becomes, in whatever container it stands."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.engine.entries import INLINE_CHARS
from sessions_app.engine.legality import problems as illegal
from sessions_app.engine.terms import Kind, PartKind, Role
from sessions_app.models import Session
from sessions_app.readers import json_scan
from sessions_app.readers.detect import reader_for
from sessions_app.readers.openai_chat import OpenAIChatReader
from sessions_app.selectors.raw_page import source_bytes
from tests.readers.chat_scenes import DAMAGE, DATA, entries, problems, read, said, sample, view
from tests.services.import_scenes import take

ASK = {"role": "user", "content": "Is the oven on?"}
TELL = {"role": "assistant", "content": "It is."}
CALL = {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "oven", "arguments": '{"n": 1}'}}]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "220"}
CHAT = [ASK, CALL, RESULT, TELL]
BESIDE = {"model": "gpt-4o", "messages": CHAT, "temperature": 1}
CONTAINERS = {
    "a list": json.dumps(CHAT),
    "a list over many lines": "\ufeff\n" + json.dumps(CHAT, indent=4) + "\n\n",
    "a request": json.dumps(BESIDE),
    "a request over many lines": json.dumps(BESIDE, indent=1),
    "JSON Lines": "".join(json.dumps(message) + "\n" for message in CHAT),
    "JSON Lines without the last newline": "\n".join(map(json.dumps, CHAT)),
    "a list of one conversation": json.dumps([BESIDE], indent=2),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_the_container_does_not_change_what_was_said(container):
    reading, records = read(CONTAINERS[container])
    assert [(entry.role, entry.kind) for entry in entries(records)] == [
        (Role.USER, Kind.MESSAGE),
        (Role.ASSISTANT, Kind.CALL),
        (Role.TOOL, Kind.RESULT),
        (Role.ASSISTANT, Kind.MESSAGE),
    ]
    assert problems(reading) == {}
    assert illegal(view(entries(records))) == []
    assert reading.facts().title == "Is the oven on?"


def test_ids_are_the_same_in_every_container_and_after_growth():
    ids = {container: [entry.source_id for entry in entries(read(text)[1])] for container, text in CONTAINERS.items()}
    assert len({tuple(found) for found in ids.values()}) == 1
    longer = entries(read([*CHAT, ASK, TELL])[1])
    assert [entry.source_id for entry in longer][:4] == ids["a list"]
    assert len({entry.source_id for entry in longer}) == 6  # the same words again are another entry


def test_every_kind_of_message_is_read():
    reading, records = sample("openai_chat.json")
    found = entries(records)
    assert [(entry.role.value, entry.kind.value) for entry in found] == [
        ("system", "message"), ("user", "message"), ("assistant", "call"), ("tool", "result"), ("tool", "result"), ("assistant", "message"),
        ("user", "message"), ("assistant", "message"), ("user", "message"), ("assistant", "call"), ("tool", "result"),
        ("assistant", "message"),
    ]  # fmt: skip
    assert said(found[4]) == [("result", "Vendor 17\nsince 2019")]
    assert (said(found[7]), found[7].parts[0].name) == ([("text", "I can't book a receipt twice.")], "refusal")
    assert said(found[9]) == [("call", '{"amount": 31.5}')]
    assert found[1].annex == {"name": "ada"}
    assert {entry.model for entry in found if entry.role is Role.ASSISTANT} == {"gpt-4o-mini"}
    assert problems(reading) == {}


def test_results_name_their_call_and_its_tool():
    found = entries(sample("openai_chat.json")[1])
    calls = {part.call_id: part.name for entry in found for part in entry.parts if part.kind is PartKind.CALL}
    results = {part.call_id: part.name for entry in found for part in entry.parts if part.kind is PartKind.RESULT}
    assert calls == results
    assert set(calls.values()) == {"read_receipt", "look_up", "book"}


def test_images_of_data_addresses_are_kept_and_others_stay_text():
    asked = entries(sample("openai_chat.json")[1])[1]
    text, image, remote = asked.parts
    assert (text.kind, image.kind, remote.kind) == (PartKind.TEXT, PartKind.IMAGE, PartKind.TEXT)
    assert (image.media_type, image.width, image.height) == ("image/png", 4, 3)
    assert asked.blobs[image.blob][1].startswith(b"\x89PNG")
    assert remote.text == "[image at https://example.org/receipt.png]"


def test_what_came_from_the_cache_is_not_counted_twice():
    usage = entries(sample("openai_chat.json")[1])[5].usage
    assert usage is not None
    assert (usage.input, usage.cache_read, usage.output, usage.prompt) == (20, 100, 15, 120)


def test_usage_beside_the_messages_is_the_last_answers():
    found = entries(read({"messages": CHAT, "usage": {"prompt_tokens": 9, "completion_tokens": 2}})[1])
    assert [entry.usage.prompt if entry.usage else None for entry in found] == [None, None, None, 9]


def test_the_report_says_what_was_made_up():
    notes = sample("openai_chat.json")[0].report().notes
    assert any(note.startswith("12 entries have no id") for note in notes)
    assert any(note.startswith("12 entries have no time") for note in notes)
    assert any(note.startswith("1 tool definitions") for note in notes)
    assert all(entry.synthetic_time and not entry.timestamp for entry in entries(sample("openai_chat.json")[1]))


def test_several_conversations_are_sessions_of_their_own():
    reading, records = sample("openai_conversations.jsonl")
    children = reading.child_sessions()
    assert [(child.key, child.title) for child in children] == [
        ("conversation-1", "Is the oven on?"),
        ("conversation-2", "How much rye is left?"),
    ]
    for child in children:
        assert [entry.role.value for entry in entries(records, child.key)] == ["system", "user", "assistant"]
    cards = entries(records)
    assert {entry.role for entry in cards} == {Role.NOTICE}
    assert [entry.parts[0].call_id for entry in cards if entry.kind is Kind.CALL] == [child.call_id for child in children]
    assert reading.report().side_chain_entries == 6


def test_a_document_with_more_than_one_conversation_is_read_to_its_end():
    text = json.dumps({"messages": CHAT}, indent=1)
    reading, records = read(text + "\n" + text)
    assert len(entries(records)) == 4 + 2
    assert len(entries(records, "conversation-2")) == 4
    assert [child.key for child in reading.child_sessions()] == ["conversation-2"]


def test_calls_and_results_without_their_other_half_are_told():
    reading, records = read([ASK, CALL, ASK, {"role": "tool", "tool_call_id": "gone", "content": "?"}])
    assert problems(reading) == {"orphan_result": 1, "unanswered_call": 1}
    assert illegal(view(entries(records))) == []


def test_what_is_no_message_is_kept_counted_and_told():
    lines = [
        json.dumps(ASK), '{"role": "oracle", "content": "x"}', '{"role": "user", "content": "tr', json.dumps({"role": "user"}),
        json.dumps(CALL), json.dumps(RESULT) + json.dumps(TELL), "[1]", "",
    ]  # fmt: skip
    reader = OpenAIChatReader()
    raw = "\n".join(lines).encode()
    reading = reader.read(io.BytesIO(raw))
    records = list(reading)
    assert b"".join(record.raw for record in records) == raw
    assert problems(reading) == {"unknown_type": 1, "unreadable": 1, "bad_shape": 1, "spliced": 2, "not_an_object": 1}
    assert [entry.role.value for entry in entries(records)] == ["user", "assistant", "tool", "assistant"]


def test_arguments_that_are_no_json_stay_as_text_in_json():
    call = {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": '{"cut": '}}]}
    custom = {"role": "assistant", "tool_calls": [{"id": "d", "type": "custom", "custom": {"name": "g", "input": "free text"}}]}
    found = entries(read([ASK, call, custom])[1])
    assert [json.loads(entry.parts[0].text) for entry in found[1:]] == ['{"cut": ', "free text"]


def test_a_long_result_lies_whole_in_one_blob():
    text = "é" * (INLINE_CHARS + 1)
    found = entries(read([ASK, CALL, {**RESULT, "content": [{"type": "text", "text": text}]}])[1])[2]
    part = found.parts[0]
    assert (part.chars, list(found.blobs)) == (len(text), [part.blob])
    assert found.blobs[part.blob][1].decode() == text


def test_a_document_that_is_cut_off_keeps_every_byte():
    raw = json.dumps(BESIDE, indent=2).encode()
    for cut in range(60, len(raw), 7):
        reading = OpenAIChatReader().read(io.BytesIO(raw[:cut]))
        assert b"".join(record.raw for record in reading) == raw[:cut]
        assert "truncated" in problems(reading)


@pytest.mark.parametrize("size", [1, 7, 64])
def test_where_reads_end_does_not_matter(monkeypatch, size):
    raw = (DATA / "openai_chat.json").read_bytes()
    whole = read(raw)[1]
    monkeypatch.setattr(json_scan, "READ_SIZE", size)
    assert read(raw)[1] == whole


def test_what_is_too_long_is_kept_in_pieces(monkeypatch):
    monkeypatch.setattr(json_scan, "MAX_LINE", 3_000)
    monkeypatch.setattr(json_scan, "READ_SIZE", 1_000)
    long = {"role": "user", "content": 'x\\"[{' * 2_000}
    reading, records = read([ASK, long, TELL])
    assert [entry.role.value for entry in entries(records)] == ["user", "assistant"]
    assert set(problems(reading)) == {"too_long"}
    assert max(record.length for record in records) <= 4_000


@pytest.mark.parametrize("value", [None, 7, True, [], {}, "x", [None], [7], [[]], [{}], {"a": [7]}, {"url": []}, {"function": "f"}])
def test_values_of_any_shape_are_survived(value):
    fields = ("content", "tool_calls", "function_call", "refusal", "name", "usage", "audio", "tool_call_id", "reasoning_content", "id")
    messages = [{"role": role, **dict.fromkeys(fields, value)} for role in ("user", "assistant", "tool", "function", "system", "developer")]
    kinds = ("text", "image_url", "input_audio", "file", "refusal", "thinking")
    messages += [{"role": "user", "content": [{"type": kind, kind: value}]} for kind in kinds]
    messages += [{"role": "assistant", "tool_calls": [{"id": value, "function": {"name": value, "arguments": value}}]}]
    source = json.dumps({"model": value, "messages": messages, "tools": value, "usage": value}).encode()
    reading = OpenAIChatReader().read(io.BytesIO(source))
    assert b"".join(record.raw for record in reading) == source
    reading.report()


@pytest.mark.parametrize("name", ["openai_chat.json", "openai_conversations.jsonl"])
@given(data=st.data())
def test_reading_never_raises_and_never_loses_a_byte(name, data):
    raw = bytearray((DATA / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(raw) - 1))
        end = place + data.draw(st.integers(0, 40))
        raw[place:end] = data.draw(st.sampled_from(DAMAGE))
    source = bytes(raw)
    reader_for(source)
    reading = OpenAIChatReader().read(io.BytesIO(source), path=name)
    records = list(reading)
    assert b"".join(record.raw for record in records) == source
    assert [record.offset for record in records] == [sum(r.length for r in records[:place]) for place in range(len(records))]
    reading.report(), reading.facts(), reading.child_sessions(), reading.checkpoints()


@pytest.mark.django_db
def test_a_file_is_imported_and_exported_byte_for_byte(tmp_path):
    path = tmp_path / "receipts.json"
    path.write_bytes((DATA / "openai_chat.json").read_bytes())
    outcome = take(path)
    session = Session.objects.get(pk=outcome.session_id)
    assert (session.agent, session.title, session.entry_count) == ("openai-chat", "What does this receipt say?", 12)
    assert b"".join(source_bytes(session.source_files.get())) == path.read_bytes()


@pytest.mark.django_db
def test_a_document_that_was_written_anew_with_more_keeps_its_entries(tmp_path):
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(CHAT, indent=1))
    first = take(path)
    path.write_text(json.dumps([*CHAT, ASK, TELL], indent=1))
    second = take(path)
    assert second.session_id == first.session_id
    session = Session.objects.get(pk=first.session_id)
    assert session.entry_count == 6


@pytest.mark.django_db
def test_conversations_are_found_from_the_files_own_session(tmp_path, client, operator):
    path = tmp_path / "bakery.jsonl"
    path.write_bytes((DATA / "openai_conversations.jsonl").read_bytes())
    outcome = take(path)
    parent = Session.objects.get(pk=outcome.session_id)
    assert (outcome.children, parent.title) == (2, "bakery")
    children = Session.objects.filter(parent=parent)
    assert sorted(children.values_list("parent_call_id", "entry_count")) == [("conversation-1", 3), ("conversation-2", 3)]
    client.force_login(operator)
    page = client.get(f"/sessions/{parent.pk}/").content.decode()
    assert all(f"/sessions/{child.pk}/" in page for child in children)


@pytest.mark.django_db
def test_lines_that_are_added_later_are_all_that_is_new(tmp_path):
    path = tmp_path / "chat.jsonl"
    path.write_text("".join(json.dumps(message) + "\n" for message in CHAT) + '{"role": "user", "con')
    first = take(path)
    with path.open("a") as file:
        file.write('tent": "And now?"}\n' + json.dumps(TELL) + "\n")
    second = take(path)
    assert (first.entries, second.entries, second.entries_total) == (4, 2, 6)
    assert second.session_id == first.session_id
    session = Session.objects.get(pk=first.session_id)
    assert b"".join(source_bytes(session.source_files.get())) == path.read_bytes()


@pytest.mark.django_db
def test_conversations_that_are_added_later_join_the_others(tmp_path):
    lines = (DATA / "openai_conversations.jsonl").read_text().splitlines(keepends=True)
    path = tmp_path / "bakery.jsonl"
    path.write_text(lines[0])
    parent = Session.objects.get(pk=take(path).session_id)
    path.write_text("".join(lines))
    assert take(path).session_id == str(parent.pk)
    parent.refresh_from_db()
    assert parent.entry_count == 4
    assert sorted(Session.objects.filter(parent=parent).values_list("entry_count", flat=True)) == [3, 3]
