"""`doctor`: what is wrong with sessions, as text and as JSON; dry by default, repairs when asked to."""

import json

import pytest

from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.models import Entry, Event, Session
from sessions_app.permissions import ActionRefused
from sessions_app.services import search_index
from tests.conftest import make_user
from tests.management.commands import run
from tests.services.compaction_scenes import fresh, long_session

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session() -> Session:
    session = long_session(turns=3, title="The \x1b[31mred\x1b[0m one")
    search_index.index_sessions([session.pk])
    return fresh(session)


def test_where_all_is_well_it_says_so():
    assert run("doctor") == ("0 sessions looked at: 0 wrong, 0 notes.\n", "", Exit.OK)
    long_session(turns=2)
    out, _, end = run("doctor")
    assert (out, end) == ("1 sessions looked at: 0 wrong, 0 notes.\n", Exit.OK)
    assert run("doctor", "--repair")[2] == Exit.NOTHING_TO_DO


def test_a_dry_run_says_what_is_wrong_what_it_means_and_what_a_repair_would_do(session):
    Session.objects.filter(pk=session.pk).update(tokens_total=1, compaction_count=4)
    events = Event.objects.count()
    out, _, end = run("doctor")
    assert end == Exit.FAILED
    assert out.startswith(f"{session.pk} The red one\n")
    assert "WRONG: Its numbers are not those of its compactions: compaction count 4 for 0." in out
    assert "A repair: Counts the entries anew" in out
    assert out.endswith("1 sessions looked at: 2 wrong, 0 notes. Nothing was changed; --repair sets right what can be.\n")
    assert (Event.objects.count(), fresh(session).tokens_total) == (events, 1)


def test_repairs_are_told_and_what_is_left(session):
    Session.objects.filter(pk=session.pk).update(tokens_total=1)
    out, _, end = run("doctor", session.pk, "--repair")
    assert (end, "repaired: What is kept of its entries" in out) == (Exit.OK, True)
    assert out.endswith("1 wrong, 0 notes. 1 repaired, 0 left.\n")
    assert Event.objects.get(type="session.repaired").actor_kind == "cli"
    Entry.objects.filter(session=session, index=1).update(parts="[")
    Session.objects.filter(pk=session.pk).update(tokens_total=1)
    out, _, end = run("doctor", session.pk, "--repair")
    assert (end, "repaired, 0 left" in out) == (Exit.FAILED, False)


def test_json_gives_each_finding_and_the_sums(session):
    Session.objects.filter(pk=session.pk).update(compaction_count=4)
    Entry.objects.filter(session=session, index=2).update(parts='[{"kind":"result","text":"x","call_id":"nobody"}]')
    out, _, end = run("doctor", str(session.pk)[-8:], "--json")
    told = json.loads(out)
    assert (told["object"], told["dry_run"], told["sessions"], told["wrong"], told["repaired"], end) == ("list", True, 1, 2, 0, Exit.FAILED)
    assert [one["check"] for one in told["data"]] == ["numbers_behind", "history_changed", "result_left_out", "call_answered"]
    assert told["data"][0]["facts"]["should_be"] == {"compaction_count": 0}
    assert [one["note"] for one in told["data"]] == [False, False, True, True]
    lines = [json.loads(line) for line in run("doctor", "--jsonl")[0].splitlines()]
    assert lines == told["data"]


def test_notes_are_told_where_a_session_is_named(session):
    Entry.objects.filter(session=session, kind="call").first().delete()
    assert "note: The view leaves out entry 2" not in run("doctor")[0]
    assert "note: The view leaves out entry 2" in run("doctor", session.pk)[0]


def test_a_role_may_look_and_only_an_admin_repair(session):
    make_user("olga", "operators")
    make_user("otto", None)
    assert run("doctor", acting_as="olga")[2] == Exit.OK
    with pytest.raises(CommandFailure) as failure:
        run("doctor", "--repair", acting_as="olga")
    assert failure.value.end == Exit.REFUSED
    assert isinstance(failure.value.__cause__, ActionRefused)
    with pytest.raises(CommandFailure) as failure:
        run("doctor", acting_as="otto")
    assert failure.value.end == Exit.NOT_FOUND


def test_a_session_that_there_is_not_ends_with_that():
    with pytest.raises(CommandFailure) as failure:
        run("doctor", "0123456789")
    assert failure.value.end == Exit.NOT_FOUND
