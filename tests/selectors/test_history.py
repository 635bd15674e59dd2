"""Windows of a history, read by index: whole, in order, with calls beside their results, at a constant cost."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.engine.entries import Checkpoint, Segment, SyntheticMessage
from sessions_app.engine.terms import Fate, Kind, Lineage, Role, SegmentKind
from sessions_app.selectors.history import HistoryOptions, Layout, history_page
from sessions_app.selectors.history_window import Detail, EntryWindow, WindowPlace, entry_window
from tests.engine.histories import Story, text
from tests.stored import store_checkpoint, store_session

pytestmark = pytest.mark.django_db


def told(turns: int) -> Story:
    """Five entries a turn: a question, two calls side by side, their results as rows of their own, an answer."""
    story = Story()
    for turn in range(turns):
        story.user(f"Question {turn}").calls(f"a{turn}").calls(f"b{turn}").result(f"a{turn}").result(f"b{turn}").says(f"Answer {turn}")
    return story


def covered(window: EntryWindow) -> list[int]:
    return sorted(one.index for item in window.items for one in (item, *item.results))


def plan(boundary: int, generation: int = 1, carried: tuple[int, ...] = (), lineage: Lineage = Lineage.CONSOLE) -> Checkpoint:
    block = Segment(kind=SegmentKind.SYNTHETIC, payload=SyntheticMessage(role=Role.USER, text="## Next step\nGo on."))
    singles = tuple(Segment(kind=SegmentKind.ENTRY, first=index) for index in carried)
    segments = (block, *singles, Segment(kind=SegmentKind.RANGE, first=boundary))
    return Checkpoint(generation=generation, lineage=lineage, segments=segments, boundary_index=boundary)


def test_walking_back_and_forth_shows_every_entry_exactly_once():
    session = store_session(told(60).entries)
    window = entry_window(session.pk, WindowPlace())
    seen = covered(window)
    while window.has_earlier:
        window = entry_window(session.pk, WindowPlace(before=window.first))
        seen = covered(window) + seen
    assert seen == list(range(360))
    forwards = covered(window)
    while window.has_later:
        window = entry_window(session.pk, WindowPlace(start=window.last + 1))
        forwards += covered(window)
    assert forwards == list(range(360))


@pytest.mark.parametrize("at", [0, 1, 2, 3, 4, 5, 100, 177, 354, 359])
def test_a_permalink_leads_to_a_window_that_holds_its_entry(at):
    session = store_session(told(60).entries)
    assert at in covered(entry_window(session.pk, WindowPlace(at=at)))


def test_a_result_stands_in_the_card_of_its_call():
    session = store_session(told(1).entries)
    items = entry_window(session.pk, WindowPlace()).items
    assert [(item.index, [result.index for result in item.results]) for item in items] == [(0, []), (1, [3]), (2, [4]), (5, [])]


def test_a_result_without_its_call_in_sight_stands_alone():
    session = store_session(Story().result("nobody").says().entries)
    assert [item.index for item in entry_window(session.pk, WindowPlace()).items] == [0, 1]


def test_a_window_never_parts_a_call_from_the_results_right_after_it():
    story = Story().user()
    for number in range(58):
        story.says(f"{number}")
    story.calls("late").result("late", words="here").says()
    session = store_session(story.entries)
    window = entry_window(session.pk, WindowPlace(start=0))
    assert window.items[-1].results[0].entry.parts[0].text == "here"


def test_prompts_and_answers_leave_out_calls_thinking_and_reminders():
    story = told(3).reminder().add(Role.ASSISTANT, Kind.THINKING, text("hm"))
    window = entry_window(store_session(story.entries).pk, WindowPlace(detail=Detail.PROMPTS))
    assert [item.index for item in window.items] == [0, 5, 6, 11, 12, 17]


def test_an_empty_session_has_an_empty_window():
    assert entry_window(store_session().pk, WindowPlace()) == EntryWindow()


def test_without_a_checkpoint_the_page_is_canonical_and_everything_verbatim():
    page = history_page(store_session(told(2).entries), HistoryOptions())
    assert page.layout is Layout.CANONICAL
    assert {fate.fate for fate in page.fates.values()} == {Fate.VERBATIM}


def test_with_a_checkpoint_the_page_opens_split_at_its_boundary_and_names_the_generation():
    session = store_session(told(60).entries)
    store_checkpoint(session, plan(120, carried=(114,)))
    page = history_page(session, HistoryOptions())
    assert page.layout is Layout.SPLIT
    assert page.window.first < 120 <= page.window.last
    assert (page.fates[119].fate, page.fates[119].generation) == (Fate.SUMMARISED, 1)
    assert page.fates[114].fate is Fate.VERBATIM
    assert page.fates[120].fate is Fate.VERBATIM
    assert [item.index for item in page.head] == [114]


def test_an_earlier_generation_shows_the_fates_of_then():
    session = store_session(told(20).entries)
    first = store_checkpoint(session, plan(30))
    store_checkpoint(session, plan(60, generation=2), parent=first)
    now = history_page(session, HistoryOptions(at=40))
    then = history_page(session, HistoryOptions(at=40, generation=1))
    never = history_page(session, HistoryOptions(at=40, generation=0))
    assert (now.fates[36].generation, now.fates[29].generation) == (2, 1)
    assert (then.fates[36].fate, then.fates[29].generation) == (Fate.VERBATIM, 1)
    assert never.fates[29].fate is Fate.VERBATIM


def test_a_generation_that_is_not_there_is_said_to_be_missing():
    with pytest.raises(LookupError, match="#7"):
        history_page(store_session(told(1).entries), HistoryOptions(generation=7))


def test_the_agents_context_and_this_consoles_can_be_told_apart():
    session = store_session(told(20).entries)
    agents = store_checkpoint(session, plan(30, lineage=Lineage.AGENT))
    store_checkpoint(session, plan(60, generation=2), parent=agents)
    assert history_page(session, HistoryOptions()).generation == 2
    assert history_page(session, HistoryOptions(context=Lineage.AGENT)).generation == 1
    assert history_page(session, HistoryOptions()).contexts == (Lineage.AGENT, Lineage.CONSOLE)


def test_the_model_view_begins_with_its_head_at_the_boundary():
    session = store_session(told(60).entries)
    store_checkpoint(session, plan(120, carried=(114,)))
    page = history_page(session, HistoryOptions(layout=Layout.VIEW, at=3))
    assert page.window.first == 120
    assert not page.window.has_earlier
    assert [item.index for item in page.head] == [114]


@pytest.mark.parametrize("layout", list(Layout))
def test_a_page_costs_as_many_queries_for_a_long_history_as_for_a_short_one(layout):
    counts = []
    for turns in (30, 300):
        session = store_session(told(turns).entries, composition={"text": 1})
        store_checkpoint(session, plan(turns * 3))
        with CaptureQueriesContext(connection) as queries:
            history_page(session, HistoryOptions(layout=layout))
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 8
