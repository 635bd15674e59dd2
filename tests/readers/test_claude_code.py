import base64
import io
import json
import struct

import pytest

from sessions_app.engine.entries import INLINE_CHARS, PREVIEW_CHARS
from sessions_app.engine.terms import Kind, PartKind, Role
from sessions_app.readers.base import MAX_LISTED_PROBLEMS, UsageCorrection
from sessions_app.readers.claude_code import ClaudeCodeReader
from sessions_app.readers.detect import reader_for
from tests.readers.rows import SESSION, answer, call, encode, problems, prompt, read, reminder, result, system

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + struct.pack(">II", 64, 48) + b"\x08\x02\0\0\0"


def entries(*rows, **options):
    _, records = read(*rows, **options)
    return [record.entry for record in records if record.entry is not None]


def test_the_rows_of_one_answer_share_their_message_and_are_billed_once_at_the_largest_output():
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    found = entries(
        prompt("u", None),
        answer("a1", "u", thinking, message="m", output=3),
        answer("a2", "a1", "Looking.", message="m", output=9),
        answer("a3", "a2", call("c"), message="m", output=7),
    )
    assert [(entry.kind, entry.message_key) for entry in found[1:]] == [(Kind.THINKING, "m"), (Kind.MESSAGE, "m"), (Kind.CALL, "m")]
    assert [entry.usage.output if entry.usage else None for entry in found] == [None, None, 9, None]
    assert found[2].usage.prompt == 130


def test_of_equal_usage_the_last_row_of_the_message_carries_it():
    found = entries(prompt("u", None), answer("a1", "u", "One", message="m"), answer("a2", "a1", "Two", message="m"))
    assert [entry.usage is not None for entry in found] == [False, False, True]


def test_a_larger_usage_that_comes_after_the_first_was_stored_is_named_for_correction():
    rows = [prompt("u", None), answer("a1", "u", "One", message="m", output=1), answer("a2", "a1", "Two", message="m", output=8)]
    reading = ClaudeCodeReader().read(io.BytesIO(encode(rows)), path=f"{SESSION}.jsonl")
    for _record in reading:
        reading.mark_written()
    assert list(reading.usage_corrections()) == [UsageCorrection(ordinal=1)]


def test_answers_without_any_message_id_are_one_message_when_they_follow_on_the_same_prompt():
    rows = [answer(uuid, None, "x") for uuid in ("a1", "a2")] + [prompt("u", "a2"), answer("a3", "u", "y")]
    for row in rows:
        row["message"].pop("id", None)
    found = entries(*rows)
    assert [entry.message_key for entry in found] == ["a1", "a1", "", "a3"]
    assert sum(entry.usage is not None for entry in found) == 2


def test_synthetic_answers_and_api_errors_cost_nothing_and_errors_are_for_people_only():
    synthetic = answer("s", "u", "No response requested.")
    synthetic["message"]["model"] = "<synthetic>"
    error = answer("e", "s", "API Error: 529", isApiErrorMessage=True)
    _, first, second = entries(prompt("u", None), synthetic, error)
    assert (first.role, first.usage, first.model) == (Role.ASSISTANT, None, "")
    assert (second.role, second.kind, second.usage) == (Role.NOTICE, Kind.ERROR, None)


def test_a_call_keeps_its_arguments_and_its_result_learns_the_tools_name_and_small_facts():
    told = {"stdout": "x" * 50_000, "interrupted": False, "durationMs": 12, "agentId": "abc", "structuredPatch": [{"lines": ["+a"]}]}
    found = entries(
        prompt("u", None),
        answer("a", "u", call("c", "Bash", command="make", timeout=5)),
        result("r", "a", "c", "Exit code 2\nno rule", is_error=True, toolUseResult=told),
    )
    assert json.loads(found[1].parts[0].text) == {"command": "make", "timeout": 5}
    part = found[2].parts[0]
    assert (found[2].role, part.kind, part.name, part.call_id, part.is_error) == (Role.TOOL, PartKind.RESULT, "Bash", "c", True)
    assert found[2].annex == {"exit_status": 2, "duration_ms": 12, "agent_id": "abc", "patch": [{"lines": ["+a"]}]}


def test_long_texts_move_into_blobs_and_leave_a_preview_and_their_length():
    text = "é" * (INLINE_CHARS + 1)
    (entry,) = entries(prompt("u", None, text))
    part = entry.parts[0]
    assert (part.text, part.length) == ("é" * PREVIEW_CHARS, INLINE_CHARS + 1)
    assert entry.blobs[part.blob][1].decode() == text
    assert entries(prompt("u", None, "x" * INLINE_CHARS))[0].blobs == {}


def test_images_of_messages_and_results_become_blobs_whose_type_is_read_from_their_bytes():
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/svg+xml", "data": base64.b64encode(PNG).decode()}}
    found = entries(
        prompt("u", None, [{"type": "text", "text": "See"}, block]),
        answer("a", "u", call("c", "Read")),
        result("r", "a", "c", [{"type": "text", "text": "shown"}, block]),
    )
    image = found[0].parts[1]
    assert (image.kind, image.media_type, image.width, image.height, image.size_bytes) == (PartKind.IMAGE, "image/png", 64, 48, len(PNG))
    assert [(part.kind, part.call_id) for part in found[2].parts] == [(PartKind.RESULT, "c"), (PartKind.IMAGE, "c")]
    assert found[2].parts[1].blob == image.blob


@pytest.mark.parametrize("data", ["%%%not base64", base64.b64encode(b"<svg onload=alert(1)>").decode(), 7, None])
def test_what_only_claims_to_be_an_image_gets_no_blob(data):
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    (entry,) = entries(prompt("u", None, [block]))
    assert entry.parts[0].blob == ""
    assert entry.blobs == {}


def test_reminders_say_what_was_sent_and_whether_it_is_glued_to_the_result_before():
    found = entries(
        prompt("u", None),
        reminder("r1", "u", "<total_tokens>9</total_tokens>"),
        reminder("r2", "r1", "Today", renderedBesideToolResult=True),
    )
    assert [(entry.role, entry.kind, entry.meta) for entry in found[1:]] == [(Role.USER, Kind.REMINDER, True)] * 2
    assert [(entry.parts[0].text, entry.parts[0].glued) for entry in found[1:]] == [
        ("<total_tokens>9</total_tokens>", True),
        ("Today", False),
    ]


def test_attachments_of_older_versions_are_sent_when_they_hold_content_and_a_queued_command_is_a_persons_message():
    def attachment(uuid, **body):
        return {**prompt(uuid, None), "type": "attachment", "message": None, "attachment": body}

    found = entries(
        attachment("1", type="queued_command", prompt="And the tests"),
        attachment("2", type="nested_memory", path="/p/CLAUDE.md", content={"content": "Be brief"}),
        attachment("3", type="hook_success", stdout="ok", content=""),
        attachment("4", type="hook_blocking_error", blockingError={"blockingError": "no"}),
        attachment("5", type="something_new", value=1),
        attachment("6", type="prompt_snapshot", systemPrompt=["x"]),
        attachment("7", type="agent_listing_delta", addedTypes=["a", "b"], addedLines=["- a: finds", "- b: plans"]),
        attachment("8", type="deferred_tools_delta", addedNames=[], addedLines=[]),
    )
    assert [(entry.role, entry.kind, entry.meta) for entry in found] == [
        (Role.USER, Kind.MESSAGE, False),
        (Role.USER, Kind.ATTACHMENT, True),
        (Role.NOTICE, Kind.OTHER, False),
        (Role.USER, Kind.ATTACHMENT, True),
    ]
    assert found[1].parts[0].text == "/p/CLAUDE.md\nBe brief"
    assert found[3].parts[0].text == "- a: finds\n- b: plans"


@pytest.mark.parametrize(
    ("text", "is_meta"),
    [
        ("Fix it", False),
        ("<command-name>/compact</command-name>\n<command-args></command-args>", True),
        ("<command-name>/deploy</command-name>", False),
        ("<local-command-stdout>Compacted</local-command-stdout>", True),
        ("[Request interrupted by user]", True),
    ],
)
def test_what_a_machine_wrote_on_the_users_side_starts_no_turn(text, is_meta):
    (entry,) = entries(prompt("u", None, text))
    assert entry.meta is is_meta


def test_rows_without_entry_are_counted_by_kind_and_unknown_kinds_are_listed_once():
    odd = [{"type": "brand-new", "sessionId": SESSION, "value": number} for number in range(700)]
    reading, records = read(prompt("u", None), {"type": "mode", "mode": "x", "sessionId": SESSION}, *odd, system("s", "u", "turn_duration"))
    report = reading.report()
    assert report.by_kind == {"user": 1, "mode": 1, "brand-new": 700, "system/turn_duration": 1}
    assert problems(reading) == {"unknown_type": 700}
    assert [problem.detail for problem in report.problems] == ["brand-new"]
    assert (report.records, report.entries, len(records)) == (703, 2, 703)


def test_the_list_of_problems_is_bounded_and_its_counts_are_complete():
    reading, _ = read(prompt("u", None), *[b"{broken\n"] * 600)
    assert len(reading.report().problems) == MAX_LISTED_PROBLEMS
    assert problems(reading) == {"unreadable": 600}
    assert (reading.report().problems[0].line, reading.report().problems[0].offset) == (2, len(encode([prompt("u", None)])))


def test_a_uuid_that_comes_again_is_a_record_without_entry():
    rows = [prompt("u", None), answer("a", "u")]
    reading, records = read(*rows, *rows)
    assert [record.entry is None for record in records] == [False, False, True, True]
    assert (reading.report().duplicates, problems(reading)) == (2, {"duplicate": 2})


def test_calls_without_result_and_results_without_call_are_reported():
    reading, _ = read(prompt("u", None), answer("a", "u", call("c1")), result("r", "a", "elsewhere"))
    assert problems(reading) == {"unanswered_call": 1, "orphan_result": 1}


def test_times_without_zone_are_reported_and_missing_ones_borrowed_from_the_row_before():
    naive, missing = prompt("u", None), prompt("v", "u")
    naive["timestamp"] = "2026-11-30T10:00:00"
    del missing["timestamp"]
    reading, records = read(naive, missing)
    assert problems(reading) == {"naive_time": 1}
    assert (records[1].entry.timestamp, records[1].entry.synthetic_time) == ("2026-11-30T10:00:00", True)


@pytest.mark.parametrize("row", [{"type": "user"}, {"type": "assistant", "message": 7}, {"type": "user", "message": {"content": {"a": 1}}}])
def test_a_known_type_in_a_shape_that_is_not_known_is_kept_and_reported(row):
    reading, records = read(prompt("u", None), {**row, "uuid": "x", "parentUuid": "u", "sessionId": SESSION})
    assert records[1].entry is None
    assert problems(reading) == {"bad_shape": 1}


@pytest.mark.parametrize(
    ("rows", "title", "source"),
    [
        ([], "Do it", "first-prompt"),
        ([{"type": "summary", "summary": "S", "leafUuid": "l"}], "S", "summary"),
        ([{"type": "summary", "summary": "S", "leafUuid": "l"}, {"type": "last-prompt", "lastPrompt": "L"}], "L", "last-prompt"),
        ([{"type": "ai-title", "aiTitle": "A"}, {"type": "last-prompt", "lastPrompt": "L"}], "A", "ai-title"),
        ([{"type": "custom-title", "customTitle": "C"}, {"type": "ai-title", "aiTitle": "A"}], "C", "custom-title"),
        ([{"type": "custom-title", "customTitle": "C"}, {"type": "custom-title", "customTitle": ""}], "Do it", "first-prompt"),
    ],
)
def test_the_title_comes_from_the_best_source_and_the_last_of_its_kind(rows, title, source):
    reading, _ = read(prompt("i", None, "[Request interrupted by user]"), prompt("u", "i"), *rows)
    facts = reading.facts()
    assert (facts.title, facts.title_source) == (title, source)


def test_facts_name_folder_branch_version_model_and_the_open_turn():
    reading, _ = read(prompt("u", None), answer("a", "u", call("c")))
    facts = reading.facts()
    assert (facts.cwd, facts.branch, facts.version, facts.model) == ("/home/dev/shop", "main", "2.1.332", "claude-opus-4-5")
    assert facts.open_turn
    reading, _ = read(prompt("u", None), answer("a", "u", "Done"))
    assert not reading.facts().open_turn


def test_a_session_is_named_by_its_file_else_by_most_of_its_rows():
    other = "99999999-2222-4333-8444-555555555555"
    resumed = [{**prompt("o", None), "sessionId": other}, prompt("u", "o"), answer("a", "u")]
    assert read(*resumed, name=f"{other}.jsonl")[0].identity().session_id == other
    reading, _ = read(*resumed, name="copy.jsonl")
    assert reading.identity().session_id == SESSION
    assert problems(reading) == {"foreign_session": 1}


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\x89PNG\r\n",
        b'{"speaker":"user","content":"hi"}\n',
        b'{"type":"session_meta","payload":{}}\n',
        b'{"type":"system","subtype":"init","session_id":"x","uuid":"y","cwd":"/"}\n',
        b'{"type":"user","uuid":"x","parentUuid":null,"sessionId":"s","message":{"role":"user","parts":[]}}\n',
        b"[" * 10_000,
        b"\xff\xfe\0\0",
    ],
)
def test_other_formats_and_junk_are_not_taken_for_a_session(head):
    assert reader_for(head) is None


def test_a_file_whose_first_line_is_longer_than_the_head_is_still_known():
    head = encode([prompt("u", None, "x" * 400_000)])[: 1 << 18]
    reader = reader_for(head)
    assert reader is not None
    assert reader.name == "claude-code"


@pytest.mark.parametrize(
    ("told", "cache_write"),
    [
        ({"cache_creation_input_tokens": 0, "cache_creation": {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 4}}, 34),
        ({"cache_creation_input_tokens": 34, "cache_creation": {"ephemeral_5m_input_tokens": 34}}, 34),
        ({"cache_creation": {"ephemeral_5m_input_tokens": "many"}}, 0),
    ],
)
def test_what_was_written_into_the_cache_counts_once_wherever_it_stands(told, cache_write):
    row = answer("a1", "u1")
    row["message"]["usage"] = {"input_tokens": 10, "output_tokens": 5, **told}
    assert [entry.usage.cache_write for entry in entries(prompt("u1", None), row) if entry.usage] == [cache_write]


def test_a_title_counts_however_far_from_the_end_it_stands():
    long = [prompt(f"u{number}", f"u{number - 1}" if number else None, "x" * 2_000) for number in range(100)]
    reading, _ = read({"type": "custom-title", "customTitle": "Named early", "sessionId": SESSION}, *long)
    assert reading.facts().title == "Named early"
