"""The generic runner over real connections: what each answer means, and what is known where none came."""

import asyncio

import pytest

from sessions_app.runners.base import Capability, Handling, Health
from sessions_app.runners.errors import RunnerBusy, RunnerRefused, RunnerUnavailable, UnknownOutcome, UnknownRunnerSession
from sessions_app.runners.http import MAX_BODY_BYTES, HttpRunner
from tests.fakes.runner_server import Reply, RunnerServer, closed_port, reply

SESSION = "0194f0c2-7d3a-7cc0-8a4e-2b7b6f6f8a11"
SHORT_S = 0.5
"""How long a test lets a runner that never answers take."""


def compact(server, session_id=SESSION, **options):
    return asyncio.run(HttpRunner(server.url, **options).compact(session_id))


def test_exactly_the_control_is_forwarded_once_to_the_session_s_events():
    with RunnerServer(Reply(200)) as server:
        answer = compact(server)
    assert answer.handling is Handling.RUNNER
    assert server.compacts == [b'{"type":"compact"}']
    assert server.posted[0].path == f"/v1/sessions/{SESSION}/events"
    assert server.posted[0].headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("session_id", ["../admin", "a/b?c=d#e", "%2e%2e", "sitzung-ü", "a b\r\nX: y"])
def test_the_id_of_a_session_is_one_piece_of_the_path_whatever_it_holds(session_id):
    with RunnerServer(Reply(200)) as server:
        compact(server, session_id)
    path = server.posted[0].path
    assert (path.count("/"), path.startswith("/v1/sessions/"), path.endswith("/events")) == (4, True, True)
    assert "?" not in path
    assert "X" not in server.posted[0].headers


def test_an_answer_of_200_is_read_leniently():
    told = {"outcome": "compacted", "tokens_before": 9000, "tokens_after": 1200, "operation_id": "op-1", "more": [1]}
    with RunnerServer(reply(200, told)) as server:
        answer = compact(server)
    assert (answer.tokens_before, answer.tokens_after, answer.operation_id, answer.nothing_to_do) == (9000, 1200, "op-1", False)


@pytest.mark.parametrize(
    "body",
    [b"", b"ok", b"[]", b"\xff\xfe\x00", b"null", b'{"tokens_before": true, "tokens_after": -4}', b'{"tokens_before": 1e999}', b"[" * 5000],
)
def test_what_is_no_sense_in_a_200_is_passed_over(body):
    with RunnerServer(Reply(200, body)) as server:
        answer = compact(server)
    assert (answer.handling, answer.tokens_before, answer.tokens_after) == (Handling.RUNNER, None, None)


def test_nothing_to_do_is_told_apart():
    with RunnerServer(reply(200, {"outcome": "nothing_to_do"})) as server:
        assert compact(server).nothing_to_do


def test_204_leaves_it_to_the_console():
    with RunnerServer(Reply(204)) as server:
        assert compact(server).handling is Handling.CONSOLE


def test_202_with_an_operation_is_pending_and_without_one_is_no_answer_of_the_contract():
    with RunnerServer(reply(202, {"operation_id": "op-7"}), reply(202, {"status": "accepted"})) as server:
        answer = compact(server)
        assert (answer.handling, answer.operation_id) == (Handling.PENDING, "op-7")
        with pytest.raises(RunnerRefused, match="202"):
            compact(server)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (201, RunnerRefused), (206, RunnerRefused), (301, RunnerRefused), (307, RunnerRefused), (400, RunnerRefused),
        (401, RunnerRefused), (404, UnknownRunnerSession), (409, RunnerBusy), (418, RunnerRefused), (429, RunnerRefused),
        (500, RunnerRefused), (503, RunnerRefused),
    ],
)  # fmt: skip
def test_any_other_status_is_a_refusal_that_names_it(status, kind):
    with RunnerServer(reply(status, {"error": "do not quote me"})) as server, pytest.raises(kind, match=str(status)) as failure:
        compact(server)
    assert failure.value.status == status
    assert "quote" not in str(failure.value)
    assert len(server.compacts) == 1


def test_a_redirect_is_not_followed():
    with RunnerServer(Reply(200)) as other, RunnerServer(Reply(307, headers={"Location": other.url})) as server:
        with pytest.raises(RunnerRefused, match="307"):
            compact(server)
        assert other.posted == []


def test_a_runner_that_does_not_listen_was_sent_nothing():
    with pytest.raises(RunnerUnavailable):
        asyncio.run(HttpRunner(f"http://127.0.0.1:{closed_port()}").compact(SESSION))


def test_a_name_that_nobody_has_was_sent_nothing():
    with pytest.raises(RunnerUnavailable):
        asyncio.run(HttpRunner("http://runner.invalid").compact(SESSION))


@pytest.mark.parametrize("answer", [Reply(breaks=True), Reply(drips=True)])
def test_a_connection_that_ends_or_drips_without_an_answer_is_an_unknown_outcome(answer):
    with RunnerServer(answer) as server, pytest.raises(UnknownOutcome):
        compact(server, acknowledge_s=SHORT_S if answer.drips else 20)
    assert len(server.compacts) == 1


def test_no_answer_in_time_is_an_unknown_outcome(held):
    with RunnerServer(Reply(200, hold=held)) as server, pytest.raises(UnknownOutcome):
        compact(server, acknowledge_s=SHORT_S)
    assert len(server.compacts) == 1


def test_the_status_stands_although_its_body_never_ends_or_is_cut_off():
    endless = Reply(200, b"x" * (MAX_BODY_BYTES * 4))
    cut_off = Reply(200, b'{"tokens_before": 12', breaks=True)
    with RunnerServer(endless, cut_off) as server:
        assert compact(server).handling is Handling.RUNNER
        assert compact(server).handling is Handling.RUNNER


def test_a_huge_body_is_not_read(monkeypatch):
    with RunnerServer(Reply(202, b'{"operation_id": "op-1"}' + b" " * (MAX_BODY_BYTES * 100))) as server, pytest.raises(RunnerRefused):
        compact(server)


def test_the_credential_is_a_bearer_token_and_appears_nowhere_else():
    with RunnerServer(Reply(200)) as server:
        runner = HttpRunner(server.url, token="s3cret-t0ken")
        asyncio.run(runner.compact(SESSION))
    assert server.posted[0].headers["Authorization"] == "Bearer s3cret-t0ken"
    assert "s3cret" not in repr(runner)


def test_without_one_no_authorization_is_sent():
    with RunnerServer(Reply(200)) as server:
        compact(server)
    assert "Authorization" not in server.posted[0].headers


def test_proxies_of_the_environment_are_not_used(monkeypatch):
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{closed_port()}")
    monkeypatch.setenv("all_proxy", f"http://127.0.0.1:{closed_port()}")
    with RunnerServer(Reply(200)) as server:
        assert compact(server).handling is Handling.RUNNER


@pytest.mark.parametrize("status", [200, 202, 204])
def test_an_event_is_delivered_where_the_runner_takes_it(status):
    with RunnerServer(Reply(status)) as server:
        assert asyncio.run(HttpRunner(server.url).deliver(SESSION, "message", {"role": "user", "content": "Go on."})) == status
    assert server.posted[0].told == {"type": "message", "data": {"role": "user", "content": "Go on."}}


def test_an_event_is_not_delivered_where_it_does_not():
    with RunnerServer(Reply(409)) as server, pytest.raises(RunnerBusy):
        asyncio.run(HttpRunner(server.url).deliver(SESSION, "interrupt", {}))


def test_health_is_up_with_what_it_names_and_with_everything_where_it_names_nothing():
    with RunnerServer() as server:
        report = asyncio.run(HttpRunner(server.url).health())
        assert (report.health, report.capabilities) == (Health.UP, tuple(Capability))
        server.health = reply(200, {"capabilities": ["compact", "fly", 7]})
        assert asyncio.run(HttpRunner(server.url).health()).capabilities == (Capability.COMPACT,)
        server.health = reply(404)
        assert asyncio.run(HttpRunner(server.url).health()).health is Health.UP


@pytest.mark.parametrize("answer", [reply(500), reply(503), reply(401), Reply(breaks=True)])
def test_health_is_down_with_a_reason(answer):
    with RunnerServer() as server:
        server.health = answer
        report = asyncio.run(HttpRunner(server.url).health())
    assert report.health is Health.DOWN
    assert report.problem


def test_health_of_nobody_is_down():
    report = asyncio.run(HttpRunner(f"http://127.0.0.1:{closed_port()}").health())
    assert (report.health, report.problem) == (Health.DOWN, "The runner could not be reached, so nothing was sent.")
