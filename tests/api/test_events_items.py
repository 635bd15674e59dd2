"""What is said over the API, who gets it, and what steers."""

import pytest

from sessions_app.models import Compaction, Entry, Event, SessionStatus, SourceFile, Turn
from tests.api.conftest import Api, error_of, token_of
from tests.fakes.runner_server import Reply, RunnerServer, closed_port
from tests.runners.scenes import bound_session
from tests.services.compaction_scenes import fresh, long_session
from tests.stored import store_session

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def queued(monkeypatch):
    """Nobody takes the queue here."""
    tasks = []
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda name, *arguments: tasks.append((name, *arguments)))
    return tasks


def post(api, session, event_type, **data):
    return api.post(f"/sessions/{session.pk}/events", {"type": event_type, "data": data})


def held_session(**columns):
    """A session that programs hold by the API."""
    return store_session(kind="inline", agent="my-agent", **columns)


def texts_of(session):
    return [(row.role, row.kind, row.parts) for row in Entry.objects.filter(session=session).order_by("index")]


def test_items_are_appended_in_their_order_under_ids_that_are_listed(as_support):
    session = held_session()
    told = [
        ("message", {"role": "user", "content": "Why does it fail?"}),
        ("function_call", {"name": "run", "call_id": "c1", "arguments": '{"cmd": "make"}'}),
        ("function_call_output", {"call_id": "c1", "output": "error: x"}),
        ("message", {"role": "assistant", "content": [{"type": "output_text", "text": "Because of x."}], "agent": "my-agent"}),
    ]
    made = []
    for event_type, data in told:
        answer = post(as_support, session, event_type, **data)
        assert (answer.status_code, answer.json()["queued"]) == (202, True)
        made.append(answer.json()["item_id"])
    listed = as_support.get(f"/sessions/{session.pk}/items").json()["data"]
    assert [item["id"] for item in listed] == made
    assert [(row.role, row.kind) for row in Entry.objects.order_by("index")] == [
        ("user", "message"), ("assistant", "call"), ("tool", "result"), ("assistant", "message"),
    ]  # fmt: skip
    assert (fresh(session).entry_count, Turn.objects.count()) == (4, 0)


def test_a_message_to_a_session_with_a_model_queues_a_turn(as_support, queued):
    session = held_session(model="scripted", provider="scripted")
    answer = post(as_support, session, "message", role="user", content=[{"type": "input_text", "text": "Go on."}])
    turn = Turn.objects.get()
    assert (answer.status_code, answer.json()) == (202, {"queued": True, "turn_id": str(turn.pk)})
    assert (turn.text, turn.sent_by, queued) == ("Go on.", "ana", [("sessions_app.run_turn", str(session.pk))])


def test_a_message_to_a_session_with_a_runner_is_stored_and_handed_over_once(as_support):
    with RunnerServer(Reply(202)) as server:
        session = bound_session(server, kind="inline")
        count = session.entry_count
        body = {"type": "message", "data": {"role": "user", "content": "Go on."}}
        answers = [as_support.post(f"/sessions/{session.pk}/events", body, Idempotency_Key="k") for _ in range(2)]
        assert [posted.told for posted in server.posted] == [body]
    assert answers[0].json() == answers[1].json()
    assert answers[0].json()["queued"] is True
    assert (fresh(session).entry_count, session.status) == (count + 1, SessionStatus.WORKING)
    assert Event.objects.get(type="runner.forwarded").payload == {"type": "message", "runner": "box", "status": 202, "delivered": True}


def test_of_a_session_whose_agent_writes_a_file_the_message_is_only_handed_over(as_support):
    with RunnerServer(Reply(202)) as server:
        session = bound_session(server)
        SourceFile.objects.create(session=session, path="a.jsonl", size=1, reader="claude-code", reader_version=1)
        count = session.entry_count
        assert post(as_support, session, "message", role="user", content="Go on.").json() == {"queued": True}
        assert len(server.posted) == 1
    assert fresh(session).entry_count == count
    answer = post(as_support, session, "function_call_output", call_id="c", output="forged")
    assert answer.status_code == 400


@pytest.mark.parametrize("status", [409, 500])
def test_a_message_that_the_runner_does_not_take_stays_and_says_so(as_support, status):
    with RunnerServer(Reply(status)) as server:
        session = bound_session(server, kind="inline")
        count = session.entry_count
        answer = post(as_support, session, "message", role="user", content="Go on.")
    assert (answer.status_code, error_of(answer)["code"]) == (503, "runner_unavailable")
    assert str(status) in error_of(answer)["message"]
    assert (fresh(session).entry_count, session.status) == (count + 1, SessionStatus.IDLE)


def test_nothing_is_said_to_a_runner_that_compacts(as_support):
    with RunnerServer(Reply(202)) as server:
        session = bound_session(server, kind="inline")
        post(as_support, session, "compact", wait=False)
        answer = post(as_support, session, "message", role="user", content="Go on.")
        assert (answer.status_code, error_of(answer)["code"], server.posted) == (409, "conflict", [])


def test_what_was_said_elsewhere_is_appended_and_starts_nothing(as_support, queued):
    session = held_session(model="scripted", provider="scripted")
    first = post(as_support, session, "external_conversation_item", item_type="message", item_data={"role": "user", "content": "Hi."})
    second = post(as_support, session, "external_assistant_message", agent="my-agent", text="Hello.")
    assert [answer.json()["queued"] for answer in (first, second)] == [False, False]
    assert [(row.role, row.index) for row in Entry.objects.order_by("index")] == [("user", 0), ("assistant", 1)]
    assert (Turn.objects.count(), queued) == (0, [])


@pytest.mark.parametrize(
    ("event_type", "data"),
    [
        ("message", {}),
        ("message", {"role": "king", "content": "x"}),
        ("message", {"role": "user", "content": 7}),
        ("function_call", {"name": "", "call_id": "c"}),
        ("function_call_output", {"output": "x"}),
        ("external_conversation_item", {"item_type": "curse", "item_data": {}}),
        ("external_conversation_item", {"item_type": "message"}),
        ("external_assistant_message", {"text": "x"}),
        ("approval", {"action": "accept"}),
        ("approval", {"elicitation_id": "e", "action": "maybe"}),
        ("turn_routed", {}),
        ("turn_routed", {"routed_tier": "c9"}),
        ("turn_routed", {"routed_tier": "c3", "active_item_id": "item_9"}),
        ("turn_routed", {"routed_tier": "c3", "turn_id": "x"}),
    ],
)
def test_data_that_an_event_can_t_have_are_refused_by_its_name(as_support, event_type, data):
    session = held_session()
    answer = post(as_support, session, event_type, **data)
    error = error_of(answer)
    assert (answer.status_code, error["code"], event_type in error["message"]) == (400, "invalid_input", True)
    assert error["field"].startswith("data")
    assert not Entry.objects.exists()


def test_whoever_may_only_ingest_can_not_send_messages(support):
    session = held_session()
    assert post(Api(token_of(support, "read", "ingest")), session, "message", role="user", content="x").status_code == 403
    steering = Api(token_of(support, "read", "steer"))
    assert post(steering, session, "message", role="user", content="x").status_code == 202
    assert post(steering, session, "message", role="assistant", content="x").status_code == 403


@pytest.mark.parametrize(
    ("event_type", "data"),
    [("interrupt", {}), ("stop_session", {}), ("approval", {"elicitation_id": "e1", "action": "decline", "content": {"a": 1}})],
)
def test_steering_goes_to_the_runner_and_says_whether_it_was_taken(as_support, event_type, data):
    with RunnerServer(Reply(204), Reply(503)) as server:
        session = bound_session(server)
        answer = post(as_support, session, event_type, **data)
        assert (answer.status_code, answer.json()["queued"], answer.json()["delivered"]) == (202, False, True)
        assert server.posted[0].told == {"type": event_type, "data": data}
        again = post(as_support, session, event_type, **data).json()
        assert (again["delivered"], "503" in again["explanation"]) == (False, True)


@pytest.mark.parametrize(
    ("event_type", "data"), [("interrupt", {}), ("stop_session", {}), ("approval", {"elicitation_id": "e", "action": "accept"})]
)
def test_with_nobody_to_tell_it_is_not_delivered(as_support, event_type, data):
    session = bound_session(f"http://127.0.0.1:{closed_port()}")
    assert post(as_support, session, event_type, **data).json()["delivered"] is False
    answer = post(as_support, long_session(), event_type, **data)
    assert (answer.status_code, answer.json()["delivered"]) == (202, False)


def test_a_running_turn_is_stopped(as_support):
    session = held_session(model="scripted", provider="scripted")
    post(as_support, session, "message", role="user", content="Go on.")
    Turn.objects.update(status="running")
    assert post(as_support, session, "interrupt").json()["delivered"] is True
    assert Turn.objects.get().cancel_requested


def test_a_turn_that_is_routed_to_the_highest_tier_is_decided(as_support):
    session = long_session(kind="inline", model="small")
    quiet = post(as_support, session, "turn_routed", routed_tier="c1", previous_tier="c0")
    assert (quiet.status_code, quiet.json()["result"], quiet.json()["compaction_id"]) == (202, "not_applicable", None)
    answer = post(as_support, session, "turn_routed", routed_tier="c3", previous_tier="c1", history_tokens=1000)
    told = answer.json()
    assert (answer.status_code, told["result"], told["queued"]) == (202, "handled", False)
    attempt = Compaction.objects.get()
    assert (told["compaction_id"], attempt.trigger, answer["Compaction-Id"]) == (str(attempt.pk), "tier_upgrade", str(attempt.pk))
