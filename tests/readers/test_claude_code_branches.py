from hypothesis import given
from hypothesis import strategies as st

from sessions_app.engine.terms import Kind, SegmentKind, Trigger
from tests.readers.rows import answer, boundary, call, problems, prompt, read, reminder, result, summary, system


def off_branch(*rows):
    """The uuids of the entries that are off the branch."""
    reading, records = read(*rows)
    entries = [record.entry for record in records if record.entry is not None and not record.entry.child_key]
    return [entries[ordinal].source_id for ordinal in reading.off_branch().get("", [])]


def plan(checkpoint):
    return [(segment.kind, segment.first, segment.last) for segment in checkpoint.segments]


RANGE, ENTRY = SegmentKind.RANGE, SegmentKind.ENTRY


def test_a_rewound_prompt_takes_its_answer_and_its_reminders_with_it():
    assert off_branch(
        prompt("u1", None), answer("a1", "u1"),
        prompt("u2", "a1"), reminder("r2", "u2", "x"), answer("a2", "r2"),
        prompt("u3", "a1"), reminder("r3", "u3", "x"), answer("a3", "r3"),
    ) == ["u2", "r2", "a2"]  # fmt: skip


def test_parallel_results_further_blocks_and_their_attachments_stay_on_the_branch():
    assert off_branch(
        prompt("u", None),
        answer("a1", "u", call("c1"), message="m"), answer("a2", "a1", call("c2"), message="m"),
        result("r1", "a1", "c1"), reminder("x1", "r1", "t"),
        result("r2", "a2", "c2"), reminder("x2", "r2", "t"),
        answer("b", "r1"),
    ) == []  # fmt: skip


def test_reminders_that_led_to_an_abandoned_prompt_are_abandoned_with_it():
    assert off_branch(
        prompt("u", None), answer("a", "u"),
        reminder("x1", "a", "t"), prompt("u1", "x1"), answer("b1", "u1"),
        prompt("u2", "a"), answer("b2", "u2"),
    ) == ["x1", "u1", "b1"]  # fmt: skip


def test_a_second_beginning_in_one_file_leaves_the_first_conversation_behind():
    assert off_branch(prompt("u1", None), answer("a1", "u1"), prompt("u2", None), answer("a2", "u2")) == ["u1", "a1"]


def test_a_row_that_names_no_parent_at_all_follows_the_row_before():
    rows = [prompt("u1", None), answer("a1", "u1"), prompt("u2", None), answer("a2", "u2")]
    del rows[2]["parentUuid"]
    assert off_branch(*rows) == []


def test_a_parent_that_is_not_there_is_reported_and_bridged_by_the_order_of_the_file():
    rows = [prompt("u1", None), answer("a1", "u1"), prompt("u2", "gone"), answer("a2", "u2")]
    assert off_branch(*rows) == []
    assert problems(read(*rows)[0]) == {"orphan": 1}


def test_a_parent_that_comes_later_in_the_file_is_found():
    rows = [answer("a1", "u1"), prompt("u1", None), answer("a2", "a1")]
    assert off_branch(*rows) == []
    assert problems(read(*rows)[0]) == {}


def test_a_cycle_ends_reports_itself_and_loses_nothing_before_it():
    rows = [prompt("u", None), answer("a", "u"), prompt("x", "z"), answer("y", "x"), prompt("z", "y")]
    assert off_branch(*rows) == []
    assert problems(read(*rows)[0]) == {"cycle": 1}


def test_a_row_that_is_its_own_parent_ends():
    assert off_branch(prompt("u", None), prompt("v", "v")) == []


@given(st.data())
def test_any_tree_ends_and_keeps_the_newest_row(data):
    count = data.draw(st.integers(1, 14))
    rows = []
    for number in range(count):
        parent = data.draw(st.one_of(st.none(), st.integers(0, count + 1)))
        uuid, above = f"n{number}", None if parent is None else f"n{parent}"
        make = data.draw(st.sampled_from(["prompt", "answer", "reminder", "boundary", "side"]))
        if make == "prompt":
            rows.append(prompt(uuid, above))
        elif make == "answer":
            rows.append(answer(uuid, above, message=data.draw(st.sampled_from(["m1", "m2"]))))
        elif make == "reminder":
            rows.append(reminder(uuid, above, "t"))
        elif make == "boundary":
            rows.append(boundary(uuid, above))
        else:
            rows.append(prompt(uuid, above, isSidechain=True))
    reading, records = read(*rows)
    counts: dict[str, int] = {}
    newest: dict[str, int] = {}
    for record in records:
        if record.entry is not None:
            lane = record.entry.child_key
            if record.entry.kind is Kind.MESSAGE:
                newest[lane] = counts.get(lane, 0)
            counts[lane] = counts.get(lane, 0) + 1
    off = reading.off_branch()
    assert all(newest[lane] not in off.get(lane, []) for lane in newest)
    assert all(0 <= ordinal < counts[lane] for lane, ordinals in off.items() for ordinal in ordinals)
    for checkpoint in reading.checkpoints():
        assert all((segment.first or 0) <= counts[checkpoint.child_key] for segment in checkpoint.segments)


def test_the_branch_goes_on_across_a_compaction():
    rows = [prompt("u", None), answer("a", "u"), boundary("b", "a"), summary("s", "b"), prompt("v", "s"), answer("w", "v")]
    assert off_branch(*rows) == []


def test_a_plain_compaction_leaves_everything_behind_its_boundary():
    rows = [
        prompt("u", None),
        answer("a", "u"),
        boundary("b", "a", postTokens=400, durationMs=7),
        summary("s", "b", "Sum"),
        prompt("v", "s"),
    ]
    (checkpoint,) = read(*rows)[0].checkpoints()
    assert plan(checkpoint) == [(RANGE, 3, None)]
    assert (checkpoint.divider_index, checkpoint.boundary_index, checkpoint.trigger) == (2, 3, Trigger.MANUAL)
    assert (checkpoint.tokens_before, checkpoint.tokens_after, checkpoint.duration_ms, checkpoint.summary) == (9_000, 400, 7, "Sum")


def test_preserved_rows_stand_behind_their_anchor_in_the_order_that_is_named():
    kept = {"anchorUuid": "s", "uuids": ["a", "u"]}
    rows = [prompt("u", None), answer("a", "u"), boundary("b", "a", preservedMessages=kept), summary("s", "b"), prompt("v", "s")]
    (checkpoint,) = read(*rows)[0].checkpoints()
    assert plan(checkpoint) == [(RANGE, 3, 3), (ENTRY, 1, None), (ENTRY, 0, None), (RANGE, 4, None)]


def test_a_preserved_segment_is_walked_from_its_tail_to_its_head():
    kept = {"headUuid": "a", "anchorUuid": "s", "tailUuid": "r"}
    rows = [
        prompt("u", None), answer("a", "u", call("c")), result("r", "a", "c"),
        boundary("b", "r", trigger="auto", preservedSegment=kept), summary("s", "b"),
    ]  # fmt: skip
    (checkpoint,) = read(*rows)[0].checkpoints()
    assert plan(checkpoint) == [(RANGE, 4, 4), (ENTRY, 1, None), (ENTRY, 2, None), (RANGE, 5, None)]
    assert checkpoint.trigger is Trigger.THRESHOLD


def test_a_boundary_alone_as_an_automatic_compaction_may_leave_it_is_a_checkpoint():
    reading, _ = read(prompt("u", None), answer("a", "u"), boundary("b", "a", trigger="auto"), answer("c", "b"))
    (checkpoint,) = reading.checkpoints()
    assert (plan(checkpoint), checkpoint.summary) == ([(RANGE, 3, None)], "")


def test_a_boundary_that_names_rows_which_are_not_there_is_reported_and_still_stands():
    kept = {"anchorUuid": "s", "uuids": ["gone", "a"]}
    rows = [prompt("u", None), answer("a", "u"), boundary("b", "nowhere", preservedMessages=kept), summary("s", "b"), prompt("v", "s")]
    reading, _ = read(*rows)
    (checkpoint,) = reading.checkpoints()
    assert plan(checkpoint) == [(RANGE, 3, 3), (ENTRY, 1, None), (RANGE, 4, None)]
    assert problems(reading) == {"dead_boundary": 2}
    assert reading.off_branch() == {}


def test_rows_that_a_second_compaction_writes_again_are_read_once_and_both_boundaries_resolve():
    first = [prompt("u", None), answer("a", "u"), boundary("b1", "a"), summary("s1", "b1"), prompt("v", "s1"), answer("w", "v")]
    reading, _ = read(*first, *first[:2], *first[4:], boundary("b2", "w"), summary("s2", "b2"), prompt("x", "s2"))
    assert [plan(checkpoint) for checkpoint in reading.checkpoints()] == [[(RANGE, 3, None)], [(RANGE, 7, None)]]
    assert (reading.report().duplicates, reading.off_branch()) == (4, {})


def test_a_microcompaction_clears_results_and_keeps_the_view_that_was_in_force():
    micro = system("m", "r2", "microcompact_boundary", microcompactMetadata={"trigger": "auto", "compactedToolIds": ["c1", "unknown"]})
    rows = [
        prompt("u", None), boundary("b", "u"), summary("s", "b"), answer("a1", "s", call("c1")), result("r1", "a1", "c1"),
        answer("a2", "r1", call("c2")), result("r2", "a2", "c2"), micro,
    ]  # fmt: skip
    first, second = read(*rows)[0].checkpoints()
    assert plan(second) == plan(first) == [(RANGE, 2, None)]
    assert (first.cleared, second.cleared, second.divider_index) == ((), (4,), 7)


def test_the_old_form_without_boundary_begins_with_a_summary():
    opening = "This session is being continued from a previous conversation that ran out of context. …"
    _, records = read(prompt("u", None, opening), answer("a", "u"))
    assert records[0].entry.kind is Kind.SUMMARY


def test_side_chains_are_kept_apart_by_agent_or_by_their_root_and_tied_to_the_call_that_started_them():
    task = call("task", "Task", description="Look around", prompt="Find the tests", subagent_type="scout")
    side = {"isSidechain": True}
    reading, records = read(
        prompt("u", None),
        answer("a", "u", task, call("other", "Task", description="By id", prompt="Else")),
        prompt("s1", None, "Find the tests", **side),
        answer("s2", "s1", call("inner"), **side),
        result("s3", "s2", "inner", **side),
        prompt("t1", None, "Untold", agentId="agent7", **side),
        result("r", "a", "task"),
        result("r2", "a", "other", toolUseResult={"agentId": "agent7"}),
    )
    assert [record.entry.child_key for record in records] == ["", "", "s1", "s1", "s1", "agent7", "", ""]
    first, second = reading.child_sessions()
    assert (first.key, first.title, first.call_id, first.agent_type) == ("s1", "Look around", "task", "scout")
    assert (second.key, second.call_id) == ("agent7", "other")
    assert reading.off_branch() == {}
    assert reading.report().side_chain_entries == 4


def test_a_sub_agents_own_file_is_one_lane_and_names_its_parent():
    rows = [prompt("u", None, isSidechain=True, agentId="abc"), answer("a", "u", isSidechain=True, agentId="abc")]
    reading, records = read(*rows, name="agent-abc.jsonl")
    facts = reading.facts()
    assert {record.entry.child_key for record in records} == {""}
    assert (facts.agent_id, facts.parent_source_session_id) == ("abc", facts.source_session_id)
