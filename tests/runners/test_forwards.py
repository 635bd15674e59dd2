"""A compaction of a session that has a runner: the runner first, once; ours where it leaves it to us; nothing where nobody knows."""

import pytest
from django.db.models.functions import Now

from sessions_app.engine.terms import Lineage, Outcome, Status, SummarySource
from sessions_app.models import Compaction, Entry, Event, Lease, Runner, SessionStatus
from sessions_app.runners.base import Health
from sessions_app.services import external, sweeper
from sessions_app.services.compactions import forwards, lease, unknown
from sessions_app.services.compactions.cancel import cancel
from sessions_app.services.compactions.request import InvalidRequest, Undecided, request
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.runners import binding
from tests.fakes.runner_server import Reply, RunnerServer, closed_port, reply
from tests.runners.scenes import TESTS, bound_session, compacted, types_of
from tests.services.compaction_scenes import fresh, history_digest, long_session, run_in_thread, set_policy, steps_of, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def queued(monkeypatch):
    """Nobody takes the queue here: the tests run attempts themselves."""
    tasks = []
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda name, *arguments: tasks.append((name, *arguments)))
    return tasks


def test_what_the_runner_has_done_is_an_attempt_of_the_agent_and_none_of_ours():
    with RunnerServer(reply(200, {"outcome": "compacted", "tokens_before": 9000, "tokens_after": 1200})) as server:
        session = bound_session(server)
        before = history_digest(session)
        attempt = compacted(session)
    assert server.compacts == [b'{"type":"compact"}']
    assert (attempt.status, attempt.outcome, attempt.lineage) == (Status.COMPLETED, Outcome.COMMITTED, Lineage.AGENT)
    assert (attempt.summary_source, attempt.summariser, attempt.runner_answer) == (SummarySource.EXTERNAL, "box", 200)
    assert (attempt.tokens_before, attempt.tokens_before_origin, attempt.tokens_after) == (9000, "reported", 1200)
    assert (attempt.generation, attempt.summary, attempt.segments.count()) == (None, "", 0)
    assert history_digest(session) == before
    session = fresh(session)
    assert (session.status, session.running, session.active_console) == (SessionStatus.IDLE, None, None)
    assert [(kind, status) for _, kind, status in steps_of(attempt)] == [
        ("compaction.triggered", "started"),
        ("compaction.persisted", "completed"),
    ]
    assert Event.objects.get(type="runner.forwarded").payload == {"type": "compact", "runner": "box", "status": 200, "delivered": True}


def test_a_runner_without_a_way_of_its_own_leaves_it_to_this_console():
    with RunnerServer(Reply(204)) as server:
        session = bound_session(server)
        attempt = compacted(session)
    assert server.compacts == [b'{"type":"compact"}']
    assert (attempt.status, attempt.outcome, attempt.lineage) == (Status.COMPLETED, Outcome.COMMITTED, Lineage.CONSOLE)
    assert (attempt.generation, attempt.runner_answer) == (1, 204)
    assert fresh(session).active_console == attempt


def test_without_a_runner_nobody_is_asked():
    attempt = compacted(long_session())
    assert (attempt.outcome, attempt.forwarded_at, attempt.runner) == (Outcome.COMMITTED, None, None)


@pytest.mark.parametrize("status", [202, 301, 404, 409, 500, 503])
def test_any_other_answer_fails_the_attempt_by_its_name_and_nothing_of_ours_runs(status):
    with RunnerServer(Reply(status)) as server:
        session = bound_session(server)
        attempt = compacted(session)
    assert len(server.compacts) == 1
    assert (attempt.status, attempt.reason, attempt.runner_answer) == (Status.FAILED, forwards.REFUSED, status)
    assert str(status) in attempt.explanation
    assert fresh(session).active_console is None
    assert not Entry.objects.filter(session=session, kind="compacted").exists()
    assert Event.objects.get(type="runner.forwarded").result == "failed"


def test_a_runner_that_was_not_reached_was_asked_nothing_and_may_be_asked_again():
    session = bound_session(f"http://127.0.0.1:{closed_port()}")
    attempt = compacted(session)
    assert (attempt.status, attempt.reason) == (Status.FAILED, forwards.UNREACHABLE)
    assert "nothing was sent" in attempt.explanation
    runner = Runner.objects.get()
    assert (runner.health, runner.last_seen_at) == (Health.DOWN, None)
    assert request(actor=TESTS, session=session).compaction.pk != attempt.pk


def test_an_answer_that_never_came_is_an_unknown_outcome_and_nothing_of_ours_runs():
    with RunnerServer(Reply(breaks=True)) as server:
        session = bound_session(server)
        attempt = compacted(session)
    assert (attempt.status, attempt.reason, attempt.runner_answer) == (Status.FAILED, unknown.UNKNOWN_OUTCOME, None)
    assert fresh(session).active_console is None
    assert session.status == SessionStatus.IDLE
    assert len(server.compacts) == 1


def undecided_session(server):
    server.script(Reply(breaks=True))
    session = bound_session(server)
    compacted(session)
    return session


def test_after_it_nothing_begins_until_somebody_says_which_way():
    with RunnerServer() as server:
        session = undecided_session(server)
        with pytest.raises(Undecided, match="is not known"):
            request(actor=TESTS, session=session)
        assert len(server.compacts) == 1
        server.script(Reply(200))
        again = compacted(session, through="runner")
        assert (again.status, again.lineage, len(server.compacts)) == (Status.COMPLETED, Lineage.AGENT, 2)
        assert Event.objects.get(type="compaction.decided").payload["decision"] == "again"
        assert compacted(session).status == Status.COMPLETED  # it is settled


def test_or_this_console_s_view_is_compacted_and_the_runner_left_alone():
    with RunnerServer() as server:
        session = undecided_session(server)
        ours = compacted(session, through="console")
        assert (ours.lineage, ours.generation, len(server.compacts)) == (Lineage.CONSOLE, 1, 1)
        assert not unknown.undecided(session.pk).exists()


def test_a_way_that_does_not_exist_is_refused():
    with pytest.raises(InvalidRequest, match="no runner"):
        request(actor=TESTS, session=long_session(), through="runner")
    with pytest.raises(InvalidRequest, match="sideways"):
        request(actor=TESTS, session=long_session(), through="sideways")


def test_nothing_to_do_there_is_a_skip():
    with RunnerServer(reply(200, {"outcome": "nothing_to_do"})) as server:
        attempt = compacted(bound_session(server))
    assert (attempt.status, attempt.reason, attempt.lineage) == (Status.SKIPPED, "nothing_to_fold", Lineage.AGENT)


def test_two_requests_at_once_forward_once(held):
    answer = Reply(200, hold=held)
    with RunnerServer(answer) as server:
        session = bound_session(server)
        first = request(actor=TESTS, session=session)
        worker = run_in_thread(first.compaction.pk)
        wait_until(answer.asked.is_set)
        second = request(actor=TESTS, session=session)
        run_compaction(second.compaction.pk)  # as a task that was delivered twice
        held.set()
        worker.join()
    assert (second.joined, second.compaction.pk) == (True, first.compaction.pk)
    assert (len(server.compacts), fresh(first.compaction).status) == (1, Status.COMPLETED)


def test_two_sessions_of_one_runner_are_asked_side_by_side(held):
    one, other = Reply(200, hold=held), Reply(200, hold=held)
    with RunnerServer(one, other) as server:
        sessions = [bound_session(server), bound_session(server)]
        attempts = [request(actor=TESTS, session=session).compaction for session in sessions]
        workers = [run_in_thread(attempt.pk) for attempt in attempts]
        wait_until(lambda: one.asked.is_set() and other.asked.is_set())
        assert len(server.compacts) == 2
        held.set()
        for worker in workers:
            worker.join()
    assert {fresh(attempt).status for attempt in attempts} == {Status.COMPLETED}


def test_a_failure_frees_the_session_for_the_next():
    with RunnerServer(Reply(503), Reply(200)) as server:
        session = bound_session(server)
        assert compacted(session).status == Status.FAILED
        assert Lease.objects.get(session=session).token is None
        assert compacted(session).status == Status.COMPLETED


def test_a_worker_that_died_while_it_asked_is_an_unknown_outcome_and_nobody_asks_again(monkeypatch):
    """What is stored before the request is sent decides, whatever was sent after it."""
    with RunnerServer(Reply(200)) as server:
        session = bound_session(server)
        attempt = request(actor=TESTS, session=session).compaction
        held = lease.claim(attempt.pk)
        forwards._mark(held, session.runner)
        lease.give_up(held)
        assert sweeper.sweep().lost == 1
        assert (fresh(attempt).status, attempt.reason) == (Status.FAILED, unknown.UNKNOWN_OUTCOME)
        run_compaction(attempt.pk)
        with pytest.raises(Undecided):
            request(actor=TESTS, session=session)
    assert server.compacts == []


def test_a_worker_that_died_while_ours_ran_is_lost_as_any_other():
    with RunnerServer(Reply(204)) as server:
        session = bound_session(server)
        attempt = request(actor=TESTS, session=session).compaction
        held = lease.claim(attempt.pk)
        forwards._mark(held, session.runner)
        lease.write(held, runner_answer=204)
        lease.give_up(held)
        assert sweeper.sweep().lost == 1
    assert fresh(attempt).reason == "worker_lost"


def test_a_cancel_while_the_runner_is_asked_says_that_nobody_knows(held):
    answer = Reply(200, hold=held)
    with RunnerServer(answer) as server:
        session = bound_session(server)
        attempt = request(actor=TESTS, session=session).compaction
        worker = run_in_thread(attempt.pk)
        wait_until(answer.asked.is_set)
        cancel(actor=TESTS, session=session, compaction_id=attempt.pk)
        worker.join()  # without the answer
    assert (fresh(attempt).status, attempt.reason) == (Status.FAILED, unknown.UNKNOWN_OUTCOME)
    assert "cancelled here" in attempt.explanation


def test_204_where_nobody_can_summarise_says_what_to_set():
    with RunnerServer(Reply(204)) as server:
        session = bound_session(server, kind="inline", agent="openai-agents", model="")
        set_policy(session, require_model=True)
        attempt = compacted(session)
    assert (attempt.status, attempt.reason) == (Status.FAILED, forwards.UNAVAILABLE)
    for said in ("/compact is unavailable", "openai-agents", "model", "require_model"):
        assert said in attempt.explanation


def test_the_runner_is_called_by_its_own_id_of_the_session():
    with RunnerServer(Reply(200)) as server:
        compacted(bound_session(server, external_id="conv/7"))
    assert server.posted[0].path == "/v1/sessions/conv%2F7/events"


def test_a_credential_comes_from_the_environment_and_is_stored_nowhere(monkeypatch):
    monkeypatch.setenv("RUNNER_TOKEN_BOX", "s3cret-t0ken")
    with RunnerServer(Reply(200)) as server:
        session = bound_session(server)
        session.runner.credential_variable = "RUNNER_TOKEN_BOX"
        session.runner.save()
        attempt = compacted(session)
        assert server.posted[0].headers["Authorization"] == "Bearer s3cret-t0ken"
        monkeypatch.delenv("RUNNER_TOKEN_BOX")
        assert compacted(session).reason == forwards.UNREACHABLE
    told = str([*Event.objects.values_list("payload", "before", "after", "reason"), attempt.__dict__, session.runner.__dict__])
    assert "s3cret" not in told
    assert len(server.compacts) == 1


def test_an_address_that_is_not_allowed_any_more_is_not_asked(settings):
    settings.RUNNER_HOSTS = ["runner.invalid"]
    session = bound_session("http://runner.invalid")
    settings.RUNNER_HOSTS = []
    attempt = compacted(session)
    assert attempt.reason == forwards.UNREACHABLE
    assert "PALIMPSEST_RUNNER_HOSTS" in attempt.explanation


def test_unbinding_settles_what_was_open_and_gives_the_session_its_kind_back():
    with RunnerServer() as server:
        session = undecided_session(server)
        assert session.kind == "joined"
        binding.unbind(actor=TESTS, session=session)
    assert (session.kind, session.runner, session.external_id) == ("imported", None, "")
    assert types_of(session)[-2:] == ["compaction.decided", "runner.unbound"]
    assert compacted(session).outcome == Outcome.COMMITTED


def test_a_process_that_is_about_to_end_asks_nobody():
    with RunnerServer(Reply(200)) as server:
        session = bound_session(server)
        attempt = request(actor=TESTS, session=session).compaction
        run_compaction(attempt.pk, must_end=lambda: True)
    assert (fresh(attempt).status, attempt.reason, server.compacts) == (Status.FAILED, "worker_lost", [])
    assert not unknown.undecided(session.pk).exists()


def test_one_that_must_end_while_it_asks_says_that_nobody_knows(held):
    answer = Reply(200, hold=held)
    with RunnerServer(answer) as server:
        session = bound_session(server)
        attempt = request(actor=TESTS, session=session).compaction
        run_compaction(attempt.pk, must_end=answer.asked.is_set)
    assert (fresh(attempt).status, attempt.reason) == (Status.FAILED, unknown.UNKNOWN_OUTCOME)


@pytest.mark.parametrize("broken", ["clients.client_of", "_answered", "handled.complete"])
def test_whatever_breaks_here_once_the_runner_may_have_been_asked_is_no_nothing_happened(monkeypatch, broken):
    def breaks(*_, **__):
        raise RuntimeError("boom")

    with RunnerServer(Reply(200)) as server:
        session = bound_session(server)
        monkeypatch.setattr(f"sessions_app.services.compactions.forwards.{broken}", breaks)
        attempt = compacted(session)
    assert (attempt.status, attempt.reason) == (Status.FAILED, unknown.UNKNOWN_OUTCOME)
    assert "boom" not in attempt.explanation


def test_what_could_not_be_passed_on_is_said():
    with RunnerServer(Reply(200)) as server:
        attempt = compacted(bound_session(server), instructions="Keep names.", boundary=12, force=True)
    assert attempt.warnings == ["The runner compacted in its own way: instructions and boundary and force could not be passed on."]
    assert attempt.boundary_index is None


def pending_attempt(server):
    server.script(reply(202, {"operation_id": "op-1"}))
    return compacted(bound_session(server))


def test_a_report_that_never_comes_is_an_unknown_outcome_after_its_time(held):
    with RunnerServer() as server:
        attempt = pending_attempt(server)
    assert sweeper.sweep().lost == 0  # no worker stands by, and none has to
    assert fresh(attempt).status == Status.RUNNING
    Lease.objects.update(expires_at=None)
    assert sweeper.sweep().lost == 0
    Compaction.objects.update(deadline_at=Now())
    assert sweeper.sweep().lost == 1
    assert (fresh(attempt).status, attempt.reason) == (Status.FAILED, unknown.UNKNOWN_OUTCOME)
    assert "never said how it ended" in attempt.explanation
    assert fresh(attempt.session).status == SessionStatus.IDLE


def test_a_cancel_of_what_the_runner_works_at_ends_the_waiting_at_once():
    with RunnerServer() as server:
        attempt = pending_attempt(server)
        cancel(actor=TESTS, session=attempt.session, compaction_id=attempt.pk)
    assert (fresh(attempt).status, attempt.reason) == (Status.FAILED, unknown.UNKNOWN_OUTCOME)
    with pytest.raises(Undecided):
        request(actor=TESTS, session=attempt.session)


@pytest.mark.parametrize(("told", "ended"), [("completed", Status.COMPLETED), ("failed", Status.FAILED)])
def test_a_report_that_overtakes_the_answer_which_announces_it_counts(held, told, ended):
    answer = reply(202, {"operation_id": "op-1"}, hold=held)
    with RunnerServer(answer) as server:
        session = bound_session(server)
        attempt = request(actor=TESTS, session=session).compaction
        worker = run_in_thread(attempt.pk)
        wait_until(answer.asked.is_set)
        external.report_compaction(actor=TESTS, session=session, status="in_progress", operation_id="op-1")
        external.report_compaction(actor=TESTS, session=session, status=told, operation_id="op-1")
        assert fresh(attempt).status == Status.RUNNING
        held.set()
        worker.join()
    assert (fresh(attempt).status, fresh(session).running) == (ended, None)


def test_a_second_request_joins_what_the_runner_works_at():
    with RunnerServer() as server:
        attempt = pending_attempt(server)
        answer = request(actor=TESTS, session=attempt.session)
        assert (answer.joined, answer.compaction.pk, len(server.compacts)) == (True, attempt.pk, 1)
