"""`manage.py revert` and `manage.py compactions`."""

import json

import pytest

from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.models import Event
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from tests.management.commands import run
from tests.services.compaction_scenes import fresh, grow, long_session, view_hash

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody")]


@pytest.fixture
def twice(support_actor):
    """A session that was compacted twice, and the hashes of its three views."""
    session = long_session()
    hashes = [view_hash(session)]
    for _ in range(2):
        run_compaction(request(actor=support_actor, session=session).compaction.pk)
        hashes.append(view_hash(session))
        grow(session, 6)
    return fresh(session)


def test_one_step_back_a_named_generation_and_none(twice):
    assert twice.active_console.generation == 2
    document = json.loads(run("revert", twice.pk, as_json=True)[0])
    assert (document["before"]["generation"], document["after"]["generation"], document["changed"]) == (2, 1, True)
    assert fresh(twice).active_console.generation == 1
    out, _, end = run("revert", twice.pk, generation=2)
    assert (out, end) == ("The view is generation #2 (console) now.\n", Exit.OK)
    assert run("revert", twice.pk, none=True)[0] == "The view is the whole history now.\n"
    assert fresh(twice).active_console is None
    assert Event.objects.filter(type="compaction.reverted").count() == 3


def test_what_is_so_already_is_nothing_to_do_and_no_event(twice):
    assert run("revert", twice.pk, generation=2)[2] == Exit.NOTHING_TO_DO
    run("revert", twice.pk, generation=0)
    assert run("revert", twice.pk, none=True)[2] == Exit.NOTHING_TO_DO
    with pytest.raises(CommandFailure, match="nothing to take back") as failure:
        run("revert", twice.pk)
    assert failure.value.end == Exit.NOTHING_TO_DO
    assert Event.objects.filter(type="compaction.reverted").count() == 1


def test_what_cannot_be_reverted_says_why(twice, support_actor, operator):
    with pytest.raises(CommandFailure, match="no checkpoint #9") as failure:
        run("revert", twice.pk, generation=9)
    assert failure.value.end == Exit.NOT_FOUND
    with pytest.raises(CommandFailure, match="may not revert") as failure:
        run("revert", twice.pk, acting_as=operator.username)
    assert failure.value.end == Exit.REFUSED
    request(actor=support_actor, session=twice)
    with pytest.raises(CommandFailure, match="under way") as failure:
        run("revert", twice.pk)
    assert failure.value.end == Exit.BUSY


def test_the_ledger_lists_attempts_and_opens_one(twice):
    rows = json.loads(run("compactions", twice.pk, as_json=True)[0])["data"]
    assert [(row["generation"], row["is_in_force"]) for row in rows] == [(2, True), (1, False)]
    assert rows[0]["tokens_before"]["scope"] == rows[0]["tokens_after"]["scope"] == "view"
    assert len(json.loads(run("compactions", twice.pk, as_json=True, limit=1)[0])["data"]) == 1
    opened = json.loads(run("compactions", twice.pk, as_json=True, generation=1)[0])
    assert opened["attempt"] == 1
    assert opened["summary"]
    assert opened["policy"]["profile"]["source"]
    assert "== Summary" in run("compactions", twice.pk, attempt=1)[0]
    with pytest.raises(CommandFailure, match="no attempt 9") as failure:
        run("compactions", twice.pk, attempt=9)
    assert failure.value.end == Exit.NOT_FOUND
