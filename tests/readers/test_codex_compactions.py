"""Codex's own compactions and copies: one boundary each, what is sent afterwards, and what another session had before."""

import pytest

from sessions_app.engine.messages import sent_parts
from sessions_app.engine.terms import Kind, Role, SegmentKind, Trigger
from tests.readers.codex_rollouts import (
    NAME,
    PARENT,
    agent_view,
    call,
    compacted,
    context,
    count,
    encode,
    event,
    item,
    message,
    meta,
    output,
    problems,
    read,
    said,
    user,
)

SUMMARY = "Another language model started to solve this problem and produced a summary."
ENVIRONMENT = "<environment_context>\n  <cwd>/home/dev/shop</cwd>\n</environment_context>"
MARKS = {
    "event": event("context_compacted"),
    "item": event("item_completed", item={"type": "ContextCompaction"}, started_at_ms=10, completed_at_ms=35),
}


def sent(*rows):
    """(role, text) of all that the agent sends next."""
    return [(view.role.value, part.text) for view in agent_view(*read(*rows)) for part in sent_parts(view)]


def plan(checkpoint):
    return [(segment.kind.value, segment.payload.text if segment.payload else segment.first) for segment in checkpoint.segments]


def test_a_plan_names_the_entries_that_are_kept_and_holds_the_text_of_what_was_written_anew():
    reading, _ = read(
        meta(base_instructions="Be brief."),
        message("developer", "<permissions instructions>\nAll."),
        message("user", ENVIRONMENT),
        user("One"),
        said("1"),
        user("Two"),
        said("2"),
        compacted(
            user("One"), message("developer", "<permissions instructions>\nAll."), message("user", ENVIRONMENT), user("Two"), user(SUMMARY)
        ),
        user("Three"),
    )
    (checkpoint,) = reading.checkpoints()
    assert plan(checkpoint) == [
        ("entry", 0),
        ("entry", 3),
        ("synthetic", "<permissions instructions>\nAll."),
        ("synthetic", ENVIRONMENT),
        ("entry", 5),
        ("synthetic", SUMMARY),
        ("range", 8),
    ]
    assert (checkpoint.divider_index, checkpoint.boundary_index, checkpoint.summary) == (7, 8, "What came before.")


def test_what_is_sent_stands_in_the_order_of_the_replacement_and_goes_on_behind_it():
    rows = [meta(), user("One"), said("1"), user("Two"), said("2")]
    told = compacted(user("One"), message("user", ENVIRONMENT), user("Two"), user(SUMMARY))
    behind = [call("c", cmd="ls"), output("c", "a.py"), user("Three")]
    assert [text.strip() for _, text in sent(*rows, told, *behind)] == [
        "One", ENVIRONMENT, "Two", SUMMARY, '{"cmd": "ls"}', "a.py", "Three",
    ]  # fmt: skip


def test_a_prompt_that_was_cut_is_another_text_although_it_keeps_its_id():
    reading, _ = read(meta(), user("A long prompt", "m1"), said(), compacted(user("A long", "m1"), user(SUMMARY)))
    assert plan(reading.checkpoints()[0])[0] == ("synthetic", "A long")


def test_the_same_words_said_twice_are_two_entries_of_the_plan():
    reading, _ = read(meta(), user("Go on"), said(), user("Go on"), said("x"), compacted(user("Go on"), user("Go on")))
    assert plan(reading.checkpoints()[0])[:2] == [("entry", 0), ("entry", 2)]


def test_calls_that_are_kept_are_found_by_their_id():
    kept = [call("c"), output("c", "long")]
    reading, _ = read(meta(), user("One"), *kept, compacted(user("One"), *kept))
    assert plan(reading.checkpoints()[0]) == [("entry", 0), ("entry", 1), ("entry", 2), ("range", 4)]


def test_older_files_without_a_replacement_keep_all_prompts_and_the_summary():
    bare = compacted(text="Old summary")
    del bare["payload"]["replacement_history"]
    reading, _ = read(meta(), message("user", ENVIRONMENT), user("One"), said(), user("Two"), said(), bare)
    assert plan(reading.checkpoints()[0]) == [("entry", 1), ("entry", 3), ("synthetic", "Old summary"), ("range", 6)]


@pytest.mark.parametrize("order", ["row event", "event row", "row item event", "item event row", "row event item", "row"])
def test_a_compaction_is_one_boundary_however_many_rows_tell_of_it(order):
    told = {**MARKS, "row": compacted(user("One"), user(SUMMARY))}
    reading, records = read(meta(), user("One"), said(), *(told[word] for word in order.split()), user("Two"))
    dividers = [record.entry for record in records if record.entry is not None and record.entry.kind is Kind.COMPACTED]
    assert (len(dividers), len(reading.checkpoints())) == (1, 1)
    assert reading.checkpoints()[0].divider_index == 2
    assert reading.checkpoints()[0].segments[-1].first == 3


def test_two_compactions_with_nothing_between_them_are_two():
    reading, records = read(meta(), user("One"), said(), compacted(user("One")), *MARKS.values(), compacted(user("One")), *MARKS.values())
    assert [checkpoint.divider_index for checkpoint in reading.checkpoints()] == [2, 3]
    assert sum(record.entry is not None and record.entry.kind is Kind.COMPACTED for record in records) == 2


def test_an_event_alone_is_a_divider_without_a_plan():
    reading, records = read(meta(), user("One"), said(), event("context_compacted"), user("Two"))
    assert reading.checkpoints() == []
    assert [record.entry.kind for record in records if record.entry][2] is Kind.COMPACTED


def test_an_encrypted_summary_is_said_to_be_unreadable():
    rows = [meta(), user("One"), said(), compacted(user("One"), item("compaction", encrypted_content="g" * 99), text="")]
    reading, records = read(*rows)
    (checkpoint,) = reading.checkpoints()
    assert (checkpoint.summary, checkpoint.detail["summary_readable"]) == ("", False)
    assert "can't be read here" in records[-1].entry.parts[0].text
    assert sent(*rows)[-1] == ("user", "[A summary that only its provider can read stands here: 99 characters of ciphertext.]")


def test_a_summary_that_the_provider_put_between_the_items_is_a_boundary_too():
    reading, _ = read(meta(), user("One"), said(), item("compaction", encrypted_content="g" * 9), user("Two"))
    (checkpoint,) = reading.checkpoints()
    assert [segment.kind for segment in checkpoint.segments] == [SegmentKind.SYNTHETIC, SegmentKind.RANGE]


def test_what_the_agent_got_as_its_summary_is_shown_to_people_and_never_sent():
    asked = said("## Goal\nAll of it")
    asked["metadata"] = {"compaction_output": True}
    rows = [
        meta(),
        user("One"),
        said("1"),
        count(100, 5),
        asked,
        count(190, 9),
        compacted(user("One"), user(SUMMARY)),
        count(190, 9, last=0),
    ]
    reading, records = read(*rows)
    entry = records[4].entry
    assert (entry.role, entry.kind, entry.usage.prompt) == (Role.NOTICE, Kind.SUMMARY, 90)
    assert "## Goal\nAll of it" not in [text for _, text in sent(*rows)]
    assert reading.checkpoints()[0].tokens_before == 105


def test_the_agents_own_count_of_what_it_left_belongs_to_the_boundary():
    after = count(100, 5)
    after["payload"]["info"]["last_token_usage"] = {"input_tokens": 0, "total_tokens": 30}
    reading, _ = read(meta(), user("One"), said("1"), count(100, 5), compacted(user("One")), after, MARKS["item"])
    (checkpoint,) = reading.checkpoints()
    assert (checkpoint.tokens_before, checkpoint.tokens_after, checkpoint.duration_ms) == (105, 30, 25)


@pytest.mark.parametrize(
    ("rows", "trigger"),
    [
        ([event("task_started"), compacted(user("One")), event("task_complete")], Trigger.MANUAL),
        ([event("task_started"), compacted(user("One")), user("Two")], Trigger.THRESHOLD),
        ([event("task_started"), user("Two"), call("c"), output("c"), compacted(user("One")), said()], Trigger.THRESHOLD),
        ([event("task_started"), compacted(user("One"))], Trigger.EXTERNAL),
    ],
    ids=["a turn of its own", "before a prompt", "within a turn", "not told yet"],
)
def test_a_compaction_that_was_all_of_its_turn_was_asked_for(rows, trigger):
    reading, _ = read(meta(), user("One"), said(), event("task_complete"), *rows)
    assert reading.checkpoints()[0].trigger is trigger


def test_prompts_that_were_rolled_back_are_not_named_by_a_later_plan():
    back = event("thread_rolled_back", num_turns=1)
    reading, _ = read(meta(), user("Same"), said(), back, user("Same"), said("x"), compacted(user("Same")))
    assert plan(reading.checkpoints()[0])[0] == ("entry", 3)


def turn(name, prompt, total):
    return [
        event("task_started", turn_id=name),
        context(name),
        user(prompt),
        said(f"re {prompt}"),
        count(total, 1),
        event("task_complete", turn_id=name),
    ]


COPIED = [*turn("turn-a", "Theirs", 1_000)]
FORK = [meta(forked_from_id=PARENT), meta(PARENT), *COPIED, *turn("turn-b", "Mine", 1_500)]


@pytest.mark.parametrize("folders", [("2026/11/30", "2026/11/30"), ("2026/11/30", "2026/10/01"), (".", ".")])
def test_what_a_fork_copied_is_marked_and_costs_nothing_here(tmp_path, folders):
    mine, theirs = (tmp_path / "sessions" / folder for folder in folders)
    mine.mkdir(parents=True)
    theirs.mkdir(parents=True, exist_ok=True)
    (theirs / f"rollout-2026-11-30T09-00-00-{PARENT}.jsonl").write_bytes(encode([meta(PARENT), *COPIED]))
    reading, records = read(*FORK, name=str(mine / NAME))
    found = [record.entry for record in records if record.entry is not None]
    assert [entry.annex.get("inherited_from", "") for entry in found] == [PARENT, PARENT, "", ""]
    assert [entry.usage.prompt for entry in found if entry.usage] == [500]
    assert (reading.facts().inherited, reading.report().entries) == ({"": 2}, 4)
    assert [text for _, text in [(view.role, part.text) for view in agent_view(reading, records) for part in sent_parts(view)]] == [
        "Theirs", "re Theirs", "Mine", "re Mine",
    ]  # fmt: skip


def test_without_the_file_of_its_origin_a_fork_is_kept_whole_and_flagged(tmp_path):
    reading, records = read(*FORK, name=str(tmp_path / NAME))
    found = [record.entry for record in records if record.entry is not None]
    assert sum(entry.usage.prompt for entry in found if entry.usage) == 1_500
    assert not any(entry.annex for entry in found)
    assert problems(reading) == {"foreign_session": 1}
    (note,) = reading.report().notes
    assert PARENT in note
    assert "not found" in note


def test_a_session_that_was_resumed_repeats_its_own_meta_and_nothing_is_foreign():
    reading, _ = read(meta(), user(), said(), meta(), user(), said())
    assert problems(reading) == {}


@pytest.mark.parametrize("depth", [1, 2])
def test_a_sub_agent_names_the_session_that_a_person_began_and_the_call_that_started_it(depth):
    root = "0199aaaa-0000-7000-8000-0000000000ff" if depth == 2 else PARENT
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": depth}}}
    child, _ = read(meta("child", source=spawned, **({"session_id": root} if depth == 2 else {})), user("Look"))
    assert (child.identity().session_id, child.identity().agent_id) == (root, "child")
    assert child.facts().parent_source_session_id == root
    parent, _ = read(
        meta(PARENT), user(), call("c9", "spawn_agent", message="Look"), output("c9", '{"agent_id": "child", "nickname": "X"}')
    )
    assert parent.agent_calls() == {"child": "c9"}
