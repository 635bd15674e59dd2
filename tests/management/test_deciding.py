"""`manage.py pin` and `manage.py exclude`."""

import json

import pytest

from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.selectors import plans
from tests.management.commands import run
from tests.services.compaction_scenes import fresh, long_session

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_decision_and_its_undoing():
    session = long_session()
    out, _, end = run("pin", session.pk, 1)
    assert (out, end) == (
        "Entry 1 stays word for word in every view. The same goes for 2: a call and its results stay together.\n",
        Exit.OK,
    )
    assert plans.overrides_of(fresh(session)).pinned == {1, 2}
    assert run("pin", session.pk, 2, undo=True)[2] == Exit.OK
    document = json.loads(run("exclude", session.pk, 4, as_json=True)[0])
    assert (document["object"], document["changed"], document["pinned"], document["excluded"]) == ("overrides", [4], [], [4])
    assert run("exclude", session.pk, 4, undo=True)[2] == Exit.OK
    assert plans.overrides_of(fresh(session)).is_empty


def test_what_is_so_already_and_what_can_not_be():
    session = long_session()
    assert run("exclude", session.pk, 4, undo=True)[2] == Exit.NOTHING_TO_DO
    with pytest.raises(CommandFailure, match="has no entry 999") as failure:
        run("pin", session.pk, 999)
    assert failure.value.end == Exit.USAGE


def test_the_rights_of_the_named_user_count(operator):
    with pytest.raises(CommandFailure, match="may not pin") as failure:
        run("pin", long_session().pk, 0, acting_as=operator.username)
    assert failure.value.end == Exit.REFUSED
