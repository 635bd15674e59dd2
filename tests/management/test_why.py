"""`manage.py why` and `manage.py reset_breaker`."""

import json
import uuid

import pytest

from sessions_app.engine.breaker import OPENS_AT
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.models import Event, Session, SessionKind, SessionStatus
from sessions_app.services.compactions.automatic import before_turn
from sessions_app.services.compactions.lease import database_time
from tests.management.commands import run
from tests.services.compaction_scenes import fresh, long_session

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody")]


@pytest.fixture
def session() -> Session:
    return long_session(40, kind=SessionKind.INLINE, status=SessionStatus.WORKING)


def test_before_the_first_evaluation_it_says_when_there_will_be_one(session):
    assert run("why", session.pk)[0] == "Not evaluated yet: that happens before each turn.\n"
    assert json.loads(run("why", session.pk, as_json=True)[0])["evaluation"] is None


def test_the_last_evaluation_in_a_sentence_and_with_its_numbers_apart(session, support_actor):
    before_turn(session=session, actor=support_actor, turn_id=uuid.uuid4())
    assert run("why", session.pk)[0].startswith("It fired: ")
    told = json.loads(run("why", session.pk, as_json=True)[0])
    assert (told["object"], told["session_id"], told["evaluation"]["fires"]) == ("evaluation", str(session.pk), True)
    assert told["evaluation"]["signal"]["tokens"] >= told["evaluation"]["limit"] == 6_400
    assert told["breaker"] == {"failures": 0, "failed_at": None, "rests_until": None}


def test_a_breaker_that_is_open_is_told_and_reset(session, operator):
    Session.objects.filter(pk=session.pk).update(breaker_failures=OPENS_AT, breaker_failed_at=database_time())
    assert "automatic compactions failed, so they rest until" in run("why", session.pk)[0]
    with pytest.raises(CommandFailure, match="may not reset breaker") as failure:
        run("reset_breaker", session.pk, acting_as=operator.username)
    assert failure.value.end == Exit.REFUSED
    out, _, end = run("reset_breaker", session.pk)
    assert (out.startswith("Automatic compaction starts again"), end) == (True, Exit.OK)
    assert fresh(session).breaker_failures == 0
    assert run("reset_breaker", session.pk)[2] == Exit.NOTHING_TO_DO
    assert Event.objects.filter(type="breaker.reset").count() == 1
