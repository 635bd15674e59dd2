"""Fates of a window: read from what bears on it, and the same as from all the plans."""

import random

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.engine.entries import Checkpoint, Segment
from sessions_app.engine.fates import fate_of
from sessions_app.engine.overrides import Overrides
from sessions_app.engine.shapes import shape_of
from sessions_app.engine.terms import Fate, Lineage, SegmentKind
from sessions_app.selectors import lineages, plans
from sessions_app.selectors.history import HistoryOptions, history_page
from tests.selectors.test_history import plan, told
from tests.stored import store_checkpoint, store_session

pytestmark = pytest.mark.django_db
TURNS, ENTRIES = 40, 240


def chain_of_plans(chance: random.Random, count: int) -> list[Checkpoint]:
    """Plans one upon the other: boundaries move on, now and then back; entries and stretches are carried, results cleared."""
    made = []
    for generation in range(1, count + 1):
        boundary = min(ENTRIES - 1, max(1, round(ENTRIES * generation / (count + 1)) + chance.randrange(-20, 10)))
        singles = [Segment(kind=SegmentKind.ENTRY, first=index) for index in sorted(chance.sample(range(boundary), min(boundary, 3)))]
        start = chance.randrange(boundary)
        stretch = [Segment(kind=SegmentKind.RANGE, first=start, last=min(boundary - 1, start + 4))] * chance.randrange(2)
        made.append(
            Checkpoint(
                generation=generation,
                lineage=Lineage.CONSOLE,
                segments=(*singles, *stretch, Segment(kind=SegmentKind.RANGE, first=boundary)),
                boundary_index=boundary,
                cleared=frozenset(chance.sample(range(ENTRIES), 12)),
                trimmed=chance.random() < 0.3,
            )
        )
    return made


@pytest.mark.parametrize("seed", range(12))
def test_a_window_has_the_fates_that_all_plans_together_give_it(seed):
    chance = random.Random(seed)
    story = told(TURNS)
    session = store_session(story.entries)
    parent = None
    for made in chain_of_plans(chance, chance.choice([1, 2, 5, 16])):
        parent = store_checkpoint(session, made, parent=parent)
    pinned, excluded = (frozenset(chance.sample(range(first, ENTRIES, 2), 4)) for first in (0, 1))
    decided = Overrides(pinned=pinned, excluded=excluded)
    whole = plans.with_overrides(plans.load_chain(session), decided if seed % 2 else Overrides())
    chain = lineages.chain_to(lineages.marks_of(session.pk), parent.pk)
    shapes = [shape_of(entry) for entry in story.entries]
    for start in range(0, ENTRIES, 30):
        window = shapes[start : start + 60]
        found = lineages.window_fates(window, chain, whole[-1])
        assert found == {shape.index: fate_of(shape, whole) for shape in window}


def test_without_a_checkpoint_nothing_is_read_and_all_is_verbatim():
    shapes = [shape_of(entry) for entry in told(2).entries]
    with CaptureQueriesContext(connection) as queries:
        found = lineages.window_fates(shapes, (), None)
    assert {fate.fate for fate in found.values()} == {Fate.VERBATIM}
    assert len(queries) == 0


@pytest.mark.parametrize("at", [None, 3, 170])
def test_a_page_of_a_long_chain_reads_one_block_and_the_checkpoints_that_it_names(at):
    session = store_session(told(TURNS).entries, composition={"text": 1})
    parent = None
    for generation in range(1, 31):
        parent = store_checkpoint(session, plan(generation * 6, generation), parent=parent)
    with CaptureQueriesContext(connection) as queries:
        page = history_page(session, HistoryOptions(at=at))
    assert len(page.marks) == 30
    assert len(page.checkpoints) == 6
    assert [row.generation for row in page.offered] == [25, 26, 27, 28, 29, 30]
    blocks = [query["sql"] for query in queries if '"payload"' in query["sql"]]
    assert len(blocks) == 1
    assert blocks[0].count(str(parent.pk).replace("-", "")) == 1
    assert len(queries) <= 8


def test_an_old_generation_that_is_shown_is_offered_beside_the_newest():
    session = store_session(told(TURNS).entries)
    parent = None
    for generation in range(1, 21):
        parent = store_checkpoint(session, plan(generation * 6, generation), parent=parent, divider=generation * 6)
    page = history_page(session, HistoryOptions(generation=3))
    assert [row.generation for row in page.offered] == [3, 15, 16, 17, 18, 19, 20]
    assert page.checkpoint_of(3).generation == 3
    assert (page.fates[0].generation, page.fates[20].fate) == (1, Fate.VERBATIM)
