"""Rows that are damaged: pages still show the history and say what is wrong, commands and turns end with it, and nothing else is sent."""

import json

import pytest
from django.urls import reverse

from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.models import Blob, Compaction, Entry, Session, Turn, ViewSegment
from sessions_app.selectors import plans
from sessions_app.selectors.entry_rows import UNREADABLE
from sessions_app.services import signals
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.revert import revert
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.turns.run import run_turn
from sessions_app.services.turns.send import send
from tests.management.commands import run
from tests.services.compaction_scenes import fresh, grow, long_session

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody", "no_pauses")]


@pytest.fixture
def session(support_actor) -> Session:
    """Held here, with a checkpoint in force."""
    session = long_session(kind="inline", provider="scripted", model="scripted", agent="palimpsest")
    run_compaction(request(actor=support_actor, session=session).compaction.pk)
    grow(session, 4)
    signals.refresh(session.pk)
    return fresh(session)


@pytest.fixture
def page(client, support):
    client.force_login(support)
    return lambda session, **query: client.get(reverse("session-detail", args=[session.pk]), query)


def turn_of(session: Session, actor) -> Turn:
    turn = send(actor=actor, session=session, text="What is left?")
    assert run_turn(session.pk)
    return fresh(turn)


HARMS = {
    "its plan is gone": lambda session: ViewSegment.objects.all().delete(),
    "its block can't be read": lambda session: ViewSegment.objects.filter(kind="synthetic").update(payload={"role": "robot"}),
    "it never was committed": lambda session: Compaction.objects.update(generation=None, status="failed"),
}


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_a_checkpoint_that_is_damaged_takes_the_view_and_nothing_else_with_it(session, support_actor, page, harm):
    harm(session)
    for query in ({}, {"layout": "view"}, {"layout": "split"}, {"layout": "canonical", "at": 2}):
        html = page(session, **query).content.decode()
        assert "what is stored of it is damaged. The history is whole" in html
        assert "manage.py doctor --repair" in html
        assert 'id="e2"' in html or "Turn 1" in html or "module_" in html
    with pytest.raises(CommandFailure, match="can't be built") as failure:
        run("view", session.pk)
    assert failure.value.end == Exit.FAILED
    assert run("view", session.pk, "--generation", "0")[2] == Exit.OK
    turn = turn_of(session, support_actor)
    assert (turn.status, turn.reason, turn.calls) == ("failed", "broken_view", 0)
    assert "manage.py doctor --repair" in turn.explanation
    attempt = request(actor=support_actor, session=fresh(session)).compaction
    run_compaction(attempt.pk)
    assert (fresh(attempt).status, attempt.reason) == ("failed", "broken_view")


def test_pages_that_need_the_view_refuse_with_what_is_wrong(session, client, support):
    ViewSegment.objects.all().delete()
    client.force_login(support)
    answer = client.get(reverse("compaction-create", args=[session.pk]))
    assert (answer.status_code, "can&#x27;t be built" in answer.content.decode()) == (409, True)


def test_a_revert_is_a_way_out(session, support_actor, page):
    ViewSegment.objects.all().delete()
    revert(actor=support_actor, session=fresh(session), generation=None)
    assert "damaged" not in page(session).content.decode()
    assert turn_of(session, support_actor).status == "completed"


def test_an_entry_that_cannot_be_read_is_a_note_in_its_place(session, support_actor, page):
    last = session.entry_count - 1
    Entry.objects.filter(session=session, index=last).update(parts='[{"kind":"te')
    Entry.objects.filter(session=session, index=2).update(parts='[{"kind":"nonsense"}]')
    assert "can&#x27;t be read as it is stored" in page(session, layout="canonical", at=2).content.decode()
    assert UNREADABLE in [part.part.text for message in plans.load_view(fresh(session)) for part in message.parts]
    assert turn_of(session, support_actor).status == "completed"


def test_a_long_text_whose_rest_is_gone_is_shown_and_sent_as_far_as_it_is_there(session, support_actor, page, client):
    last = session.entry_count - 1
    part = {"kind": "text", "text": "The beginning", "blob": "0" * 64, "chars": 50_000}
    Entry.objects.filter(session=session, index=last).update(parts=json.dumps([part]))
    said = [part.part.text for message in plans.load_view(fresh(session), whole=True) for part in message.parts]
    assert "The beginning\n[The rest of this text is not in the store any more: 49,987 characters.]" in said
    assert page(session).status_code == 200
    text = client.get(reverse("part-text", args=[session.pk, last, 0]))
    assert (text.status_code, "not in the store any more" in text.content.decode()) == (200, True)
    assert turn_of(session, support_actor).status == "completed"


def test_a_picture_that_is_gone_is_not_found(session, client, support):
    part = {"kind": "image", "blob": "0" * 64, "media_type": "image/png"}
    Entry.objects.filter(session=session, index=1).update(parts=json.dumps([part]))
    client.force_login(support)
    assert not Blob.objects.exists()
    assert client.get(reverse("part-image", args=[session.pk, 1, 0])).status_code == 404
