"""Anthropic's messages: blocks, server tools, compaction blocks, and a system prompt that may stand behind everything else."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.engine.legality import problems as illegal
from sessions_app.engine.terms import Fate, Kind, Lineage, PartKind, Role, SegmentKind
from sessions_app.models import Compaction, Session
from sessions_app.readers import json_scan
from sessions_app.readers.anthropic_messages import AnthropicMessagesReader
from sessions_app.readers.detect import reader_for
from sessions_app.selectors.plans import load_view
from sessions_app.selectors.raw_page import source_bytes
from tests.readers.chat_scenes import DAMAGE, DATA, entries, problems, read, said, sample, view
from tests.services.import_scenes import take

ASK = {"role": "user", "content": "Plan the week."}
USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "calendar", "input": {"week": 49}}]}
GIVE = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "Closed on Monday"}]}
TELL = {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}
CHAT = [ASK, USE, GIVE, TELL]
SUMMARY = {"type": "compaction", "content": "The week is planned."}
CONTAINERS = {
    "a list": json.dumps(CHAT),
    "a request over many lines": json.dumps({"max_tokens": 9, "messages": CHAT}, indent=2),
    "JSON Lines": "".join(json.dumps(message) + "\n" for message in CHAT),
    "log lines": json.dumps({"loglines": [{"type": m["role"], "timestamp": "2026-11-30T10:00:00Z", "message": m} for m in CHAT]}, indent=2),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_the_container_does_not_change_what_was_said(container):
    reading, records = read(CONTAINERS[container])
    assert reading.report().reader == "anthropic-messages"
    assert [(entry.role, entry.kind) for entry in entries(records)] == [
        (Role.USER, Kind.MESSAGE),
        (Role.ASSISTANT, Kind.CALL),
        (Role.TOOL, Kind.RESULT),
        (Role.ASSISTANT, Kind.MESSAGE),
    ]
    assert problems(reading) == {}
    assert illegal(view(entries(records))) == []


def test_the_system_prompt_comes_first_wherever_it_stands():
    for container in ({"system": "You plan.", "messages": CHAT}, {"messages": CHAT, "system": "You plan."}):
        first = entries(read(container)[1])[0]
        assert (first.role, said(first)) == (Role.SYSTEM, [("text", "You plan.")])


def test_every_block_is_read():
    reading, records = sample("anthropic_request.json")
    found = entries(records)
    assert [(entry.role.value, entry.kind.value) for entry in found] == [
        ("system", "message"), ("user", "message"), ("assistant", "call"), ("tool", "result"), ("user", "message"),
        ("assistant", "message"), ("user", "message"), ("notice", "error"), ("user", "message"), ("assistant", "message"),
        ("user", "message"),
    ]  # fmt: skip
    thinking, hidden, call = found[2].parts
    assert (thinking.text, hidden.encrypted, call.name) == ("Which days are open?", True, "calendar")
    result, image = found[3].parts
    assert (result.text, image.width, image.call_id) == ("Closed on Monday", 4, "toolu_1")
    assert said(found[4]) == [("text", "And look up the price of rye.")]
    assert said(found[5]) == [
        ("call", '{"query":"rye price"}'),
        ("result", "Rye today\nhttps://example.org/rye"),
        ("text", "Rye costs 0.40 a kilo."),
    ]
    assert said(found[6]) == [
        ("text", "Old plan\nhttps://example.org/plan\nBread on Tuesday."),
        ("text", "[document at https://example.org/plan.pdf]"),
        ("text", "Use the old plan."),
    ]
    assert problems(reading) == {}
    assert illegal(view(found)) == []


def test_words_behind_results_are_a_message_of_their_own():
    words = [{"type": "text", "text": "Stop."}, {"type": "text", "text": "Wait."}]
    message = {"role": "user", "content": [*GIVE["content"], *words]}
    for text in (json.dumps([ASK, USE, message], indent=3), json.dumps({"loglines": [{"type": "user", "message": message}]})):
        _, records = read(text)
        result, said_behind = [(record.kind, record.entry) for record in records if record.entry][-2:]
        assert (result[0], result[1].kind, said_behind[0], said_behind[1].kind) == ("user", Kind.RESULT, "user/text", Kind.MESSAGE)
        assert said(said_behind[1]) == [("text", "Stop."), ("text", "Wait.")]
    found = entries(read([ASK, USE, message])[1])
    assert [message.role.value for message in view(found)] == ["user", "assistant", "user"]


def test_what_an_agent_put_into_a_users_message_is_a_reminder():
    block = {"type": "text", "text": "<system-reminder>It is Monday.</system-reminder>"}
    reading, records = read([ASK, USE, {"role": "user", "content": [*GIVE["content"], block]}, {"role": "user", "content": [block]}])
    assert [(entry.kind, entry.meta) for entry in entries(records)[2:]] == [
        (Kind.RESULT, False),
        (Kind.REMINDER, True),
        (Kind.REMINDER, True),
    ]
    assert reading.facts().title == "Plan the week."


def test_the_whole_input_is_what_was_new_written_and_read():
    usage = entries(sample("anthropic_request.json")[1])[9].usage
    assert usage is not None
    assert (usage.input, usage.cache_write, usage.cache_read, usage.prompt, usage.output) == (10, 20, 30, 60, 7)


def test_a_message_in_several_lines_is_billed_once_with_its_largest_output():
    def line(text: str, output: int) -> str:
        content = [{"type": "text", "text": text}]
        usage = {"input_tokens": 5, "output_tokens": output}
        return json.dumps({"type": "message", "id": "m1", "role": "assistant", "content": content, "usage": usage}) + "\n"

    found = entries(read(json.dumps(ASK) + "\n" + line("a", 1) + line("b", 9) + line("c", 3))[1])
    assert [entry.usage.output if entry.usage else None for entry in found] == [None, None, 9, None]
    assert {entry.message_key for entry in found[1:]} == {"m1"}


def test_a_compaction_block_hides_everything_before_it_but_the_system_prompt():
    reading, _ = sample("anthropic_request.json")
    (plan,) = reading.checkpoints()
    assert plan.summary == "The week is planned: closed on Monday, bread on Tuesday."
    assert (plan.boundary_index, plan.divider_index, plan.tokens_before) == (9, 9, 500)
    assert [(segment.kind, segment.first, segment.last) for segment in plan.segments] == [
        (SegmentKind.ENTRY, 0, None),
        (SegmentKind.RANGE, 9, None),
    ]


def test_a_compaction_that_failed_changes_nothing():
    failed = {"role": "assistant", "content": [{"type": "compaction", "content": None}, {"type": "text", "text": "Going on."}]}
    reading, records = read({"max_tokens": 9, "thinking": {}, "messages": [*CHAT, ASK, failed]})
    assert reading.checkpoints() == []
    assert said(entries(records)[-1]) == [("text", "Going on.")]
    assert any(note.startswith("1 compactions failed") for note in reading.report().notes)


def test_the_last_compaction_is_the_one_in_force():
    block = {"role": "assistant", "content": [SUMMARY]}
    reading, records = read([*CHAT, ASK, block, ASK, {"role": "assistant", "content": [{**SUMMARY, "content": "Again."}]}])
    assert [(plan.boundary_index, plan.summary) for plan in reading.checkpoints()] == [(5, "The week is planned."), (7, "Again.")]
    assert entries(records)[5].kind is Kind.SUMMARY


def test_log_lines_keep_their_times_and_their_summary():
    rows = json.loads(CONTAINERS["log lines"])["loglines"]
    rows.append({"type": "user", "isCompactSummary": True, "timestamp": "2026-11-30T11:00:00Z", "message": ASK})
    reading, records = read({"loglines": rows})
    last = entries(records)[-1]
    assert (last.kind, last.timestamp, last.synthetic_time) == (Kind.SUMMARY, "2026-11-30T11:00:00Z", False)
    assert [plan.boundary_index for plan in reading.checkpoints()] == [4]
    assert not any("no time" in note for note in reading.report().notes)
    assert (reading.facts().started, reading.facts().last_activity) == ("2026-11-30T10:00:00Z", "2026-11-30T11:00:00Z")


def test_rows_of_a_live_stream_are_not_taken_for_log_lines():
    rows = [{"type": message["role"], "session_id": "s", "message": message} for message in CHAT]
    assert reader_for("".join(json.dumps(row) + "\n" for row in rows).encode()) is None
    assert reader_for(json.dumps(rows).encode()) is None


def test_a_request_whose_head_is_too_long_is_kept(monkeypatch):
    monkeypatch.setattr(json_scan, "MAX_LINE", 3_000)
    monkeypatch.setattr(json_scan, "READ_SIZE", 1_000)
    requests = json.dumps([{"tools": ["x" * 9_000], "system": "a", "messages": CHAT}, {"messages": CHAT, "system": "b"}]).encode()
    reading = AnthropicMessagesReader().read(io.BytesIO(requests))
    records = list(reading)
    assert b"".join(record.raw for record in records) == requests
    assert [len(entries(records, child.key)) for child in reading.child_sessions()] == [4, 5]
    assert "too_long" in problems(reading)


def test_requests_one_a_line_are_sessions_with_their_own_system_prompts():
    lines = [{"system": f"You are {name}.", "messages": CHAT} for name in ("Ada", "Olga")]
    reading, records = read("".join(json.dumps(line) + "\n" for line in lines), "requests.jsonl")
    assert [child.key for child in reading.child_sessions()] == ["conversation-1", "conversation-2"]
    assert [said(entries(records, child.key)[0])[0][1] for child in reading.child_sessions()] == ["You are Ada.", "You are Olga."]
    assert [entry.kind for entry in entries(records)] == [Kind.CALL, Kind.RESULT] * 2


def test_nothing_outside_is_an_image():
    block = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [block]}]}
    found = entries(read([ASK, USE, result, {"role": "user", "content": [block]}])[1])
    assert all(part.kind is not PartKind.IMAGE for entry in found for part in entry.parts)
    assert said(found[2]) == [("result", "[image at https://example.org/a.png]")]


@given(data=st.data())
def test_reading_never_raises_and_never_loses_a_byte(data):
    raw = bytearray((DATA / "anthropic_request.json").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(raw) - 1))
        end = place + data.draw(st.integers(0, 40))
        raw[place:end] = data.draw(st.sampled_from(DAMAGE))
    source = bytes(raw)
    reader_for(source)
    reading = AnthropicMessagesReader().read(io.BytesIO(source))
    assert b"".join(record.raw for record in reading) == source
    reading.report(), reading.facts(), reading.child_sessions(), reading.checkpoints()


@pytest.mark.parametrize("value", [None, 7, True, [], {}, "x", [None], [7], [[]], [{}], [{"type": []}], [{"type": "tool_result"}]])
def test_values_of_any_shape_are_survived(value):
    messages = [{"role": role, "content": value, "usage": value, "id": value} for role in ("user", "assistant", "system")]
    blocks = ["text", "thinking", "image", "document", "tool_use", "compaction", "search_result", "web_search_tool_result", "tool_result"]
    fields = ("text", "source", "content", "input", "thinking", "id", "tool_use_id", "title", "is_error")
    messages += [{"role": "assistant", "content": [{"type": kind, **dict.fromkeys(fields, value)}]} for kind in blocks]
    source = json.dumps({"model": value, "messages": messages, "system": value, "tools": value, "usage": value}).encode()
    reading = AnthropicMessagesReader().read(io.BytesIO(source))
    assert b"".join(record.raw for record in reading) == source
    reading.report()


@pytest.mark.django_db
def test_a_request_is_imported_with_its_checkpoint_and_exported_byte_for_byte(tmp_path, client, operator):
    path = tmp_path / "plan.json"
    path.write_bytes((DATA / "anthropic_request.json").read_bytes())
    session = Session.objects.get(pk=take(path).session_id)
    assert (session.agent, session.title, session.model) == ("anthropic-messages", "Plan the week of the bakery.", "claude-sonnet-4-5")
    assert b"".join(source_bytes(session.source_files.get())) == path.read_bytes()
    plan = Compaction.objects.get(session=session)
    assert (plan.lineage, plan.tokens_before) == (Lineage.AGENT, 500)
    seen = load_view(session, Lineage.AGENT)
    assert [message.role.value for message in seen] == ["system", "assistant", "user"]
    assert {part.fate for message in seen for part in message.parts} == {Fate.VERBATIM}
    client.force_login(operator)
    assert [client.get(f"/sessions/{session.pk}/{page}").status_code for page in ("", "compactions/", "raw/")] == [200, 200, 200]


@pytest.mark.parametrize(
    "told", ["<system-reminder>\nToday.\n</system-reminder>", "<local-command-caveat>Not sent.</local-command-caveat>"]
)
def test_a_title_is_what_a_person_asked_and_not_what_an_agent_put_before_it(told):
    rows = [{"role": "user", "content": [{"type": "text", "text": text, "cache_control": None} for text in (told, "Plan it")]}]
    reading, _ = read({"system": "You help.", "messages": rows}, "messages.json")
    assert reading.facts().title == "Plan it"
