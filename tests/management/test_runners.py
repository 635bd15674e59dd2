"""`manage.py runners` and `manage.py runner`: the same as the pages, for scripts."""

import json

import pytest

from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.models import Runner
from sessions_app.services.compactions import unknown
from tests.fakes.runner_server import Reply, RunnerServer, closed_port
from tests.management.commands import run
from tests.runners.scenes import bound_session, compacted
from tests.services.compaction_scenes import fresh, long_session

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_runner_is_added_listed_tested_changed_and_removed():
    with RunnerServer() as server:
        out, _, end = run("runners", "add", "box", "--url", server.url, "--credential", "", "--json")
        added = json.loads(out)
        assert (end, added["name"], added["health"], added["credential_variable"]) == (0, "box", "up", None)
        listed = json.loads(run("runners", "--json")[0])["data"]
        assert [row["id"] for row in listed] == [added["id"]]
        assert run("runners", "test", "box") == ("box answers.\n", "", 0)
        assert run("runners", "change", "box", "--rename", "box2")[0] == "box2 answers.\n"
    out, _, end = run("runners", "test", "box2")
    assert ("box2 is down" in out, end) == (True, Exit.FAILED)
    assert "box2" in run("runners")[0]
    assert run("runners", "remove", "box2") == ("Removed box2.\n", "", 0)
    assert "There is no runner" in run("runners")[1]


@pytest.mark.parametrize(
    ("arguments", "end"),
    [
        (["add"], Exit.USAGE),
        (["add", "box"], Exit.USAGE),
        (["add", "box", "--url", "ftp://x"], Exit.USAGE),
        (["test", "nobody"], Exit.NOT_FOUND),
        (["remove", "nobody"], Exit.NOT_FOUND),
    ],
)
def test_what_can_t_be_done_ends_by_its_code(arguments, end):
    with pytest.raises(CommandFailure) as failure:
        run("runners", *arguments)
    assert failure.value.end == end
    assert not Runner.objects.exists()


def test_only_admins_may(support):
    from sessions_app.management.commands.runners import Command

    with pytest.raises(CommandFailure) as failure:
        run("runners", "add", "box", "--url", "http://127.0.0.1", acting_as="ana")
    assert (failure.value.end, Command.has_lines) == (Exit.REFUSED, True)


def test_a_session_is_bound_told_and_unbound():
    session = long_session()
    run("runners", "add", "box", "--url", f"http://127.0.0.1:{closed_port()}")
    assert run("runner", session.pk)[0] == "This session has no runner.\n"
    assert "box (down) holds it as conv-7." in run("runner", session.pk, "--bind", "box", "--external-id", "conv-7")[0]
    told = json.loads(run("runner", session.pk, "--json")[0])
    assert (told["runner"], told["external_id"], told["kind"]) == ("box", "conv-7", "joined")
    run("runner", session.pk, "--unbind")
    assert fresh(session).runner is None
    with pytest.raises(CommandFailure) as failure:
        run("runner", session.pk, "--bind", "nobody")
    assert failure.value.end == Exit.NOT_FOUND


def test_compact_asks_the_runner_and_goes_on_after_an_unknown_outcome():
    with RunnerServer(Reply(breaks=True), Reply(200)) as server:
        session = bound_session(server)
        attempt = compacted(session)
        with pytest.raises(CommandFailure) as failure:
            run("compact", session.pk)
        assert (failure.value.end, len(server.compacts)) == (Exit.BUSY, 1)
        assert f"a{attempt.attempt} is not known" in run("runner", session.pk)[1]
        out, _, end = run("compact", session.pk, "--through", "runner")
        assert (end, len(server.compacts), "committed" in out) == (0, 2, True)


def test_or_it_is_settled():
    with RunnerServer(Reply(breaks=True)) as server:
        session = bound_session(server)
        compacted(session)
    run("runner", session.pk, "--settle")
    assert not unknown.undecided(session.pk).exists()
