"""The model view: legal, the same everywhere, and in the order in which an agent sends it."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.engine import view
from sessions_app.engine.boundary import Boundary, choose
from sessions_app.engine.entries import Checkpoint, Part, Segment, SyntheticMessage
from sessions_app.engine.fates import fate_of
from sessions_app.engine.shapes import shape_of
from sessions_app.engine.terms import Fate, Kind, Lineage, PartKind, Role, SegmentKind
from tests.engine.histories import Story, checkpoint, histories, text, tidy_histories


def sent(messages: tuple[view.ViewMessage, ...]) -> list[tuple[str, list[str]]]:
    return [(message.role.value, [part.text for part in view.sent_parts(message)]) for message in messages]


@st.composite
def plans(draw: st.DrawFn, size: int) -> Checkpoint:
    """Any plan at all: ranges and entries in any order, also such as no compaction would make."""
    indexes = st.integers(0, max(0, size))
    segments = draw(
        st.lists(
            st.one_of(
                st.builds(lambda first, last: Segment(kind=SegmentKind.RANGE, first=first, last=last), indexes, st.none() | indexes),
                st.builds(lambda first: Segment(kind=SegmentKind.ENTRY, first=first), indexes),
                st.builds(
                    lambda role, words: Segment(kind=SegmentKind.SYNTHETIC, payload=SyntheticMessage(role=role, text=words)),
                    st.sampled_from([Role.USER, Role.ASSISTANT]),
                    st.text(min_size=1, max_size=9),
                ),
            ),
            max_size=6,
        )
    )
    cleared = draw(st.frozensets(indexes, max_size=4))
    return Checkpoint(generation=1, lineage=Lineage.AGENT, segments=tuple(segments), boundary_index=0, cleared=cleared)


@given(histories(), st.data())
@settings(max_examples=500)
def test_every_view_is_legal_whatever_the_history_and_the_plan(entries, data):
    assert view.problems(view.build(entries, None)) == []
    assert view.problems(view.build(entries, data.draw(plans(len(entries))))) == []


@given(histories(), st.data())
def test_a_view_is_the_same_wherever_and_from_whatever_order_it_is_built(entries, data):
    plan = data.draw(st.none() | plans(len(entries)))
    shuffled = entries[:]
    random.Random(1).shuffle(shuffled)
    built = view.build(entries, plan)
    assert view.build(iter(shuffled), plan) == built
    assert view.view_hash(view.build(shuffled, plan)) == view.view_hash(built)


@given(histories(), st.integers(0, 250))
def test_a_view_needs_no_entry_that_its_plan_does_not_name(entries, keep_tokens):
    boundary = choose([shape_of(entry) for entry in entries], keep_tokens=keep_tokens)
    if isinstance(boundary, Boundary):
        plan = checkpoint(1, boundary.index, *boundary.carried)
        assert view.build([entry for entry in entries if plan.holds(entry.index)], plan) == view.build(entries, plan)


@given(tidy_histories(), st.integers(0, 250), st.data())
def test_what_stands_in_a_view_is_what_its_fates_say(entries, keep_tokens, data):
    boundary = choose([shape_of(entry) for entry in entries], keep_tokens=keep_tokens)
    results = [entry.index for entry in entries if entry.kind is Kind.RESULT]
    cleared = data.draw(st.frozensets(st.sampled_from(results), max_size=3)) if results else frozenset()
    chain = [checkpoint(1, boundary.index, *boundary.carried, cleared=cleared)] if isinstance(boundary, Boundary) else []
    shown = {part.entry_index: part.fate for message in view.build(entries, chain[-1] if chain else None) for part in message.parts}
    shown.pop(None, None)
    speaking = [entry for entry in entries if any(part.text or part.kind is not PartKind.TEXT for part in entry.parts)]
    fates = {entry.index: fate_of(shape_of(entry), chain).fate for entry in speaking}
    assert shown == {index: fate for index, fate in fates.items() if fate in (Fate.VERBATIM, Fate.CLEARED)}


@given(tidy_histories())
def test_the_messages_of_a_whole_view_count_as_much_as_their_entries(entries):
    counted = sum(entry.tokens for entry in entries if entry.is_sendable)
    added = sum(part.tokens for message in view.build(entries, None) for part in message.parts if part.synthetic)
    assert sum(message.tokens for message in view.build(entries, None)) == counted + added


def test_user_side_rows_become_one_message_results_then_reminders_then_texts():
    story = (
        Story()
        .user("Go")
        .calls("a", "b", key="m")
        .reminder("R1")
        .user("Steer")
        .result("b", words="B")
        .result("a", words="A")
        .reminder("R2")
    )
    assert sent(view.build(story.entries, None)) == [
        ("user", ["Go"]),
        ("assistant", ["{}", "{}"]),
        ("user", ["B", "A", "R1", "R2\n", "Steer"]),
    ]


def test_a_prompt_stands_behind_reminders_that_follow_it_in_the_file():
    story = Story().says("Hi").user("Prompt").reminder("R1").add(Role.USER, Kind.ATTACHMENT, text("File"))
    assert sent(view.build(story.entries, None))[1] == ("user", ["R1", "File\n", "Prompt"])


def test_a_glued_reminder_becomes_part_of_the_last_result_and_keeps_its_source():
    story = Story().user("Go").calls("a").result("a", words="\n Output\n").reminder("Tokens left.", glued=True).reminder("Plain")
    messages = view.build(story.entries, None)
    assert sent(messages)[2] == ("user", ["Output\n\nTokens left.", "Plain"])
    assert [(part.entry_index, part.glued) for part in messages[2].parts] == [(2, False), (3, True), (4, False)]


def test_several_glued_reminders_follow_each_other_and_an_empty_result_leaves_no_gap():
    story = Story().user("Go").calls("a").result("a", words="").reminder("One", glued=True).reminder("Two\n", glued=True)
    assert sent(view.build(story.entries, None))[2] == ("user", ["One\n\nTwo"])


def test_a_glued_reminder_without_a_result_is_a_text():
    story = Story().says("Hi").user("Prompt").reminder("Tokens left.", glued=True)
    assert sent(view.build(story.entries, None))[1] == ("user", ["Tokens left.\n", "Prompt"])


def test_gluing_needs_the_whole_text_of_the_result():
    story = Story().user().calls("a")
    story.add(Role.USER, Kind.RESULT, Part(kind=PartKind.RESULT, text="Beg", call_id="a", blob="ab", chars=90_000)).reminder(glued=True)
    with pytest.raises(ValueError, match="whole text"):
        view.sent_parts(view.build(story.entries, None)[2])


def test_rows_of_one_assistant_message_are_one_message_also_around_a_result():
    story = Story().user().says("Look", key="m").calls("a", key="m").result("a", words="A").calls("b", key="m").result("b", words="B")
    assert sent(view.build(story.entries, None))[1:] == [("assistant", ["Look", "{}", "{}"]), ("user", ["A", "B"])]


def test_a_late_result_is_sent_right_after_its_call():
    story = Story().user("Go").calls("a", key="m").user("And?").says("Wait", key="n").result("a", words="A")
    assert sent(view.build(story.entries, None)) == [
        ("user", ["Go"]),
        ("assistant", ["{}"]),
        ("user", ["A", "And?"]),
        ("assistant", ["Wait"]),
    ]


def test_a_result_without_its_call_is_left_out_and_a_call_without_result_gets_one():
    story = Story().user("Go").result("ghost", words="Boo").calls("a").user("Never mind.")
    messages = view.build(story.entries, None)
    assert sent(messages) == [("user", ["Go"]), ("assistant", ["{}"]), ("user", [view.NO_RESULT, "Never mind."])]
    assert [part.synthetic for part in messages[2].parts] == [True, False]


def test_images_of_a_result_stay_behind_it():
    picture = Part(kind=PartKind.IMAGE, blob="ab", media_type="image/png", call_id="a")
    story = Story().user().calls("a", "b")
    story.add(Role.USER, Kind.RESULT, Part(kind=PartKind.RESULT, text="Seen", call_id="a"), picture).result("b", words="B")
    assert [part.part.kind for part in view.build(story.entries, None)[2].parts] == [PartKind.RESULT, PartKind.IMAGE, PartKind.RESULT]


def test_a_cleared_result_leaves_a_placeholder_that_names_its_entry():
    story = Story().user().calls("a").result("a", words="x" * 46_510).user().says()
    plan = Checkpoint(
        generation=1,
        lineage=Lineage.CONSOLE,
        segments=(Segment(kind=SegmentKind.RANGE, first=0),),
        boundary_index=0,
        cleared=frozenset({2}),
    )
    message = view.build(story.entries, plan)[2]
    assert message.parts[0].part.text == "[Result cleared: entry 2, 10003 tokens. Read it back if you need it.]"
    assert message.parts[0].fate is Fate.CLEARED
    assert message.parts[0].part.call_id == "a"
    assert message.tokens < 50


def test_notices_rows_off_the_branch_and_empty_texts_are_never_sent():
    story = Story().user("Go").notice().says("Gone", off_branch=True).user("").says("Done")
    assert sent(view.build(story.entries, None)) == [("user", ["Go"]), ("assistant", ["Done"])]


def test_system_entries_come_first_and_later_ones_are_reminders():
    story = Story().system("Rules").user("Go").system("Mind this").says("Done")
    assert sent(view.build(story.entries, None)) == [("system", ["Rules"]), ("user", ["Mind this\n", "Go"]), ("assistant", ["Done"])]


def test_our_plan_is_system_block_carried_request_and_tail():
    story = Story().system("Rules").user("Request").says("One").reminder("R").calls("a").result("a", words="A")
    plan = Checkpoint(
        generation=1,
        lineage=Lineage.CONSOLE,
        boundary_index=3,
        segments=(
            Segment(kind=SegmentKind.RANGE, first=0, last=0),
            Segment(kind=SegmentKind.SYNTHETIC, payload=SyntheticMessage(role=Role.USER, text="Block")),
            Segment(kind=SegmentKind.ENTRY, first=1),
            Segment(kind=SegmentKind.RANGE, first=3),
        ),
    )
    assert sent(view.build(story.entries, plan)) == [
        ("system", ["Rules"]),
        ("user", ["Block", "R\n", "Request"]),
        ("assistant", ["{}"]),
        ("user", ["A"]),
    ]


def test_nothing_passes_a_message_that_a_plan_put_in_its_place():
    story = Story().user("A").reminder("R1").user("B").reminder("R2")
    plan = Checkpoint(
        generation=1,
        lineage=Lineage.AGENT,
        boundary_index=2,
        segments=(
            Segment(kind=SegmentKind.RANGE, first=0, last=1),
            Segment(kind=SegmentKind.SYNTHETIC, payload=SyntheticMessage(role=Role.USER, text="Between")),
            Segment(kind=SegmentKind.RANGE, first=2),
        ),
    )
    assert sent(view.build(story.entries, plan)) == [("user", ["R1\n", "A\n", "Between", "R2\n", "B"])]


def test_an_entry_that_a_plan_names_by_itself_stands_there_and_nowhere_else():
    story = Story().user("A").says("B").user("C").says("D")
    plan = Checkpoint(
        generation=1,
        lineage=Lineage.AGENT,
        boundary_index=0,
        segments=(Segment(kind=SegmentKind.ENTRY, first=2), Segment(kind=SegmentKind.RANGE, first=0)),
    )
    assert sent(view.build(story.entries, plan)) == [("user", ["C\n", "A"]), ("assistant", ["B", "D"])]


def test_the_hash_changes_with_what_is_said_and_not_with_where_it_comes_from():
    one, other = Story().user("Go").says("Done"), Story().notice().user("Go").says("Done")
    assert view.view_hash(view.build(one.entries, None)) == view.view_hash(view.build(other.entries, None))
    assert view.view_hash(view.build(one.says("More").entries, None)) != view.view_hash(view.build(other.entries, None))


def part(kind: PartKind, **more) -> view.ViewPart:
    return view.ViewPart(part=Part(kind=kind, **more), entry_index=0)


def message(role: Role, *parts: view.ViewPart) -> view.ViewMessage:
    return view.ViewMessage(role=role, parts=parts, tokens=0)


CALL, RESULT, TEXT = part(PartKind.CALL, call_id="a"), part(PartKind.RESULT, call_id="a"), part(PartKind.TEXT, text="t")


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([message(Role.USER, RESULT)], "has no call right before it"),
        ([message(Role.ASSISTANT, CALL)], "has no result"),
        ([message(Role.ASSISTANT, CALL), message(Role.USER, TEXT)], "has no result"),
        ([message(Role.ASSISTANT, CALL), message(Role.USER, TEXT, RESULT)], "stands behind other text"),
        ([message(Role.ASSISTANT, CALL, CALL), message(Role.USER, RESULT)], "makes the call a twice"),
        ([message(Role.ASSISTANT, CALL), message(Role.USER, RESULT, RESULT)], "has no call right before it"),
        ([message(Role.ASSISTANT, RESULT)], "has no call"),
        ([message(Role.USER, TEXT), message(Role.USER, TEXT)], "have the same role"),
        ([message(Role.USER, TEXT), message(Role.SYSTEM, TEXT)], "a system message after the first"),
        ([message(Role.USER)], "is empty"),
    ],
)
def test_what_a_provider_would_refuse_is_named(messages, words):
    assert any(words in problem for problem in view.problems(messages))


def test_a_legal_view_has_no_problems():
    assert (
        view.problems(
            [message(Role.SYSTEM, TEXT), message(Role.USER, TEXT), message(Role.ASSISTANT, TEXT, CALL), message(Role.USER, RESULT, TEXT)]
        )
        == []
    )
