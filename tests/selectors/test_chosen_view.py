"""Which view is meant: of a context, a generation, or as it was at an entry."""

import pytest

from sessions_app.engine import view
from sessions_app.engine.entries import Checkpoint, Segment
from sessions_app.engine.terms import Lineage, SegmentKind
from sessions_app.models import Session
from sessions_app.selectors import plans
from sessions_app.selectors.chosen_view import chosen_view
from sessions_app.selectors.view_stream import stream_view
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.revert import revert
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.overrides import exclude, include, pin, unpin
from tests.services.compaction_scenes import fresh, grow, long_session, view_hash
from tests.stored import store_checkpoint

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("queue_of_nobody")]


def compacted(actor, session: Session):
    compaction = request(actor=actor, session=session, force=True).compaction
    run_compaction(compaction.pk)
    fresh(session)
    return fresh(compaction)


def test_without_a_wish_it_is_the_view_in_force(support_actor):
    session = long_session()
    assert chosen_view(session).chain == ()
    compacted(support_actor, session)
    assert chosen_view(session).chain == plans.load_chain(session)
    assert chosen_view(session, generation=0).chain == ()
    with pytest.raises(LookupError, match="no generation #2"):
        chosen_view(session, generation=2)


def test_at_an_entry_it_is_the_view_of_that_time(support_actor):
    session = long_session()
    last = session.entry_count - 1
    first = compacted(support_actor, session)
    assert chosen_view(session, at=last).generation == 0
    assert chosen_view(session, at=first.divider_index).generation == 1
    grow(session, 6)
    second = compacted(support_actor, session)
    assert chosen_view(session, at=second.divider_index - 1).generation == 1
    revert(actor=support_actor, session=session, generation=1)
    assert chosen_view(fresh(session), at=second.divider_index).generation == 1
    assert chosen_view(session, at=0).upto == 0


def test_an_agents_own_checkpoint_counts_from_its_row_on():
    session = long_session()
    plan = Checkpoint(generation=1, lineage=Lineage.AGENT, segments=(Segment(kind=SegmentKind.RANGE, first=20),), boundary_index=20)
    store_checkpoint(session, plan, divider=19)
    assert [chosen_view(session, at=at).generation for at in (18, 19, 30)] == [0, 1, 1]
    assert chosen_view(session, at=30).context is Lineage.AGENT
    assert chosen_view(session, at=30, context=Lineage.CONSOLE).generation == 0


def test_at_any_entry_the_view_is_byte_for_byte_what_it_was(support_actor):
    """Checkpoints, reverts, pins and exclusions come and go; what was sent at an entry can be told for ever."""
    session = long_session()
    seen: dict[int, str] = {}

    def go_on() -> None:
        current = fresh(session)
        seen[current.entry_count - 1] = view_hash(session)
        grow(session, 3)

    go_on()
    for number, decide in enumerate((pin, exclude, unpin, include)):
        decide(actor=support_actor, session=session, index=4 * (number % 2) + 1)
        go_on()
        compacted(support_actor, session)
        go_on()
    revert(actor=support_actor, session=session, generation=2)
    go_on()
    revert(actor=support_actor, session=session, generation=3, as_it_was=True)
    go_on()
    revert(actor=support_actor, session=session, generation=None)
    go_on()
    assert len(set(seen.values())) == len(seen) == 12
    for at, then in seen.items():
        found = chosen_view(fresh(session), at=at)
        assert view.view_hash(tuple(stream_view(session.pk, found.checkpoint, upto=at))) == then
        clipped = found.clipped_checkpoint
        assert clipped is None or view.view_hash(plans.view_of(session.pk, clipped)) == then
