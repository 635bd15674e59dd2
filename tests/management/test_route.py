"""`manage.py route`: a router's report of a change of tier, and what follows."""

import json
import uuid

import pytest

from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.models import Compaction, SessionKind, SessionStatus
from tests.management.commands import run
from tests.services.compaction_scenes import long_session, set_policy

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody")]


@pytest.fixture
def session():
    return long_session(40, kind=SessionKind.INLINE, status=SessionStatus.WORKING)


def test_a_move_up_to_the_highest_tier_compacts_once_a_turn(session):
    turn = uuid.uuid4()
    out, err, end = run("route", session.pk, "--tier", "t3", "--from", "t1", "--turn", turn)
    assert (out, end, "a1 committed" in err) == ("handled\n", Exit.OK, True)
    told = json.loads(run("route", session.pk, "--tier", "c3", "--from", "c1", "--turn", turn, as_json=True)[0])
    assert (told["result"], told["reason"], told["compaction_id"]) == ("handled", "already_attempted_this_turn", None)
    assert Compaction.objects.count() == 1


@pytest.mark.parametrize("report", [("--tier", "c1", "--from", "c0"), ("--tier", "c3", "--from", "c2", "--observed"), ("--tier", "gold")])
def test_what_is_no_such_move_does_nothing(session, report):
    assert run("route", session.pk, *report)[::2] == ("not_applicable\n", Exit.NOTHING_TO_DO)
    assert Compaction.objects.count() == 0


def test_the_room_that_the_request_leaves_decides(session):
    set_policy(session, safety_margin=1.0)
    told = json.loads(run("route", session.pk, "--tier", "c3", "--from", "c2", "--history-tokens", 1_000_000, as_json=True)[0])
    assert (told["result"], told["reason"]) == ("handled", "within_compaction_budget")


def test_who_only_reads_is_refused(session, operator):
    with pytest.raises(CommandFailure, match="may not compact") as failure:
        run("route", session.pk, "--tier", "c3", "--from", "c2", acting_as=operator.username)
    assert failure.value.end == Exit.REFUSED
