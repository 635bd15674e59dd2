"""`compact` over the API: the runner first, exactly once; ours where it says so; and answers that say how it ended."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from sessions_app.engine.terms import Lineage, Status
from sessions_app.models import Compaction, Event, SessionStatus
from tests.api.conftest import error_of
from tests.api.working import tasks_in_threads
from tests.fakes.runner_server import Reply, RunnerServer, closed_port, reply
from tests.runners.scenes import bound_session
from tests.services.compaction_scenes import fresh, long_session, make_slow, set_policy, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def held():
    """Holds an answer back until it is set; set at the end of the test."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture(autouse=True)
def worker(monkeypatch):
    with tasks_in_threads(monkeypatch) as threads:
        yield threads


def post(api, session, **data):
    return api.post(f"/sessions/{session.pk}/events", {"type": "compact", "data": data})


def attempt_of(session) -> Compaction:
    return Compaction.objects.get(session=session)


def test_a_runner_that_compacts_itself_keeps_this_console_from_doing_so(as_support):
    with RunnerServer(Reply(200)) as server:
        session = bound_session(server)
        answer = post(as_support, session)
        assert (answer.status_code, answer.json()) == (202, {"queued": False})
        assert server.compacts == [b'{"type":"compact"}']
    attempt = attempt_of(session)
    assert (answer["Compaction-Id"], attempt.status, attempt.lineage) == (str(attempt.pk), Status.COMPLETED, Lineage.AGENT)
    assert fresh(session).active_console is None


def test_a_runner_that_leaves_it_to_the_console_was_asked_once_and_the_console_compacts_that_session(as_support):
    with RunnerServer(Reply(204)) as server:
        session, other = bound_session(server), long_session()
        answer = post(as_support, session)
        assert (answer.status_code, answer.json()) == (202, {"queued": False})
        assert server.compacts == [b'{"type":"compact"}']
    assert (attempt_of(session).lineage, attempt_of(session).generation) == (Lineage.CONSOLE, 1)
    assert fresh(session).active_console == attempt_of(session)
    assert not Compaction.objects.filter(session=other).exists()


def test_without_a_runner_the_console_compacts(as_support):
    session = long_session()
    answer = post(as_support, session)
    assert (answer.status_code, answer.json(), attempt_of(session).generation) == (202, {"queued": False}, 1)


@pytest.mark.parametrize("status", [201, 302, 400, 404, 409, 500, 503])
def test_any_other_answer_is_an_error_that_names_it_and_nothing_of_ours_runs(as_support, status):
    with RunnerServer(Reply(status)) as server:
        session = bound_session(server)
        answer = post(as_support, session)
        assert len(server.compacts) == 1
    error = error_of(answer)
    assert (answer.status_code, error["code"], str(status) in error["message"]) == (500, "internal_error", True)
    assert fresh(session).active_console is None
    assert Event.objects.filter(type="compaction.triggered", payload__status="failed", compaction_id=attempt_of(session).pk).exists()


def test_an_answer_that_never_comes_is_an_unknown_outcome_and_nothing_of_ours_runs(as_support):
    with RunnerServer(Reply(breaks=True), Reply(200)) as server:
        session = bound_session(server)
        answer = post(as_support, session)
        error = error_of(answer)
        assert (answer.status_code, error["code"], error["retryable"]) == (503, "runner_unavailable", False)
        assert (attempt_of(session).reason, fresh(session).active_console) == ("unknown_outcome", None)
        again = post(as_support, session)
        assert (again.status_code, error_of(again)["retryable"], len(server.compacts)) == (409, False, 1)
        assert (post(as_support, session, through="runner").status_code, len(server.compacts)) == (202, 2)


def test_after_it_the_console_s_view_can_be_compacted_all_the_same(as_support):
    with RunnerServer(Reply(breaks=True)) as server:
        session = bound_session(server)
        post(as_support, session)
        assert post(as_support, session, through="console").status_code == 202
        assert len(server.compacts) == 1
    assert fresh(session).active_console is not None


def test_a_runner_that_does_not_listen_is_unavailable_and_may_be_asked_again(as_support):
    session = bound_session(f"http://127.0.0.1:{closed_port()}")
    answer = post(as_support, session)
    error = error_of(answer)
    assert (answer.status_code, error["code"], error["retryable"]) == (503, "runner_unavailable", True)
    assert "Retry-After" in answer
    assert fresh(session).active_console is None


def test_without_model_and_summariser_it_is_unavailable_and_says_what_to_set(as_support):
    session = long_session(kind="inline", agent="openai-agents", model="")
    set_policy(session, require_model=True)
    answer = post(as_support, session)
    error = error_of(answer)
    assert (answer.status_code, error["code"]) == (400, "invalid_input")
    for said in ("/compact is unavailable", "openai-agents", "model", "require_model"):
        assert said in error["message"]


def test_the_same_after_a_runner_left_it_to_us(as_support):
    with RunnerServer(Reply(204)) as server:
        session = bound_session(server, kind="inline", agent="openai-agents", model="")
        set_policy(session, require_model=True)
        answer = post(as_support, session)
        assert len(server.compacts) == 1
    assert (answer.status_code, "/compact is unavailable" in error_of(answer)["message"]) == (400, True)


def together(*calls):
    """The answers of calls that are made at once, each from a thread of its own."""

    def made(call):
        try:
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(made, calls))


def test_two_requests_for_one_session_are_one_compaction(as_support, held):
    """The second joins the first instead of waiting to compact again."""
    answer = Reply(204, hold=held)
    with RunnerServer(answer) as server:
        session = bound_session(server)

        def second():
            wait_until(answer.asked.is_set)
            wait_until(lambda: Compaction.objects.filter(session=session, status=Status.RUNNING).exists())
            held_back.start()
            return post(as_support, session)

        def let_go():
            wait_until(lambda: Event.objects.filter(type="compaction.joined").exists())
            connection.close()
            held.set()

        held_back = threading.Thread(target=let_go)
        answers = together(lambda: post(as_support, session), second)
        held_back.join()
        assert len(server.compacts) == 1
    assert [(one.status_code, one.json()) for one in answers] == [(202, {"queued": False})] * 2
    assert answers[0]["Compaction-Id"] == answers[1]["Compaction-Id"] == str(attempt_of(session).pk)


def test_many_requests_at_once_forward_once_and_all_hear_of_its_end(as_support):
    with RunnerServer(Reply(200)) as server:
        session = bound_session(server)
        answers = together(*[lambda: post(as_support, session)] * 6)
        ended = Compaction.objects.filter(session=session).count()
        assert len(server.compacts) == ended  # those that came after the end of one began another
    assert {one.status_code for one in answers} == {202}


def test_two_sessions_are_compacted_side_by_side(as_support, held):
    one, other = Reply(200, hold=held), Reply(200, hold=held)
    with RunnerServer(one, other) as server:
        sessions = [bound_session(server), bound_session(server)]

        def let_go():
            wait_until(lambda: one.asked.is_set() and other.asked.is_set())
            held.set()

        watcher = threading.Thread(target=let_go)
        watcher.start()
        answers = together(*[lambda session=session: post(as_support, session) for session in sessions])
        watcher.join()
    assert {answer.status_code for answer in answers} == {202}
    assert not held.wait(0) or len(server.compacts) == 2


def test_a_failure_frees_the_session_for_the_next(as_support, monkeypatch):
    session = long_session()

    def breaks(*_):
        raise RuntimeError("boom")

    with monkeypatch.context() as patch:
        patch.setattr("sessions_app.services.compactions.run.task_of", breaks)
        failed = post(as_support, session)
    assert (failed.status_code, "RuntimeError" in error_of(failed)["message"]) == (500, True)
    assert fresh(session).status == SessionStatus.IDLE
    assert post(as_support, session).status_code == 202


def test_nothing_to_compact_is_a_skip_and_no_error(as_support):
    session = long_session(turns=1)
    answer = post(as_support, session)
    assert (answer.status_code, answer.json(), attempt_of(session).status) == (202, {"queued": False}, Status.SKIPPED)
    assert Event.objects.filter(type="compaction.triggered", payload__status="skipped").exists()


@pytest.mark.parametrize("status", [SessionStatus.WORKING, SessionStatus.WAITING])
def test_an_open_turn_is_a_conflict_and_nobody_is_asked(as_support, status):
    with RunnerServer(Reply(200)) as server:
        session = bound_session(server, status=status)
        answer = post(as_support, session)
        assert (answer.status_code, error_of(answer)["code"], server.compacts) == (409, "conflict", [])


def test_or_it_waits_for_the_turn_s_end_where_the_caller_says_so(as_support):
    session = long_session(status=SessionStatus.WORKING)
    answer = post(as_support, session, when="idle", wait=False)
    assert (answer.status_code, answer.json()["queued"]) == (202, True)
    assert (attempt_of(session).status, answer.json()["compaction_id"]) == (Status.WAITING_FOR_IDLE, str(attempt_of(session).pk))


def test_without_waiting_it_says_at_once_which_attempt_it_is(as_support):
    session = long_session()
    make_slow(session, 0.0)
    answer = post(as_support, session, wait=False)
    told = answer.json()
    assert (answer.status_code, told["queued"], told["compaction_id"]) == (202, True, answer["Compaction-Id"])
    wait_until(lambda: not attempt_of(session).is_open)


def test_what_to_stress_where_to_cut_and_whether_to_review_are_passed_on(as_support):
    session = long_session()
    answer = post(
        as_support, session, instructions="Keep names.", profile="coding", force=True, review=True, policy={"summary_max_tokens": 900}
    )
    attempt = attempt_of(session)
    assert (answer.status_code, attempt.instructions, attempt.profile, attempt.force) == (202, "Keep names.", "coding", True)
    assert (attempt.status, attempt.policy["values"]["summary_max_tokens"]) == (Status.DRAFTED, 900)


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"wait": "yes"}, "data.wait"),
        ({"boundary": -1}, "data.boundary"),
        ({"boundary": 10**12}, "boundary"),
        ({"instructions": 7}, "data.instructions"),
        ({"instructions": "x" * 2001}, "instructions"),
        ({"profile": "poetry"}, "profile"),
        ({"when": "later"}, "data.when"),
        ({"through": "tunnel"}, "data.through"),
        ({"through": "runner"}, "through"),
        ({"policy": {"nonsense": 1}}, "nonsense"),
        ({"policy": []}, "data.policy"),
        ({"surprise": 1}, "data.surprise"),
    ],
)
def test_an_option_that_can_t_be_met_starts_nothing(as_support, data, field):
    session = long_session()
    answer = post(as_support, session, **data)
    assert (answer.status_code, error_of(answer)["field"]) == (400, field)
    assert not Compaction.objects.exists()


def test_the_same_key_is_the_same_compaction(as_support):
    session = long_session()
    body = {"type": "compact", "data": {}}
    first = as_support.post(f"/sessions/{session.pk}/events", body, Idempotency_Key="k-1")
    second = as_support.post(f"/sessions/{session.pk}/events", body, Idempotency_Key="k-1")
    assert (first.status_code, first.json(), first["Compaction-Id"]) == (second.status_code, second.json(), second["Compaction-Id"])
    assert Compaction.objects.count() == 1


def test_an_operator_may_not_and_a_stranger_sees_nothing(as_operator, outsider):
    from tests.api.conftest import Api, token_of

    session = long_session()
    assert post(as_operator, session).status_code == 403
    assert post(Api(token_of(outsider, "read", "steer")), session).status_code == 404
    assert not Compaction.objects.exists()


def test_a_runner_that_reports_later_is_waited_for(as_support):
    with RunnerServer(reply(202, {"operation_id": "op-1"})) as server:
        session = bound_session(server)

        def tell():
            wait_until(lambda: Compaction.objects.filter(operation_id="op-1").exists())
            try:
                return as_support.post(
                    f"/sessions/{session.pk}/events",
                    {"type": "external_compaction_status", "data": {"status": "completed", "operation_id": "op-1"}},
                )
            finally:
                connection.close()

        answer, told = together(lambda: post(as_support, session), tell)
    assert (answer.status_code, answer.json(), told.status_code) == (202, {"queued": False}, 202)
    assert (attempt_of(session).status, attempt_of(session).lineage) == (Status.COMPLETED, Lineage.AGENT)
