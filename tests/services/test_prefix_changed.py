"""A checkpoint over a history that is another one now is not used: not for a turn, a compaction or a page, and each says so."""

import pytest
from django.urls import reverse

from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.models import Compaction, Entry, Event, Session
from sessions_app.selectors import plans
from sessions_app.services import signals
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.revert import revert
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.doctor.examination import examine
from sessions_app.services.turns.run import run_turn
from sessions_app.services.turns.send import send
from tests.management.commands import run
from tests.services.compaction_scenes import fresh, grow, long_session

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody", "no_pauses")]


@pytest.fixture
def session(support_actor) -> Session:
    """Held here, with two checkpoints; the history before the boundary of the second is another one than it was made of."""
    session = long_session(kind="inline", provider="scripted", model="scripted", agent="palimpsest")
    for _ in range(2):
        run_compaction(request(actor=support_actor, session=fresh(session)).compaction.pk)
        grow(session, 8)
        signals.refresh(session.pk)
    last = Compaction.objects.get(session=session, generation=2)
    assert Entry.objects.filter(session=session, index=last.boundary_index - 1).update(prefix_hash=b"x" * 32) == 1
    return fresh(session)


WORDS = "are not those that checkpoint #2 was made of"


def answered(session: Session, actor):
    turn = send(actor=actor, session=session, text="What is left?")
    assert run_turn(session.pk)
    return fresh(turn)


def test_a_turn_sends_nothing_and_ends_with_why(session, support_actor):
    turn = answered(session, support_actor)
    assert (turn.status, turn.reason, turn.calls) == ("failed", "prefix_changed", 0)
    assert WORDS in turn.explanation
    event = Event.objects.get(type="turn.failed")
    assert event.reason == "prefix_changed"


def test_no_compaction_is_built_on_it(session, support_actor):
    attempt = request(actor=support_actor, session=session).compaction
    run_compaction(attempt.pk)
    assert (fresh(attempt).status, attempt.reason) == ("failed", "prefix_changed")
    assert WORDS in attempt.explanation


def test_pages_and_commands_say_so(session, client, support):
    client.force_login(support)
    for layout in ("view", "split", "canonical"):
        html = client.get(reverse("session-detail", args=[session.pk]), {"layout": layout}).content.decode()
        assert WORDS in html
    dialog = client.get(reverse("compaction-create", args=[session.pk]))
    assert (dialog.status_code, WORDS in dialog.content.decode()) == (409, True)
    with pytest.raises(CommandFailure, match=WORDS) as failure:
        run("view", session.pk)
    assert failure.value.end == Exit.FAILED
    assert run("view", session.pk, "--generation", "1")[2] == Exit.OK


def test_another_generation_is_a_way_out(session, support_actor):
    revert(actor=support_actor, session=session, generation=1)
    assert answered(session, support_actor).status == "completed"


def test_the_doctor_finds_the_same_and_goes_back_to_the_newest_that_fits(session, support_actor):
    assert any("are not those that it was made of" in finding.what for finding in examine(session.pk).findings)
    run("doctor", session.pk, "--repair")
    assert fresh(session).active_console.generation == 1
    assert answered(session, support_actor).status == "completed"


def test_whether_it_fits_is_one_row(session, django_assert_num_queries):
    revert_to = Compaction.objects.get(session=session, generation=1)
    with django_assert_num_queries(1):
        plans.check_prefix(session.pk, 1, revert_to.boundary_index, revert_to.prefix_hash)
    with django_assert_num_queries(0):
        plans.check_prefix(session.pk, 1, revert_to.boundary_index, b"")  # an agent's own tells nothing
