"""Going back: any earlier checkpoint, or none, gives byte for byte the view that it gave before."""

import pytest

from sessions_app.engine import view
from sessions_app.events.actors import Actor
from sessions_app.models import Compaction, Event, Session
from sessions_app.selectors import plans
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.revert import CompactionUnderWay, UnknownGeneration, revert
from sessions_app.services.compactions.run import run_compaction
from tests.services.compaction_scenes import fresh, grow, history_digest, long_session

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody")]


def compact(actor: Actor, session: Session) -> Compaction:
    compaction = request(actor=actor, session=session).compaction
    run_compaction(compaction.pk)
    return fresh(compaction)


def view_without_new_entries(session: Session, generation: int | None, entry_count: int) -> str:
    """The hash of a generation's view over the entries that there were when it was made."""
    compaction = Compaction.objects.filter(session=session, generation=generation).first() if generation else None
    chain = plans.chain_of(compaction)
    return view.view_hash(view.build(plans.load_entries(session.pk, 0, entry_count - 1), chain[-1] if chain else None))


def test_each_of_three_generations_and_none_can_be_gone_back_to_byte_for_byte(support_actor):
    session = long_session()
    seen: dict[int | None, tuple[str, int]] = {}

    def remember(generation: int | None) -> None:
        current = fresh(session)
        seen[generation] = (view.view_hash(plans.load_view(current)), current.entry_count)

    remember(None)
    for generation in (1, 2, 3):
        assert compact(support_actor, session).generation == generation
        remember(generation)
        grow(session, turns=6)
    wanted: tuple[int | None, ...] = (1, None, 3, 2)
    for number in wanted:
        revert(actor=support_actor, session=session, generation=number)
        active = fresh(session).active_console
        assert (active.generation if active else None) == number
        hash_then, entries_then = seen[number]
        assert view_without_new_entries(session, number, entries_then) == hash_then


def test_going_back_touches_no_entry_and_no_checkpoint(support_actor):
    session = long_session()
    compact(support_actor, session)
    history = history_digest(session)
    checkpoints = list(Compaction.objects.values())
    revert(actor=support_actor, session=session, generation=None)
    assert history_digest(session) == history
    assert list(Compaction.objects.values()) == checkpoints


def test_going_back_is_an_event_that_says_from_where_to_where(support_actor):
    session = long_session()
    compact(support_actor, session)
    revert(actor=support_actor, session=session, generation=None)
    event = Event.objects.get(type="compaction.reverted")
    assert (event.before, event.after, event.actor_name) == ({"generation": 1}, {"generation": None}, support_actor.name)


def test_going_back_to_where_one_is_does_nothing(support_actor):
    session = long_session()
    compact(support_actor, session)
    events = Event.objects.count()
    revert(actor=support_actor, session=session, generation=1)
    assert Event.objects.count() == events


def test_the_signal_follows_the_checkpoint_in_force(support_actor):
    session = long_session()
    whole = fresh(session).signal_tokens
    compact(support_actor, session)
    assert (fresh(session).signal_tokens or 0) < (whole or 0)
    assert (revert(actor=support_actor, session=session, generation=None).signal_tokens or 0) >= (whole or 0)


def test_after_going_back_a_new_compaction_takes_a_new_number_and_names_its_parent(support_actor):
    session = long_session()
    first = compact(support_actor, session)
    grow(session, turns=6)
    compact(support_actor, session)
    revert(actor=support_actor, session=session, generation=1)
    grow(session, turns=6)
    third = compact(support_actor, session)
    assert (third.generation, third.parent) == (3, first)
    assert [checkpoint.generation for checkpoint in plans.load_chain(fresh(session))] == [1, 3]


def test_a_number_that_no_checkpoint_has_is_refused(support_actor):
    session = long_session()
    with pytest.raises(UnknownGeneration):
        revert(actor=support_actor, session=session, generation=7)


def test_nothing_is_gone_back_to_while_a_compaction_is_under_way(support_actor):
    session = long_session()
    compact(support_actor, session)
    request(actor=support_actor, session=session)
    with pytest.raises(CompactionUnderWay):
        revert(actor=support_actor, session=session, generation=None)
    assert fresh(session).active_console is not None
