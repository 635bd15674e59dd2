"""Pinning and excluding: what it changes at once, what it never changes, what it refuses, and what is written down."""

import threading

import pytest
from django.test.utils import CaptureQueriesContext

from sessions_app.engine.terms import Fate, SkipReason, Status
from sessions_app.events.actors import Actor
from sessions_app.models import Compaction, Event, Override, Session, SessionKind
from sessions_app.permissions import ActionRefused
from sessions_app.selectors import plans
from sessions_app.selectors.compact_preview import compact_preview
from sessions_app.selectors.history import HistoryOptions, Layout, history_page
from sessions_app.services import overrides
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.revert import revert
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.overrides import CannotOverride, exclude, include, pin, unpin
from tests.engine.histories import Story
from tests.services.compaction_scenes import (
    PATIENCE_S,
    fresh,
    grow,
    history_digest,
    long_session,
    make_slow,
    run_in_thread,
    story,
    view_hash,
    wait_until,
)
from tests.stored import store_session

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody")]


def compact(actor: Actor, session: Session, **options) -> Compaction:
    compaction = request(actor=actor, session=fresh(session), **options).compaction
    run_compaction(compaction.pk)
    compaction.refresh_from_db()
    assert compaction.status == Status.COMPLETED, compaction.explanation
    return compaction


def fates(session: Session, first: int = 0) -> dict[int, Fate]:
    page = history_page(fresh(session), HistoryOptions(layout=Layout.SPLIT, start=first))
    return {index: fate.fate for index, fate in page.fates.items()}


def texts_of(session: Session) -> str:
    return "\n".join(part.part.text for message in plans.load_view(fresh(session)) for part in message.parts)


def said_of(session: Session, index: int) -> list[str]:
    """What the view says of an entry itself, not of a summary."""
    return [part.part.text for message in plans.load_view(fresh(session)) for part in message.parts if part.entry_index == index]


def test_a_pin_keeps_a_folded_entry_word_for_word_at_once_and_in_the_next_generation(support_actor):
    session = long_session()
    compact(support_actor, session)
    assert said_of(session, 4) == []
    assert pin(actor=support_actor, session=session, index=4).indexes == (4,)
    whole = ["Turn 1: please look into module_1.py and say why the build of step 1 fails."]
    assert said_of(session, 4) == whole
    assert fates(session)[4] is Fate.PINNED
    grow(session, turns=8)
    compact(support_actor, session)
    assert said_of(session, 4) == whole


def test_both_halves_of_a_call_are_pinned_and_excluded_together(support_actor):
    session = long_session()
    assert pin(actor=support_actor, session=session, index=2).indexes == (1, 2)
    assert exclude(actor=support_actor, session=session, index=1).indexes == (1, 2)
    assert (fates(session)[1], fates(session)[2]) == (Fate.EXCLUDED, Fate.EXCLUDED)
    assert include(actor=support_actor, session=session, index=2).indexes == (1, 2)
    assert fates(session)[2] is Fate.VERBATIM


def test_exclusions_act_without_any_compaction_and_show_on_the_meter(support_actor):
    session = long_session()
    before = fresh(session).signal_tokens
    group = exclude(actor=support_actor, session=session, index=1).indexes
    assert "name 'x0'" not in texts_of(session)
    taken = sum(plans.tokens_between(session.pk, index, index) for index in group)
    assert fresh(session).signal_tokens == before - taken
    assert sum(session.composition.values()) == before - taken
    include(actor=support_actor, session=session, index=1)
    assert fresh(session).signal_tokens == before


def test_the_history_is_never_touched(support_actor):
    session = long_session()
    before = history_digest(session)
    pin(actor=support_actor, session=session, index=0)
    exclude(actor=support_actor, session=session, index=5)
    unpin(actor=support_actor, session=session, index=0)
    assert history_digest(session) == before


def test_each_decision_is_one_event_with_before_and_after(support_actor):
    session = long_session()
    for decide in (pin, exclude, include, pin, unpin):
        decide(actor=support_actor, session=session, index=1)
    events = Event.objects.filter(type__startswith="entry.").order_by("seq")
    assert [event.type for event in events] == ["entry.pinned", "entry.excluded", "entry.included", "entry.pinned", "entry.unpinned"]
    second = events[1]
    assert (second.before, second.after) == ({"pinned": 2, "excluded": 0}, {"pinned": 0, "excluded": 2})
    assert (second.target_kind, second.target_id, second.payload) == ("entry", "1", {"entries": [1, 2], "version": 2})
    assert second.actor_name == support_actor.name


def test_what_is_so_already_changes_nothing_and_is_no_event(support_actor):
    session = long_session()
    pin(actor=support_actor, session=session, index=0)
    again = pin(actor=support_actor, session=session, index=0)
    assert again.indexes == ()
    assert "Nothing was changed." in again.sentence
    assert unpin(actor=support_actor, session=session, index=4).indexes == ()
    assert Event.objects.filter(type__startswith="entry.").count() == 1
    assert fresh(session).overrides["version"] == 1


def test_an_operator_may_not(operator_actor):
    session = long_session()
    for decide in (pin, unpin, exclude, include):
        with pytest.raises(ActionRefused):
            decide(actor=operator_actor, session=session, index=0)
    assert fresh(session).overrides == {}
    assert Event.objects.filter(type="access.refused").exists()


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (0, "belongs to the system prompt"),
        (1, "is a notice"),
        (2, "branch that was left"),
        (99, "has no entry 99"),
        (4, "has no result yet"),
    ],
)
def test_what_can_not_be_decided_is_refused_with_its_reason(support_actor, index, words):
    told = Story().system().notice().user("Left.", off_branch=True).user("Please.").calls("a")
    session = store_session(told.entries)
    for decide in (pin, exclude):
        with pytest.raises(CannotOverride, match=words) as refused:
            decide(actor=support_actor, session=session, index=index)
        assert "Nothing was changed." in str(refused.value)
    assert fresh(session).overrides == {}


def test_a_call_that_never_got_its_result_can_be_pinned_once_somebody_went_on(support_actor):
    session = store_session(Story().user().calls("a").user("Never mind.").says().entries)
    assert pin(actor=support_actor, session=session, index=1).indexes == (1,)


def test_the_latest_request_can_not_be_excluded_before_it_is_answered(support_actor):
    session = store_session(Story().user("One.").says().user("Two.").entries)
    with pytest.raises(CannotOverride, match="latest request"):
        exclude(actor=support_actor, session=session, index=2)
    assert exclude(actor=support_actor, session=session, index=0).indexes == (0,)


def test_a_partner_far_away_is_found(support_actor):
    told = Story().user().calls("far")
    for _ in range(900):
        told.says("Meanwhile.")
    session = store_session(told.result("far").says().entries)
    assert pin(actor=support_actor, session=session, index=902).indexes == (1, 902)


def test_there_is_a_bound_and_it_says_so(support_actor, monkeypatch):
    monkeypatch.setattr(overrides, "MAX_OVERRIDES", 3)
    session = long_session()
    pin(actor=support_actor, session=session, index=1)
    with pytest.raises(CannotOverride, match="3 pinned and excluded"):
        exclude(actor=support_actor, session=session, index=5)
    assert exclude(actor=support_actor, session=session, index=2).indexes == (1, 2)


def test_a_compaction_counts_pins_and_reads_nothing_that_is_excluded(support_actor):
    session = long_session(turns=16)
    pin(actor=support_actor, session=session, index=0)
    exclude(actor=support_actor, session=session, index=5)
    preview = compact_preview(fresh(session))
    compaction = compact(support_actor, session)
    assert (preview.pinned, preview.excluded) == (1, 2)
    assert (preview.boundary_index, preview.folded, preview.kept) == (
        compaction.boundary_index,
        compaction.entries_folded,
        compaction.entries_kept,
    )
    assert compaction.override_version == 2
    assert "name 'x1'" not in texts_of(session)
    assert compaction.tokens_after == plans.view_tokens(fresh(session), plans.load_chain(session)[-1])


def test_the_preview_agrees_with_the_attempt_where_pins_lie_before_the_last_boundary(support_actor):
    session = long_session(turns=16)
    compact(support_actor, session)
    pin(actor=support_actor, session=session, index=1)
    grow(session, turns=10)
    pin(actor=support_actor, session=session, index=fresh(session).entry_count - 30)
    preview = compact_preview(fresh(session))
    compaction = compact(support_actor, session)
    assert (preview.boundary_index, preview.folded, preview.kept) == (
        compaction.boundary_index,
        compaction.entries_folded,
        compaction.entries_kept,
    )
    assert preview.view_tokens == compaction.tokens_before


@pytest.mark.parametrize(("decide", "status"), [(exclude, Status.STALE), (pin, Status.COMPLETED)])
def test_a_running_attempt_is_stale_when_what_it_folds_is_excluded_and_else_commits(support_actor, decide, status, summaries):
    """Its summary may speak of what must not be sent; a pin is only added to its view."""
    session = long_session()
    make_slow(session)
    compaction = request(actor=support_actor, session=session).compaction
    thread = run_in_thread(compaction.pk)
    wait_until(lambda: fresh(compaction).phase == "summarise")
    decide(actor=support_actor, session=session, index=4)
    summaries.let_all()
    thread.join(PATIENCE_S)
    assert fresh(compaction).status == status, compaction.explanation
    if status == Status.STALE:
        assert compaction.reason == SkipReason.STALE_PREIMAGE
    else:
        assert fates(session)[4] is Fate.PINNED


def test_an_exclusion_in_the_tail_lets_a_running_attempt_commit(support_actor, summaries):
    session = long_session()
    make_slow(session)
    compaction = request(actor=support_actor, session=session).compaction
    thread = run_in_thread(compaction.pk)
    wait_until(lambda: fresh(compaction).phase == "summarise")
    exclude(actor=support_actor, session=session, index=fresh(session).entry_count - 1)
    summaries.let_all()
    thread.join(PATIENCE_S)
    assert fresh(compaction).status == Status.COMPLETED


def test_a_pin_stays_until_the_next_compaction_when_it_is_taken_back(support_actor):
    session = long_session()
    pin(actor=support_actor, session=session, index=4)
    compact(support_actor, session)
    before = view_hash(session)
    unpin(actor=support_actor, session=session, index=4)
    assert view_hash(session) == before
    assert fates(session)[4] is Fate.VERBATIM
    grow(session, turns=8)
    compact(support_actor, session)
    assert fates(session)[4] is Fate.SUMMARISED


def test_what_was_excluded_while_others_were_folded_comes_back_whole(support_actor):
    session = long_session()
    exclude(actor=support_actor, session=session, index=1)
    compact(support_actor, session)
    assert fates(session)[1] is Fate.EXCLUDED
    include(actor=support_actor, session=session, index=1)
    assert fates(session)[1] is Fate.VERBATIM
    assert "name 'x0'" in texts_of(session)


def test_going_back_keeps_todays_decisions_unless_it_is_to_be_as_it_was(support_actor):
    session = long_session()
    pin(actor=support_actor, session=session, index=0)
    compact(support_actor, session)
    then = view_hash(session)
    unpin(actor=support_actor, session=session, index=0)
    exclude(actor=support_actor, session=session, index=0)
    exclude(actor=support_actor, session=session, index=fresh(session).entry_count - 3)
    revert(actor=support_actor, session=session, generation=None)
    revert(actor=support_actor, session=session, generation=1)
    assert view_hash(session) != then
    revert(actor=support_actor, session=session, generation=1, as_it_was=True)
    assert view_hash(session) == then
    assert plans.overrides_of(session).pinned == {0}
    assert Event.objects.filter(type="overrides.restored").count() == 1


def test_what_an_agent_has_in_its_context_is_not_said_to_be_changed(support_actor):
    """A pin makes this console's view another one than the agent's own; taken back, the agent's is shown again."""
    from sessions_app.engine.entries import Checkpoint, Segment
    from sessions_app.engine.terms import Lineage, SegmentKind
    from tests.stored import store_checkpoint

    session = long_session()
    theirs = Checkpoint(generation=1, lineage=Lineage.AGENT, segments=(Segment(kind=SegmentKind.RANGE, first=20),), boundary_index=20)
    store_checkpoint(session, theirs)
    assert plans.default_context(session) is Lineage.AGENT
    pin(actor=support_actor, session=session, index=0)
    assert plans.default_context(fresh(session)) is Lineage.CONSOLE
    assert plans.load_chain(session, Lineage.AGENT) == (theirs,)
    assert [segment.first for segment in plans.load_chain(session)[-1].segments] == [0, 20]
    unpin(actor=support_actor, session=session, index=0)
    assert plans.load_chain(fresh(session)) == (theirs,)


def test_rows_tell_what_held_at_any_version_and_entry(support_actor):
    session = long_session()
    pin(actor=support_actor, session=session, index=0)
    grow(session)
    exclude(actor=support_actor, session=session, index=0)
    last = fresh(session).entry_count - 1
    assert plans.overrides_then(session.pk, version=1).pinned == {0}
    assert plans.overrides_then(session.pk, at=last - 1).pinned == {0}
    assert plans.overrides_then(session.pk, at=last).excluded == {0}
    assert plans.overrides_then(session.pk, at=3).is_empty
    assert Override.objects.filter(session=session).count() == 3


def test_a_page_asks_nothing_more_for_what_is_decided(support_actor):
    from django.db import connection

    session = long_session()
    compact(support_actor, session)
    with CaptureQueriesContext(
        connection,
    ) as before:
        history_page(fresh(session), HistoryOptions())
    pin(actor=support_actor, session=session, index=4)
    exclude(actor=support_actor, session=session, index=1)
    with CaptureQueriesContext(connection) as after:
        history_page(fresh(session), HistoryOptions())
    assert len(after) <= len(before) + 1  # the pinned entries themselves, as what a compaction carries


def test_two_people_who_decide_at_once_both_count(support_actor):
    session = long_session()
    threads = [threading.Thread(target=_decides, args=(support_actor, session, index)) for index in (0, 4, 8, 12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert plans.overrides_of(fresh(session)).pinned == {0, 4, 8, 12}
    assert session.overrides["version"] == 4


def _decides(actor: Actor, session: Session, index: int) -> None:
    from django.db import connection

    try:
        pin(actor=actor, session=session, index=index)
    finally:
        connection.close()


def test_a_measurement_from_before_an_exclusion_counts_another_view(support_actor):
    from sessions_app.engine.entries import Usage
    from sessions_app.services import signals

    entries = story(6)
    import msgspec

    entries[-1] = msgspec.structs.replace(entries[-1], usage=Usage(input=5_000))
    session = store_session(entries, kind=SessionKind.INLINE, window_override=8_000)
    signals.refresh(session.pk)
    assert fresh(session).signal_origin == "measured"
    pin(actor=support_actor, session=session, index=0)
    assert fresh(session).signal_origin == "measured"
    exclude(actor=support_actor, session=session, index=1)
    assert fresh(session).signal_origin == "estimated"
