"""Forks: the same entries and the same view, byte for byte, in a session that goes its own way."""

import pytest

from sessions_app.engine import view
from sessions_app.models import Blob, Compaction, Entry, Event, Session
from sessions_app.selectors import plans
from sessions_app.selectors.chosen_view import chosen_view
from sessions_app.services import overrides, signals
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.revert import UnknownGeneration, revert
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.forks import InvalidFork, fork
from sessions_app.services.turns.send import send
from tests.services.compaction_scenes import fresh, grow, history_digest, long_session, set_policy, view_hash

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("queue_of_nobody")]


def compacted(actor, session: Session) -> Compaction:
    compaction = request(actor=actor, session=fresh(session)).compaction
    run_compaction(compaction.pk)
    assert fresh(compaction).generation, fresh(compaction).explanation
    return compaction


@pytest.fixture
def twice(support_actor) -> Session:
    """A session with two checkpoints, one built on the other, and entries after each."""
    session = long_session()
    for _ in range(2):
        compacted(support_actor, session)
        grow(session, 8)
    return fresh(session)


def hash_at(session: Session, generation: int) -> str:
    return view.view_hash(plans.view_of(session.pk, chosen_view(fresh(session), generation=generation).checkpoint))


def test_a_fork_has_the_same_history_and_the_same_view_byte_for_byte(support_actor, twice):
    copy = fork(actor=support_actor, session=twice)
    assert history_digest(copy) == history_digest(twice)
    assert view_hash(copy) == view_hash(twice)
    assert (copy.entry_count, copy.tokens_total, bytes(copy.head_hash)) == (twice.entry_count, twice.tokens_total, bytes(twice.head_hash))


@pytest.mark.parametrize("generation", [0, 1, 2])
def test_a_fork_at_a_generation_shows_what_that_generation_shows(support_actor, twice, generation):
    copy = fork(actor=support_actor, session=twice, generation=generation)
    assert view_hash(copy) == hash_at(twice, generation)
    assert len(plans.load_chain(fresh(copy))) == generation


@pytest.mark.parametrize("generation", [1, 2])
def test_a_fork_as_it_was_ends_where_the_checkpoint_was_committed(support_actor, twice, generation):
    checkpoint = Compaction.objects.get(session=twice, generation=generation)
    then = chosen_view(twice, at=checkpoint.divider_index)
    copy = fork(actor=support_actor, session=twice, generation=generation, as_it_was=True)
    assert copy.entry_count == copy.inherited_count == checkpoint.divider_index
    assert history_digest(copy) == history_digest(twice)[: checkpoint.divider_index]
    assert view_hash(copy) == view.view_hash(view.build(plans.load_entries(twice.pk, 0, then.upto), then.checkpoint))


def test_every_generation_that_was_copied_can_be_restored_byte_for_byte(support_actor, twice):
    copy = fork(actor=support_actor, session=twice)
    for generation in (None, 1, 2, 1):
        revert(actor=support_actor, session=fresh(copy), generation=generation)
        assert view_hash(copy) == hash_at(twice, generation or 0)


def test_what_the_copies_cost_is_counted_once(support_actor):
    session = long_session()
    Entry.objects.filter(session=session, index=3).update(usage={"input": 900, "output": 40})
    signals.refresh(session.pk)
    copy = fork(actor=support_actor, session=fresh(session))
    assert not Entry.objects.filter(session=copy, usage__isnull=False).exists()
    assert Entry.objects.filter(session=session, usage__isnull=False).count() == 1
    assert (fresh(session).signal_origin, fresh(copy).signal_origin) == ("measured", "estimated")


def test_blobs_are_shared_and_records_stay_with_the_origin(support_actor):
    session = long_session()
    before = Blob.objects.count()
    copy = fork(actor=support_actor, session=session)
    assert Blob.objects.count() == before
    assert not copy.source_files.exists()


def test_both_streams_tell_of_the_fork(support_actor, twice):
    copy = fork(actor=support_actor, session=twice, generation=1)
    told = {event.stream: event for event in Event.objects.filter(type="session.forked")}
    assert told[f"session:{twice.pk}"].payload["fork"] == str(copy.pk)
    assert told[f"session:{copy.pk}"].payload["origin"] == str(twice.pk)
    assert {event.actor_name for event in told.values()} == {"ana"}
    assert (copy.relation, copy.parent_id, copy.copied_from) == ("fork", twice.pk, twice.source_key)


def test_the_two_go_their_own_ways(support_actor, twice):
    before = view_hash(twice)
    copy = fork(actor=support_actor, session=twice)
    grow(copy, 10)
    done = compacted(support_actor, copy)
    assert fresh(done).generation == 3
    assert view_hash(twice) == before
    assert fresh(twice).last_generation == 2


def test_a_generation_of_a_fork_never_has_the_number_of_a_divider_in_its_history(support_actor, twice):
    copy = fork(actor=support_actor, session=twice, generation=1)
    grow(copy, 8)
    assert fresh(compacted(support_actor, copy)).generation == 3


def test_pins_and_exclusions_come_along(support_actor, twice):
    overrides.pin(actor=support_actor, session=twice, index=4)
    copy = fork(actor=support_actor, session=fresh(twice))
    assert view_hash(copy) == view_hash(twice)
    assert plans.overrides_of(copy).pinned == plans.overrides_of(fresh(twice)).pinned
    was = fork(actor=support_actor, session=fresh(twice), generation=2, as_it_was=True)
    assert plans.overrides_of(was).is_empty


def test_the_policy_of_the_session_comes_along(support_actor, twice):
    set_policy(twice, threshold_pct=0.5)
    copy = fork(actor=support_actor, session=twice)
    assert plans.effective_policy(copy).policy.threshold_pct == 0.5


def test_with_a_model_the_fork_is_held_here_and_goes_on(support_actor, twice):
    copy = fork(actor=support_actor, session=twice, model="scripted")
    assert (copy.kind, copy.provider, twice.kind) == ("inline", "scripted", "imported")
    assert send(actor=support_actor, session=copy, text="Go on.").text == "Go on."
    assert fork(actor=support_actor, session=copy).kind == "inline"


@pytest.mark.parametrize(("options", "words"), [({"model": "nobody:x"}, "There is no model"), ({"as_it_was": True}, "no moment")])
def test_what_cannot_be_forked_leaves_nothing_behind(support_actor, options, words):
    session = long_session()
    with pytest.raises(InvalidFork, match=words):
        fork(actor=support_actor, session=session, **options)
    with pytest.raises(UnknownGeneration):
        fork(actor=support_actor, session=session, generation=9)
    assert Session.objects.count() == 1


def test_a_fork_that_fails_halfway_leaves_nothing_behind(support_actor, twice, monkeypatch):
    def fail(*_args):
        raise RuntimeError("the disk is full")

    monkeypatch.setattr("sessions_app.services.forks._copy_policy", fail)
    with pytest.raises(RuntimeError):
        fork(actor=support_actor, session=twice)
    assert Session.objects.count() == 1
    assert Entry.objects.count() == twice.entry_count


@pytest.mark.parametrize("model", ["scripted@1", "scripted@99999999999", "scripted@" + "9" * 5_000])
def test_a_fork_with_a_window_that_no_session_may_have_is_refused_in_words(support_actor, model):
    session = long_session()
    with pytest.raises(InvalidFork, match="Nothing was made") as refusal:
        fork(actor=support_actor, session=session, model=model)
    assert refusal.value.field == "model"
    assert Session.objects.count() == 1
