"""Rows of Codex rollouts: what becomes an entry, once, and what it costs."""

import base64
import io
import json
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.engine.terms import Kind, PartKind, Role
from sessions_app.readers.codex import CodexReader
from tests.readers.codex_rollouts import (
    THREAD,
    call,
    compacted,
    context,
    count,
    encode,
    entries,
    event,
    item,
    message,
    meta,
    output,
    problems,
    read,
    read_bytes,
    row,
    said,
    user,
)  # fmt: skip

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + struct.pack(">II", 64, 48) + b"\x08\x02\0\0\0"
ENVIRONMENT = "<environment_context>\n  <cwd>/home/dev/shop</cwd>\n</environment_context>"


def texts(found):
    return [entry.text for entry in found]


def test_what_is_told_by_an_item_and_by_events_is_one_entry():
    found = entries(
        meta(),
        user("Look around"),
        event("user_message", message="Look around"),
        event("item_completed", item={"type": "AgentMessage", "content": [{"type": "Text", "text": "Looking."}]}),
        event("agent_message", message="Looking."),
        said("Looking."),
        item("reasoning", summary=[{"type": "summary_text", "text": "Hm."}]),
        event("agent_reasoning", text="Hm."),
    )
    assert [(entry.role, entry.kind) for entry in found] == [
        (Role.USER, Kind.MESSAGE),
        (Role.ASSISTANT, Kind.MESSAGE),
        (Role.ASSISTANT, Kind.THINKING),
    ]


def test_a_prompt_that_only_an_event_holds_is_an_entry_and_its_late_item_is_none():
    assert texts(entries(meta(), event("user_message", message="Hi"))) == ["Hi"]
    assert texts(entries(meta(), event("user_message", message="Hi"), user("Hi"), said())) == ["Hi", "Done."]


def test_an_item_that_says_more_than_its_event_is_still_the_same_prompt():
    surrounded = "# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nFix a.py"
    reading, records = read(meta(), user(surrounded), event("user_message", message="Fix a.py"))
    assert [record.entry is not None for record in records] == [False, True, False]
    assert (reading.facts().title, reading.facts().title_source) == ("Fix a.py", "first-prompt")


def test_the_same_words_said_twice_are_two_prompts():
    rows = [user("Go on"), event("user_message", message="Go on"), said()]
    assert texts(entries(meta(), *rows, *rows)) == ["Go on", "Done.", "Go on", "Done."]


def test_instructions_and_surroundings_are_no_prompts():
    found = entries(
        meta(base_instructions={"text": "You are an agent."}),
        message("developer", "<permissions instructions>\nAll.", "<skills_instructions>\nNone."),
        message("user", "# AGENTS.md instructions for /home/dev/shop\n\n<INSTRUCTIONS>Be brief.</INSTRUCTIONS>", ENVIRONMENT),
        user("Start"),
        said(),
        message("user", "<turn_aborted>\nThe user interrupted."),
        message("developer", "<collaboration_mode># Plan"),
        user("Next"),
    )
    assert [(entry.role, entry.kind, entry.meta) for entry in found] == [
        (Role.SYSTEM, Kind.MESSAGE, True),
        (Role.SYSTEM, Kind.REMINDER, True),
        (Role.USER, Kind.REMINDER, True),
        (Role.USER, Kind.MESSAGE, False),
        (Role.ASSISTANT, Kind.MESSAGE, False),
        (Role.USER, Kind.REMINDER, True),
        (Role.USER, Kind.REMINDER, True),
        (Role.USER, Kind.MESSAGE, False),
    ]
    assert [len(entry.parts) for entry in found[1:3]] == [2, 2]


def test_what_the_agent_adds_behind_a_prompt_stays_behind_it():
    reading, records = read(meta(), user("Use the skill"), message("user", "<skill>\nHow to.</skill>"), said())
    assert [record.entry.kind for record in records[1:3]] == [Kind.MESSAGE, Kind.OTHER]
    assert reading.report().entries == 3


def test_the_kinds_that_newer_versions_name_decide_what_a_person_wrote():
    passed = {"content_item_kinds": ["user.text"]}
    typed = item(
        "message", role="user", content=[{"type": "input_text", "text": ENVIRONMENT}], internal_chat_message_metadata_passthrough=passed
    )
    injected = json.loads(json.dumps(typed))
    injected["payload"]["internal_chat_message_metadata_passthrough"]["content_item_kinds"] = ["environments.environment_context"]
    injected["payload"]["content"][0]["text"] = "Plain words"
    assert [entry.kind for entry in entries(meta(), injected, typed)] == [Kind.REMINDER, Kind.MESSAGE]


def test_reasoning_keeps_what_is_readable_and_only_the_size_of_its_ciphertext():
    both = item("reasoning", summary=[{"type": "summary_text", "text": "Plan."}], encrypted_content="gAAAA" * 10)
    found = entries(meta(), both, item("reasoning", summary=[], encrypted_content="xy"), item("reasoning", summary=[]))
    assert [[(part.kind, part.text, part.encrypted, part.length) for part in entry.parts] for entry in found] == [
        [(PartKind.THINKING, "Plan.", False, 5), (PartKind.THINKING, "", True, 50)],
        [(PartKind.THINKING, "", True, 2)],
    ]


def test_calls_of_every_sort_are_paired_with_their_results():
    patch = "*** Begin Patch\n*** Add File: a.py\n+x\n*** End Patch"
    reading, records = read(
        meta(),
        user(),
        call("c1", cmd="make"),
        item("custom_tool_call", call_id="c2", name="apply_patch", input=patch),
        item("local_shell_call", call_id="c3", action={"type": "exec", "command": ["ls"]}),
        item("tool_search_call", call_id="c4", arguments={"query": "mail"}),
        output("c1", "Chunk ID: ab\nWall time: 1.5000 seconds\nProcess exited with code 2\nOutput:\nno rule"),
        item("custom_tool_call_output", call_id="c2", output="Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess."),
        output("c3", '{"output":"a.py","metadata":{"exit_code":1,"duration_seconds":0.3}}'),
        item("tool_search_output", call_id="c4", tools=[]),
    )
    found = [record.entry for record in records if record.entry is not None][1:]
    calls, results = found[:4], found[4:]
    assert [(entry.parts[0].name, entry.parts[0].call_id) for entry in calls] == [
        ("exec_command", "c1"),
        ("apply_patch", "c2"),
        ("local_shell", "c3"),
        ("tool_search", "c4"),
    ]
    assert json.loads(calls[1].parts[0].text) == {"input": patch}
    assert [(entry.parts[0].name, entry.parts[0].is_error) for entry in results] == [
        ("exec_command", True),
        ("apply_patch", False),
        ("local_shell", True),
        ("tool_search", False),
    ]
    assert results[0].annex == {"exit_status": 2, "duration_ms": 1500}
    assert results[2].annex == {"exit_status": 1, "duration_ms": 300}
    assert len({entry.message_key for entry in calls}) == 1
    assert problems(reading) == {}


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ("plain", "plain"),
        ([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}], "a\nb"),
        ({"content": "no", "success": False}, "no"),
    ],
)
def test_results_come_as_text_as_items_or_with_their_success(told, text):
    found = entries(meta(), call("c"), output("c", told))
    assert (found[1].parts[0].text, found[1].parts[0].is_error) == (text, isinstance(told, dict))


def test_calls_without_result_and_results_without_call_are_told():
    reading, _ = read(meta(), user(), call("lost"), output("stray"))
    assert problems(reading) == {"orphan_result": 1, "unanswered_call": 1}


def test_images_become_blobs_whose_type_is_read_from_their_bytes():
    url = "data:image/svg+xml;base64," + base64.b64encode(PNG).decode()
    shown = item("message", role="user", content=[{"type": "input_text", "text": "See"}, {"type": "input_image", "image_url": url}])
    found = entries(meta(), shown, call("c", "view_image"), output("c", [{"type": "input_image", "image_url": url}]))
    image = found[0].parts[1]
    assert (image.kind, image.media_type, image.width, image.height) == (PartKind.IMAGE, "image/png", 64, 48)
    assert [(part.kind, part.call_id) for part in found[2].parts] == [(PartKind.RESULT, "c"), (PartKind.IMAGE, "c")]


def test_costs_are_the_differences_of_the_total_and_repeats_cost_nothing():
    found = entries(
        meta(),
        context(),
        user(),
        said("One"),
        call("c"),
        output("c"),
        count(1_000, 50, cached=600),
        count(1_000, 50, cached=600),
        said("Two"),
        count(2_500, 80, cached=1_500),
    )
    told = [(entry.text, entry.usage.prompt, entry.usage.cache_read, entry.usage.output) for entry in found if entry.usage]
    assert told == [("", 1_000, 600, 50), ("Two", 1_500, 900, 30)]
    assert {entry.model for entry in found if entry.role is Role.ASSISTANT} == {"gpt-5.5"}


def test_in_the_first_versions_the_count_stands_before_its_answer():
    answer = [item("reasoning", summary=[{"type": "summary_text", "text": "x"}]), call("c"), output("c")]
    found = entries(meta(), user(), count(100, 5), *answer, count(300, 9), said("End"))
    assert [(entry.kind, entry.usage.prompt) for entry in found if entry.usage] == [(Kind.THINKING, 100), (Kind.MESSAGE, 200)]


def test_a_total_that_begins_anew_is_a_cost_of_its_own():
    found = entries(meta(), user(), said(), count(900, 9), user(), said(), count(100, 1))
    assert sum(entry.usage.prompt for entry in found if entry.usage) == 1_000


def test_an_answer_is_held_back_until_its_count_is_there():
    rows = [meta(), user(), call("c"), output("c"), count(10, 1), user("Next")]
    reading = iter(CodexReader().read(io.BytesIO(encode(rows)), path=""))
    assert [next(reading).kind for _ in range(2)] == ["session_meta", "response_item/message"]
    assert next(reading).entry.usage.prompt == 10


def test_records_that_wait_for_no_count_do_not_pile_up():
    rows = [meta(), user(), said(), *(output("c", "x" * 100_000) for _ in range(100))]
    source = io.BytesIO(encode(rows))
    reading = iter(CodexReader().read(source, path=""))
    for _ in range(3):
        next(reading)
    assert source.tell() < 6_000_000 < len(source.getvalue())


def test_model_folder_window_name_and_open_turn_come_from_their_rows():
    rows = [meta(), event("task_started", turn_id="t"), context(model="gpt-5.5"), user(), said(), count(10, 1, window=100_000)]
    facts = read(*rows, event("thread_name_updated", thread_name="The shop"))[0].facts()
    assert (facts.model, facts.cwd, facts.branch, facts.version, facts.window) == ("gpt-5.5", "/home/dev/shop", "main", "0.171.0", 100_000)
    assert (facts.title, facts.title_source, facts.open_turn, facts.source_session_id) == ("The shop", "custom-title", True, THREAD)
    assert read(*rows, event("task_complete", turn_id="t"))[0].facts().open_turn is False


@pytest.mark.parametrize(("rows", "is_open"), [([user()], True), ([user(), call("c")], True), ([user(), said()], False)])
def test_without_events_of_turns_the_last_entry_tells_whether_one_is_open(rows, is_open):
    assert read(meta(), *rows)[0].facts().open_turn is is_open


def test_an_aborted_turn_says_so_to_people_only():
    found = entries(meta(), user(), call("c"), event("turn_aborted", reason="interrupted"), user("Other"))
    assert (found[2].role, found[2].text) == (Role.NOTICE, "The turn was aborted: interrupted")


def test_turns_that_were_rolled_back_leave_the_branch_but_not_the_history():
    reading, records = read(
        meta(),
        user("One"),
        said("1"),
        user("Two"),
        said("2"),
        user("Three"),
        said("3"),
        event("thread_rolled_back", num_turns=2),
        user("Four"),
    )
    assert reading.off_branch() == {"": [2, 3, 4, 5]}
    assert sum(record.entry is not None for record in records) == 8


@pytest.mark.parametrize("turns", [99, "all", -1, None, True])
def test_a_roll_back_of_any_number_never_takes_more_than_there_is(turns):
    reading, _ = read(meta(), user("One"), said("1"), event("thread_rolled_back", num_turns=turns))
    assert set(reading.off_branch().get("", [])) <= {0, 1}


def test_bad_lines_are_kept_and_named():
    reading, records = read(
        meta(), b"{broken\n", row("novelty", {"a": 1}), item("hologram"), {"timestamp": "x", "type": "event_msg"}, user()
    )
    assert problems(reading) == {"unreadable": 1, "unknown_type": 2, "bad_shape": 1}
    assert [record.kind for record in records][1:4] == ["unreadable", "novelty", "response_item/hologram"]


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\0\n",
        b'{"type":"session_meta","payload":{}}\n',
        b'{"type":"event_msg","payload":{"message":"x"}}\n',
        b'{"type":"response_item","payload":7}\n',
        b'{"type":["event_msg"],"payload":{"type":"x"}}\n',
        b'{"type":"user","uuid":"u","sessionId":"s","message":{"content":"x"}}\n',
        b'{"type":"thread.started","thread_id":"t"}\n',
    ],
)
def test_other_formats_and_junk_are_not_taken_for_a_rollout(head):
    assert CodexReader().sniff(head) is False


@pytest.mark.parametrize("kind", ["session_meta", "response_item", "event_msg", "turn_context", "compacted"])
def test_a_rollout_is_known_by_any_of_its_rows(kind):
    rows = {"session_meta": meta(), "response_item": user(), "event_msg": event("task_started"), "turn_context": context()}
    assert CodexReader().sniff(encode([rows.get(kind) or compacted(user())])) is True


def test_a_first_row_longer_than_what_is_looked_at_still_tells():
    assert CodexReader().sniff(encode([meta(base_instructions={"text": "x" * 400_000})])[:262_144]) is True


ROWS = [
    meta(base_instructions="Be brief."), event("task_started", turn_id="turn-1"), context(), message("developer", "<apps_instructions>"),
    user("One", "u1"), event("user_message", message="One"), item("reasoning", summary=[{"text": "x"}], encrypted_content="zz"),
    call("c"), output("c"), count(10, 1), item("web_search_call", action={"type": "search", "query": "x"}), said("1"), count(30, 3),
    compacted(user("One", "u1"), message("developer", "again"), user("Another language model"), item("compaction", encrypted_content="q")),
    event("context_compacted"), event("thread_rolled_back", num_turns=1), meta("another"), event("turn_aborted", reason="x"),
]  # fmt: skip
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 2**70) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)


def mutated(value, path, replacement):
    """The value with what lies at a path (a number at each level picks a member) replaced, or left out."""
    if not path or not isinstance(value, dict | list) or not value:
        return replacement
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = keys[path[0] % len(keys)]
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[key] = mutated(value[key], path[1:], replacement)
    return copy


@settings(max_examples=300, deadline=None)
@given(
    changes=st.lists(st.tuples(st.integers(0, len(ROWS) - 1), st.lists(st.integers(0, 9), max_size=5), anything), max_size=6),
    order=st.permutations(range(len(ROWS))),
    keep=st.booleans(),
)
def test_no_change_of_any_row_makes_reading_fail_or_lose_a_byte(changes, order, keep):
    rows = [ROWS[place] for place in (sorted(order) if keep else order)]
    for place, path, replacement in changes:
        rows[place] = mutated(rows[place], path, replacement)
    data = b"".join(json.dumps(told).encode() + b"\n" for told in rows)
    reading, records = read_bytes(data)
    assert b"".join(record.raw for record in records) == data
    ordinals = sum(record.entry is not None for record in records)
    assert reading.report().entries == ordinals
    assert all(0 <= place < ordinals for places in reading.off_branch().values() for place in places)
    assert all(checkpoint.divider_index < ordinals for checkpoint in reading.checkpoints())
    reading.facts()
    assert CodexReader().sniff(data) in (True, False)


@settings(max_examples=150, deadline=None)
@given(cut=st.integers(0, 10_000), noise=st.binary(max_size=30))
def test_bytes_cut_or_thrown_in_anywhere_are_survived(cut, noise):
    data = encode(ROWS)
    cut %= len(data)
    data = data[:cut] + noise + data[cut:]
    assert b"".join(record.raw for record in read_bytes(data)[1]) == data
