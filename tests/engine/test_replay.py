"""A recorded history once more: which compactions there would have been under another policy."""

from collections import Counter

import pytest

from sessions_app.engine import view
from sessions_app.engine.extractive import ExtractiveSummariser
from sessions_app.engine.facts import Fact, FactClass, Facts
from sessions_app.engine.policy import Policy
from sessions_app.engine.probes import OF_EACH_CLASS, probe
from sessions_app.engine.replay import Replay, replay
from sessions_app.engine.shapes import shape_of
from sessions_app.engine.terms import Trigger
from tests.services.compaction_scenes import story

WINDOW = 8_000


def replayed(turns: int = 60, window: int = WINDOW, **values: object) -> Replay:
    entries = story(turns)
    return replay(
        [shape_of(entry) for entry in entries],
        lambda first, last: iter(entries[first : last + 1]),
        policy=Policy(**values),
        window=window,
        summarisers=[ExtractiveSummariser()],
    )


def test_without_a_reason_to_compact_every_request_holds_all_that_came_before_it():
    entries = story(3)
    told = replayed(3, window=1_000_000)
    sizes = [sum(entry.tokens for entry in entries[:place]) for place, entry in enumerate(entries) if entry.role == "assistant"]
    assert (told.compactions, told.requests, told.tokens_sent, told.peak) == ((), len(sizes), sum(sizes), max(sizes))
    assert told.final == sum(entry.tokens for entry in entries)
    assert told.retained is None


def test_it_compacts_before_a_turn_that_reaches_the_trigger_and_never_within_one():
    told = replayed()
    users = {entry.index for entry in story(60) if entry.role == "user"}
    assert told.compactions
    assert all(one.trigger is Trigger.THRESHOLD and one.at - 1 in users for one in told.compactions)
    assert all(one.tokens_before >= Policy().trigger_tokens(WINDOW) for one in told.compactions)
    assert all(one.tokens_after < one.tokens_before for one in told.compactions)


def test_a_lower_trigger_compacts_more_often_and_sends_less():
    late, early = replayed(), replayed(threshold_pct=0.5)
    assert len(early.compactions) > len(late.compactions)
    assert early.tokens_sent < late.tokens_sent
    assert early.peak < late.peak


def test_off_is_off_and_it_says_how_many_requests_would_not_have_fitted():
    told = replayed(enabled=False)
    assert told.compactions == ()
    assert told.too_large > 0
    assert told.peak == max(told.peak, told.tokens_sent // told.requests)


def test_nothing_is_too_large_where_it_compacts_in_time():
    assert replayed().too_large == 0


def test_what_the_final_view_retains_is_counted_over_everything_that_was_folded():
    told = replayed(clear_results=False)
    assert 0 < told.facts_by_summary <= told.facts_in_view <= told.facts
    assert told.retained == told.facts_in_view / told.facts


def test_the_probe_asks_as_many_of_each_class_over_the_whole_of_what_was_folded():
    told = replayed(120, clear_results=False)
    folded = max(one.boundary_index for one in told.compactions)
    of_class = Counter(one.fact.kind for one in told.probes)
    assert max(of_class.values()) == OF_EACH_CLASS
    assert all(one.fact.index < folded for one in told.probes)
    asks = [one.fact.index for one in told.probes if one.fact.kind is FactClass.ASK]
    assert asks[0] < folded / 4 < folded * 3 / 4 < asks[-1]


def test_a_view_that_says_less_answers_fewer_of_the_same_questions():
    facts = Facts(
        found=(
            Fact(FactClass.FILE_EDITED, "src/cart/total.py", 1),
            Fact(FactClass.NUMBER, "250 ms", 2),
            Fact(FactClass.CONSTRAINT, "Never round the totals before the discount.", 3),
        )
    )
    whole = probe(facts, ["I changed total.py. It took 250 ms.", "Never round totals before the discount was taken."])
    assert all(one.found for one in whole)
    less = probe(facts, ["It took 250 ms."])
    assert [one.question for one in less] == [one.question for one in whole]
    assert [one.fact.kind for one in less if one.found] == [FactClass.NUMBER]
    assert not any(one.found for one in probe(facts, ["It took 1250 ms, in subtotal.py."]))


def test_without_a_compaction_nothing_is_asked():
    assert replayed(3, window=1_000_000).probe_score is None


@pytest.mark.parametrize("times", [1, 2])
def test_the_same_history_and_policy_come_to_the_same(times):
    assert replayed(20 * times) == replayed(20 * times)


def test_the_sizes_are_those_of_the_views_themselves():
    entries = story(4)
    assert replayed(4, window=1_000_000).final == sum(message.tokens for message in view.build(entries, None))
