"""What a writer writes, our reader reads as the plan that was given, for any plan."""

import json
import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.engine.entries import Checkpoint, Segment
from sessions_app.engine.messages import ViewMessage
from sessions_app.engine.terms import Kind, Lineage, PartKind, Role, SegmentKind
from sessions_app.writers.base import CannotContinue
from tests.readers.codex_rollouts import THREAD, event, message, meta, output, row, user
from tests.readers.codex_rollouts import call as codex_call
from tests.readers.codex_rollouts import said as codex_said
from tests.readers.rows import Row, answer, boundary, call, encode, prompt, reminder, result, summary, system
from tests.writers.scenes import BLOCK, Source, plan, read, wanted, written

COUNT = {"total_token_usage": {"total_tokens": 9_000}, "last_token_usage": {"input_tokens": 8_000, "total_tokens": 8_100}}
NEW = "99999999-8888-4777-8666-555555555555"
GOLDEN = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "generated"


def turns(number: int) -> list[Row]:
    """Turns of Claude Code, each with a reminder, a call and its result."""
    rows: list[Row] = []
    before = None
    for turn in range(number):
        rows += [
            prompt(f"u{turn}", before, f"Prompt {turn}"),
            reminder(f"x{turn}", f"u{turn}", f"Reminder {turn}"),
            answer(f"a{turn}", f"x{turn}", call(f"c{turn}"), message=f"m{turn}"),
            result(f"r{turn}", f"a{turn}", f"c{turn}", f"Result {turn}"),
            answer(f"b{turn}", f"r{turn}", f"Answer {turn}"),
            {"type": "last-prompt", "lastPrompt": f"Prompt {turn}", "sessionId": "old"},
        ]
        before = f"b{turn}"
    return rows


def codex_turns(number: int) -> list[Row]:
    """Turns of Codex, in numbered rows."""
    rows: list[Row] = [
        meta(session_id="0199aaaa-0000-7000-8000-000000000001"),
        message("developer", "<permissions instructions>Ask.</permissions instructions>"),
        user("<environment_context>here</environment_context>"),
        row("world_state", {"full": True}),
    ]
    for turn in range(number):
        rows += [
            event("task_started", turn_id=f"t{turn}", thread_id="0199aaaa-0000-7000-8000-000000000001"),
            user(f"Prompt {turn}", key=f"msg_u{turn}"),
            codex_call(f"c{turn}"),
            output(f"c{turn}", f"Result {turn}"),
            codex_said(f"Answer {turn}", key=f"msg_a{turn}"),
            event("token_count", info=COUNT),
            event("task_complete", turn_id=f"t{turn}"),
        ]  # fmt: skip
    return [told | {"ordinal": number} for number, told in enumerate(rows)]


def told(messages: tuple[ViewMessage, ...]) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """What a model would read. The order of the texts of one message is the agent's business, and so is its system prompt."""
    return [
        (message.role.value, sorted((part.part.kind.value, part.part.text, part.part.call_id) for part in message.parts))
        for message in messages
        if message.role is not Role.SYSTEM
    ]


def rows_of(data: bytes) -> list[Row]:
    return [json.loads(line) for line in data.splitlines()]


def prompts(source: Source) -> list[int]:
    return [entry.index for entry in source.live if entry.role is Role.USER and entry.kind is Kind.MESSAGE and not entry.meta]


def cuts(source: Source) -> list[int]:
    """Where a plan may cut: before a prompt, or before an answer that is no result's message."""
    return [
        entry.index
        for entry in source.live
        if entry.index and entry.role in (Role.USER, Role.ASSISTANT) and entry.kind is not Kind.REMINDER
    ]


@pytest.mark.parametrize(("agent", "rows"), [("claude-code", turns(6)), ("codex", codex_turns(6))])
@given(data=st.data())
def test_any_plan_is_read_again_as_what_it_was(agent, rows, data):
    source = read(encode(rows), agent)
    cut = data.draw(st.sampled_from(cuts(source)))
    before = [index for index in prompts(source) if index < cut]
    carried = data.draw(st.lists(st.sampled_from(before), unique=True, max_size=3)) if before else []
    checkpoint = plan(cut, sorted(carried), system_last=0 if agent == "codex" else None)
    again = read(written(source, agent, checkpoint, NEW)[0], agent)
    assert told(again.agents_view()) == told(source.view(checkpoint))
    assert again.checkpoints[-1].summary == BLOCK


@pytest.mark.parametrize(("agent", "rows"), [("claude-code", turns(5)), ("codex", codex_turns(5))])
def test_everything_that_was_said_is_in_the_new_file_and_no_old_id(agent, rows):
    source = read(encode(rows), agent)
    data, _ = written(source, agent, plan(prompts(source)[3]), NEW)
    again = read(data, agent)
    said = [entry.parts for entry in source.entries if entry.role is not Role.NOTICE]
    assert [entry.parts for entry in again.entries if entry.role is not Role.NOTICE and entry.kind is not Kind.SUMMARY] == said
    named = [told_row.get("sessionId") or told_row.get("payload", {}).get("session_id") for told_row in rows_of(data)]
    assert {name for name in named if name} == {NEW}


def test_a_row_of_an_unknown_type_keeps_its_bytes_but_for_the_session():
    odd = b'{"type":"frame-link" , "sessionId" : "old","x":1.50,"big":123456789012345678901234567890,"deep":{"a" : [1,  2]}}\n'
    source = read(encode([*turns(3), odd]), "claude-code")
    data, _ = written(source, "claude-code", plan(prompts(source)[2]), NEW)
    kept = next(line for line in data.splitlines() if b"frame-link" in line)
    assert (
        kept
        == f'{{"type":"frame-link","sessionId":"{NEW}","x":1.50,"big":123456789012345678901234567890,"deep":{{"a" : [1,  2]}}}}'.encode()
    )


def test_lone_surrogates_stay_escaped_and_what_cannot_be_read_is_left_out_and_said():
    odd = b'{"type":"tag","tag":"\\ud800 lone","sessionId":"old"}\n'
    source = read(encode([*turns(3), odd, b'{"broken": \n', b"\n", b'{"type":"tag","tag":NaN}\n']), "claude-code")
    data, notes = written(source, "claude-code", plan(prompts(source)[2]), NEW)
    assert rf'"tag":"\ud800 lone","sessionId":"{NEW}"'.encode() in data
    assert all(json.loads(line) for line in data.splitlines())
    assert notes[0] == "2 records of the source can't be read and were left out."


def test_rows_behind_the_boundary_never_lead_past_it():
    rows = turns(5)
    source = read(encode(rows), "claude-code")
    again = rows_of(written(source, "claude-code", plan(prompts(source)[2]), NEW)[0])
    parents = {told_row["uuid"]: told_row["parentUuid"] for told_row in again if "uuid" in told_row}
    seen = ["b4"]
    while (parent := parents[seen[-1]]) is not None:
        seen.append(parent)
    assert not [name for name in seen if name.endswith(("0", "1")) and len(name) == 2]
    top = next(told_row for told_row in again if told_row.get("subtype") == "compact_boundary")
    assert (seen[-1], top["logicalParentUuid"], top["parentUuid"]) == (top["uuid"], "b1", None)


def test_what_is_carried_stands_behind_the_block_as_rows_of_its_own_and_stays_where_it_was():
    source = read(encode(turns(5)), "claude-code")
    call_and_result = [entry.index for entry in source.live if entry.source_id in ("a1", "r1")]
    checkpoint = plan(prompts(source)[3], [prompts(source)[0], *call_and_result])
    data, _ = written(source, "claude-code", checkpoint, NEW)
    rows = [told_row for told_row in rows_of(data) if "uuid" in told_row]
    place = next(number for number, told_row in enumerate(rows) if told_row.get("isCompactSummary"))
    assert [told_row["parentUuid"] for told_row in rows[place + 1 : place + 5]] == [
        told_row["uuid"] for told_row in rows[place : place + 4]
    ]
    assert len({told_row["uuid"] for told_row in rows}) == len(rows)
    assert rows[place + 2]["message"]["usage"]["input_tokens"] == 0
    assert told(read(data, "claude-code").agents_view()) == told(source.view(checkpoint))


def test_counts_by_which_the_agent_would_compact_again_are_gone():
    source = read(encode(turns(4)), "claude-code")
    data, notes = written(source, "claude-code", plan(prompts(source)[2]), NEW)
    counts = {
        told_row["uuid"]: told_row["message"]["usage"]["cache_read_input_tokens"]
        for told_row in rows_of(data)
        if told_row["type"] == "assistant"
    }
    assert counts == {"a0": 100, "b0": 100, "a1": 100, "b1": 100, "a2": 0, "b2": 0, "a3": 0, "b3": 0}
    assert any("set to zero" in note for note in notes)
    source = read(encode(codex_turns(4)), "codex")
    rows = rows_of(written(source, "codex", plan(prompts(source)[2]), NEW)[0])
    place = next(number for number, told_row in enumerate(rows) if told_row["type"] == "compacted")
    behind = [told_row["payload"]["info"] for told_row in rows[place:] if told_row["payload"].get("type") == "token_count"]
    assert behind == [{"total_token_usage": {"total_tokens": 9_000}, "last_token_usage": {"input_tokens": 0, "total_tokens": 9_000}}]
    assert rows[place + 1]["payload"]["type"] == "token_count"


def test_boundaries_of_the_agent_behind_ours_are_left_out_and_said():
    rows = [*turns(3), boundary("z", "b2"), summary("y", "z"), prompt("u8", "y", "After it"), answer("a8", "u8", "Yes")]
    source = read(encode(rows), "claude-code")
    checkpoint = plan(prompts(source)[1])
    data, notes = written(source, "claude-code", checkpoint, NEW)
    again = read(data, "claude-code")
    assert len(again.checkpoints) == 1
    assert told(again.agents_view()) == told(source.view(checkpoint))
    assert notes[0].startswith("1 boundary of the agent's own, behind this one, was left out")
    own = row(
        "compacted",
        {
            "message": "Old",
            "replacement_history": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Old"}]}],
        },
    )
    source = read(encode([*codex_turns(3), own, event("context_compacted"), user("After it", key="msg_z"), codex_said("Yes")]), "codex")
    checkpoint = plan(prompts(source)[1], system_last=0)
    data, notes = written(source, "codex", checkpoint, NEW)
    again = read(data, "codex")
    assert told(again.agents_view()) == told(source.view(checkpoint))
    assert notes[0] == "2 rows of the agent's own compactions were left out behind this boundary: the agent would begin there."


def test_abandoned_branches_stay_off_the_branch_and_side_chains_with_their_parents():
    side = {"isSidechain": True}
    rows = [
        *turns(3),
        prompt("s1", None, "Find totals", **side), answer("s2", "s1", "In totals.py", **side),
        prompt("left", "b2", "Not this"), answer("lost", "left", "Abandoned"),
        prompt("u7", "b2", "But that"), answer("a7", "u7", "Done"),
    ]  # fmt: skip
    source = read(encode(rows), "claude-code")
    for cut in prompts(source)[1:]:
        data, _ = written(source, "claude-code", plan(cut), NEW)
        again = read(data, "claude-code")
        assert told(again.agents_view()) == told(source.view(plan(cut)))
        assert [entry.source_id for entry in again.entries if entry.off_branch] == ["left", "lost"]
        chain = {told_row["uuid"]: told_row for told_row in rows_of(data) if "uuid" in told_row}
        assert (chain["s1"]["parentUuid"], chain["s2"]["parentUuid"]) == (None, "s1")


def test_repeated_rows_of_what_is_folded_do_not_come_back():
    rows = [*turns(4), *turns(1), prompt("u9", "b3", "After"), answer("a9", "u9", "Yes")]
    source = read(encode(rows), "claude-code")
    checkpoint = plan(prompts(source)[2])
    again = read(written(source, "claude-code", checkpoint, NEW)[0], "claude-code")
    assert told(again.agents_view()) == told(source.view(checkpoint))


def test_notices_between_the_kept_rows_stay_in_the_chain():
    rows = [*turns(3), system("n", "b2", "turn_duration", durationMs=5), prompt("u9", "n", "After"), answer("a9", "u9", "Yes")]
    source = read(encode(rows), "claude-code")
    for cut in prompts(source)[1:]:
        again = read(written(source, "claude-code", plan(cut), NEW)[0], "claude-code")
        assert told(again.agents_view()) == told(source.view(plan(cut)))


def test_codex_rows_are_numbered_on_and_the_turn_begins_behind_the_boundary():
    source = read(encode(codex_turns(4)), "codex")
    rows = rows_of(written(source, "codex", plan(prompts(source)[2]), NEW)[0])
    assert [told_row["ordinal"] for told_row in rows] == list(range(len(rows)))
    place = next(number for number, told_row in enumerate(rows) if told_row["type"] == "compacted")
    assert rows[place + 2]["payload"] == {"type": "task_started", "turn_id": "t2", "thread_id": NEW}
    told_meta = rows[0]["payload"]
    assert (told_meta["id"], told_meta["session_id"], told_meta["forked_from_id"]) == (NEW, NEW, THREAD)


def test_a_version_of_codex_that_does_not_write_its_surroundings_anew_keeps_them():
    rows = [told_row for told_row in codex_turns(4) if told_row["type"] != "world_state"]
    source = read(encode(rows), "codex")
    data, _ = written(source, "codex", plan(prompts(source)[2], system_last=0), NEW)
    [history] = [told_row["payload"]["replacement_history"] for told_row in rows_of(data) if told_row["type"] == "compacted"]
    assert [part["role"] for part in history] == ["developer", "user", "user"]
    assert history[2]["content"][0]["text"] == BLOCK


def test_what_a_plan_names_and_the_source_has_not_is_refused():
    source = read(encode(turns(3)), "claude-code")
    lost = Source([told_row for told_row in source.rows if told_row.index != 0], source.entries, [])
    with pytest.raises(CannotContinue, match="Entry 0 is to stand behind the block"):
        written(lost, "claude-code", plan(prompts(source)[2], [0]), NEW)
    nameless = read(encode(codex_turns(3)[1:]), "codex")
    with pytest.raises(CannotContinue, match="names no session"):
        written(nameless, "codex", plan(prompts(nameless)[1]), NEW)


def test_plans_of_another_shape_are_refused():
    bare = Checkpoint(generation=1, lineage=Lineage.AGENT, segments=(Segment(kind=SegmentKind.RANGE, first=3),), boundary_index=3)
    with pytest.raises(CannotContinue, match="another shape"):
        wanted(bare, NEW)


def test_new_ids_are_of_the_agents_own_kind_and_writing_twice_gives_the_same():
    source = read(encode(turns(4)), "claude-code")
    assert written(source, "claude-code", plan(9), NEW) == written(source, "claude-code", plan(9), NEW)
    from sessions_app.writers.registry import writer_for

    assert uuid.UUID(writer_for("claude-code").new_session_id()).version == 4
    assert uuid.UUID(writer_for("codex").new_session_id()).version == 7
    assert writer_for("openai-chat") is None


@pytest.mark.skipif(not GOLDEN.exists(), reason=f"the recordings are not there ({GOLDEN})")
@pytest.mark.parametrize("agent", ["claude-code", "codex"])
@pytest.mark.parametrize("name", ["1-before", "2-after-c1", "3-after-c2"])
def test_recorded_sessions_are_continued_at_every_prompt(agent, name):
    source = read((GOLDEN / agent / "golden" / f"session-{name}.jsonl").read_bytes(), agent)
    for cut in prompts(source)[2:]:
        checkpoint = plan(cut, [prompts(source)[1]])
        again = read(written(source, agent, checkpoint, NEW)[0], agent)
        assert told(again.agents_view()) == told(source.view(checkpoint)), cut
        assert not [
            part for message in again.agents_view() for part in message.parts if part.part.kind is PartKind.RESULT and not part.part.call_id
        ]
