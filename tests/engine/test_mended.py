"""What a view says otherwise than its entries: results that are left out, and calls that are answered in their place."""

from hypothesis import given, settings

from sessions_app.engine import view
from sessions_app.engine.entries import Entry
from sessions_app.engine.legality import Mended, Mending
from sessions_app.engine.terms import PartKind
from tests.engine.histories import Story, histories


def mended(entries: list[Entry]) -> Mended:
    mending = Mending()
    for entry in entries:
        if entry.is_sendable and not entry.off_branch:
            mending.take(entry)
    for message in view.build(entries, None):
        mending.give(message)
    return mending.end()


def test_nothing_is_mended_where_calls_and_results_fit_together():
    assert not mended(Story().user().calls("a", "b").result("a").result("b").says().user().entries)


def test_a_result_without_its_call_is_left_out_and_one_that_comes_twice():
    story = Story().user().result("lost").says().user().calls("a").result("a").says().result("a").user()
    assert mended(story.entries) == Mended(left_out=(1, 7))


def test_a_call_without_its_result_is_answered():
    story = Story().user().calls("a").says().calls("b", "c").result("c").user("Go on.").says()
    assert mended(story.entries) == Mended(answered=((1, "a"), (3, "b")))


def test_a_call_whose_result_may_still_come_is_not_told():
    assert not mended(Story().user().calls("a", "b").result("a").entries)
    assert not mended(Story().user().calls("a").notice().entries)
    assert mended(Story().user().calls("a").user("Never mind.").entries).answered == ((1, "a"),)


@given(histories())
@settings(max_examples=200)
def test_what_is_told_is_what_is_so(entries):
    told = mended(entries)
    messages = view.build(entries, None)
    sent = {(part.entry_index, part.part.call_id) for message in messages for part in message.parts if part.part.kind is PartKind.RESULT}
    due = [
        (entry.index, part.call_id)
        for entry in entries
        for part in entry.parts
        if part.kind is PartKind.RESULT and entry.is_sendable and not entry.off_branch
    ]
    assert set(told.left_out) == {index for index, call_id in due if (index, call_id) not in sent}
    answers = [part.part.call_id for message in messages for part in message.parts if part.part.text == view.NO_RESULT and part.synthetic]
    assert [call_id for _, call_id in told.answered] == answers[: len(told.answered)]
    calls = {(entry.index, part.call_id) for entry in entries for part in entry.parts if part.kind is PartKind.CALL}
    assert set(told.answered) <= calls
