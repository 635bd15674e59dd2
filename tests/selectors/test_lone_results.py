"""Results whose call is not there: the page says that they are not sent, which is what the view does with them."""

import pytest
from django.urls import reverse
from hypothesis import HealthCheck, given, settings

from sessions_app.engine import view
from sessions_app.engine.entries import Checkpoint, Segment
from sessions_app.engine.shapes import shape_of
from sessions_app.engine.terms import Fate, Kind, Lineage, PartKind, SegmentKind
from sessions_app.models import Entry, Session
from sessions_app.selectors.history import HistoryOptions, Layout, history_page
from sessions_app.selectors.lone_results import left_out
from tests.engine.histories import Story, histories
from tests.services.compaction_scenes import fresh, long_session
from tests.stored import store_session

pytestmark = pytest.mark.django_db


def lone(session: Session, entries, plan: Checkpoint | None = None) -> frozenset[int]:
    return left_out(session.pk, [shape_of(entry) for entry in entries], plan)


def test_where_each_result_stands_behind_its_call_nothing_is_asked(django_assert_num_queries):
    story = Story().user().calls("a", "b").result("a").result("b").says()
    session = store_session(story.entries)
    with django_assert_num_queries(0):
        assert lone(session, story.entries) == frozenset()


def test_a_result_whose_call_is_not_there_is_left_out_and_one_whose_call_lies_before_the_window_is_not():
    story = Story().user().calls("a", "b").result("lost").result("b").result("a").says()
    session = store_session(story.entries)
    assert lone(session, story.entries) == {2}
    assert lone(session, story.entries[2:]) == {2}


def test_a_call_that_the_view_does_not_hold_is_none():
    story = Story().user().calls("a").result("a").says().user()
    session = store_session(story.entries)
    plan = Checkpoint(generation=1, lineage=Lineage.CONSOLE, segments=(Segment(kind=SegmentKind.RANGE, first=2),), boundary_index=2)
    assert lone(session, story.entries[2:], plan) == {2}
    assert lone(session, story.entries[2:]) == frozenset()


@given(histories())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_is_what_the_view_leaves_out_but_for_second_results(entries):
    Session.objects.all().delete()
    session = store_session(entries)
    sent = {part.entry_index for message in view.build(entries, None) for part in message.parts if part.part.kind is PartKind.RESULT}
    results = {entry.index for entry in entries if entry.kind is Kind.RESULT and entry.is_sendable and not entry.off_branch}
    assert lone(session, entries) <= results - sent


@pytest.mark.parametrize("layout", list(Layout))
def test_the_page_says_so_in_every_layout(client, support, layout):
    session = long_session()
    Entry.objects.filter(session=session, kind="call", call_id="call-1").delete()
    client.force_login(support)
    html = client.get(reverse("session-detail", args=[session.pk]), {"layout": layout.value, "at": 4}).content.decode()
    assert "One result here is not sent (6): the call is not in the view" in html
    if layout is Layout.SPLIT:
        assert "not sent: the call that it answers is not in the view" in html
    if layout is not Layout.VIEW:
        page = history_page(fresh(session), HistoryOptions(layout=layout, at=4))
        assert page.fates[6].fate is Fate.DISPLAY_ONLY
