"""Drafts that wait: counted for everybody, and ended by the sweep once they can never be committed."""

import pytest
from django.test import Client

from sessions_app.engine.terms import Status
from sessions_app.models import Compaction, Entry, Event, Session
from sessions_app.selectors import drafts_page
from sessions_app.services import sweeper
from sessions_app.services.compactions import drafts
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.revert import revert
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.overrides import exclude
from tests.services.compaction_scenes import fresh, grow, long_session

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody")]


@pytest.fixture(autouse=True)
def _nobody_looked_for_drafts_lately():
    drafts._looked.at = None


def made(actor, session: Session, *, review: bool = True) -> Compaction:
    compaction = request(actor=actor, session=fresh(session), changes={"review_before_commit": review}).compaction
    run_compaction(compaction.pk)
    return fresh(compaction)


def test_a_draft_whose_prefix_was_rewound_is_ended_by_the_sweep_which_says_why(support_actor):
    session = long_session()
    draft = made(support_actor, session)
    assert sweeper.sweep().drafts_ended == 0
    Entry.objects.filter(session=session, index__in=range(4, 8)).update(off_branch=True)
    assert sweeper.sweep().drafts_ended == 1
    assert (fresh(draft).status, draft.outcome) == (Status.STALE, "stale")
    assert draft.explanation.startswith("The entries before entry ")
    assert draft.explanation.endswith(" so its summary fits them no more. Nothing of it was used.")
    event = Event.objects.filter(compaction_id=draft.pk, step__isnull=False).latest("seq")
    assert (event.payload["status"], event.actor_name) == ("stale", "sweeper")
    assert sweeper.sweep().drafts_ended == 0


def test_so_is_one_that_folds_what_was_excluded_since(support_actor):
    session = long_session()
    draft = made(support_actor, session)
    exclude(actor=support_actor, session=fresh(session), index=5)
    assert sweeper.sweep().drafts_ended == 1
    assert "was excluded after this draft was made" in fresh(draft).explanation


def test_one_that_still_fits_or_is_blocked_alone_goes_on_waiting(support_actor):
    session = long_session()
    made(support_actor, session, review=False)
    grow(session, 12)
    draft = made(support_actor, session)
    grow(session, 2)
    assert sweeper.sweep().drafts_ended == 0
    revert(actor=support_actor, session=fresh(session), generation=None)
    assert sweeper.sweep().drafts_ended == 0
    assert fresh(draft).status == Status.DRAFTED


def test_of_many_each_sweep_looks_at_some_and_all_get_their_turn(support_actor):
    waiting = [made(support_actor, long_session(title=f"Session {number}", source_key=f"many:{number}")) for number in range(5)]
    Entry.objects.filter(index__in=range(4, 8)).update(off_branch=True)
    ended = [drafts.end_stale(actor=support_actor, at_most=2) for _ in range(4)]
    assert (ended, sum(fresh(one).status == Status.STALE for one in waiting)) == ([2, 2, 1, 0], 5)


def test_the_navigation_counts_what_waits_at_once(client: Client, support, support_actor):
    client.force_login(support)
    assert 'href="/drafts/"' in client.get("/").content.decode()
    assert "wait for somebody to decide" not in client.get("/").content.decode()
    draft = made(support_actor, long_session())
    assert drafts_page.waiting_count() == 1
    page = client.get("/").content.decode()
    assert 'title="1 waits for somebody to decide"' in page
    assert 'aria-current="page">Drafts' in client.get("/drafts/").content.decode()
    drafts.discard(actor=support_actor, session=draft.session, compaction_id=draft.pk)
    assert "for somebody to decide" not in client.get("/").content.decode()
