"""Rounds cover a history without a gap, and none splits what belongs together."""

import msgspec
from hypothesis import given

from sessions_app.engine import chunks
from sessions_app.engine import plan as planning
from sessions_app.engine.entries import Entry
from sessions_app.engine.policy import Policy
from sessions_app.engine.rounds import group_rounds, link, stretches_before, stretches_of
from sessions_app.engine.shapes import shape_of
from sessions_app.engine.terms import Kind, Role
from tests.engine.histories import Story, histories, text


def spans(story: Story, first: int = 0) -> list[tuple[int, int]]:
    rounds = group_rounds([shape_of(entry) for entry in story.entries[first:]], midway=first > 0)
    return [(found.first, found.last) for found in rounds]


@given(histories())
def test_rounds_partition_every_history(entries: list[Entry]):
    rounds = group_rounds([shape_of(entry) for entry in entries])
    assert [index for found in rounds for index in range(found.first, found.last + 1)] == list(range(len(entries)))
    assert sum(found.tokens for found in rounds) == sum(entry.tokens for entry in entries if shape_of(entry).is_sent)


@given(histories())
def test_the_rows_of_one_assistant_message_lie_in_one_round(entries: list[Entry]):
    round_of = round_numbers(entries)
    keys: dict[str, set[int]] = {}
    for entry in entries:
        if entry.role is Role.ASSISTANT and entry.message_key and not entry.off_branch:
            keys.setdefault(entry.message_key, set()).add(round_of[entry.index])
    assert all(len(numbers) == 1 for numbers in keys.values())


@given(histories())
def test_a_result_lies_in_the_round_of_its_call(entries: list[Entry]):
    round_of = round_numbers(entries)
    latest: dict[str, int] = {}
    answered: set[int] = set()
    for entry in entries:
        shape = shape_of(entry)
        if not shape.is_sent:
            continue
        for call_id in shape.call_ids:
            if shape.kind is Kind.CALL:
                latest[call_id] = entry.index
            elif call_id in latest and latest[call_id] not in answered:
                assert round_of[entry.index] == round_of[latest[call_id]]
                answered.add(latest[call_id])


def round_numbers(entries: list[Entry]) -> dict[int, int]:
    rounds = group_rounds([shape_of(entry) for entry in entries])
    return {index: number for number, found in enumerate(rounds) for index in range(found.first, found.last + 1)}


def test_an_assistant_message_in_several_rows_is_one_round_with_all_its_results():
    story = Story().user().says(key="m").calls("a", key="m").calls("b", key="m").result("b").result("a").says()
    assert spans(story) == [(0, 0), (1, 5), (6, 6)]


def test_rows_of_one_message_with_results_in_between_are_one_round():
    story = Story().user().calls("a", key="m").result("a").calls("b", key="m").result("b").says()
    assert spans(story) == [(0, 0), (1, 4), (5, 5)]


def test_notices_reminders_and_steering_before_a_result_stay_inside():
    story = Story().user().calls("a").notice().reminder().user("Faster!").result("a").says()
    assert spans(story) == [(0, 0), (1, 5), (6, 6)]


def test_a_reminder_stays_with_what_it_follows():
    story = Story().user().reminder().calls("a").result("a").reminder().user("Next.").reminder().says()
    assert spans(story) == [(0, 1), (2, 4), (5, 6), (7, 7)]


def test_a_reminder_after_plain_words_leads_up_to_the_next_user_message():
    story = Story().user().says().reminder().add(Role.USER, Kind.ATTACHMENT, text("A file.")).user("Next.").says()
    assert spans(story) == [(0, 0), (1, 1), (2, 4), (5, 5)]


def test_a_meta_row_starts_no_turn():
    story = Story().user().says().user("Caveat.", meta=True).user("Real.").says()
    rounds = group_rounds([shape_of(entry) for entry in story.entries])
    assert [(found.first, found.head, found.starts_turn) for found in rounds] == [(0, 0, True), (1, 1, False), (2, 3, True), (4, 4, False)]


def test_rows_off_the_branch_are_no_reason_to_cut():
    story = Story().user().says("Abandoned.", off_branch=True).user("Also gone.", off_branch=True).says().user().says()
    assert spans(story) == [(0, 2), (3, 3), (4, 4), (5, 5)]


def test_an_id_that_is_used_again_belongs_to_the_latest_call():
    story = Story().user().calls("a").result("a").says().calls("a").result("a").says()
    assert spans(story) == [(0, 0), (1, 2), (3, 3), (4, 5), (6, 6)]


def test_a_second_result_belongs_to_the_call_that_was_answered_last():
    story = Story().user().calls("a").result("a").says().user().says().result("a").says()
    assert spans(story) == [(0, 0), (1, 6), (7, 7)]
    again = Story().user().calls("a").result("a").calls("a").result("a").user().result("a").says()
    assert spans(again) == [(0, 0), (1, 2), (3, 6), (7, 7)]


def test_two_open_calls_of_one_id_are_answered_from_the_latest_back():
    story = Story().user().calls("a").says().calls("a").result("a").says().result("a").says()
    assert spans(story) == [(0, 0), (1, 6), (7, 7)]


def test_a_call_is_pending_until_somebody_writes_again():
    def pending(story: Story) -> list[bool]:
        return [found.is_pending for found in group_rounds([shape_of(entry) for entry in story.entries])]

    assert pending(Story().user().calls("a", "b").result("a")) == [False, True]
    assert pending(Story().user().calls("a").user("Never mind.").says()) == [False, False, False, False]
    assert pending(Story().user().calls("a", off_branch=True).says()) == [False, False]


def test_in_a_tail_a_result_of_an_earlier_call_ties_together_what_stands_before_it():
    story = Story().user().calls("a").says("Meanwhile.").user("And?").result("a").says().user().says()
    assert spans(story, first=2) == [(2, 4), (5, 5), (6, 6), (7, 7)]


def test_a_result_whose_call_is_nowhere_ties_nothing():
    story = Story().user().says().result("ghost").says()
    assert spans(story) == [(0, 0), (1, 2), (3, 3)]


def test_nothing_has_no_rounds():
    assert group_rounds([]) == []


@given(histories())
def test_what_a_plan_packs_are_the_rounds_of_what_it_folds(entries: list[Entry]):
    shapes = [shape_of(entry) for entry in entries]
    asked = {"window": 1_000, "summariser_window": 100, "signal_tokens": 1_000, "manual": True, "force": True}
    plan = planning.make(shapes, previous=None, policy=Policy(), **asked)
    if isinstance(plan, planning.Plan):
        folded = [shape for shape in shapes if shape.index in plan.span]
        rounds = stretches_of(group_rounds(chunks.as_sent(folded)))
        assert list(plan.chunks) == chunks.pack(rounds, 100, Policy().max_summary_calls)


@given(histories())
def test_rounds_before_a_cut_are_known_from_the_links_of_the_whole(entries: list[Entry]):
    shapes = [shape for shape in map(shape_of, entries) if shape.is_sent]
    shapes = [msgspec.structs.replace(shape, index=index) for index, shape in enumerate(shapes)]
    links = link(shapes)
    for cut in range(1, len(shapes)):
        known = stretches_before(links, cut, [shape.tokens for shape in shapes[:cut]])
        if cut in links.round_starts.firsts:
            assert known == stretches_of(group_rounds(shapes[:cut]))
        else:
            assert known is None
