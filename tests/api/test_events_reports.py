"""What agents and runners tell over the API: their compactions, tokens and state. It starts nothing, and needs the right to ingest."""

import base64
import json

import pytest

from sessions_app.engine.terms import Lineage, Status
from sessions_app.models import Compaction, Entry, Event, Session, SessionStatus
from sessions_app.selectors import plans
from sessions_app.selectors.item_ids import item_id
from sessions_app.services.compactions import unknown
from tests.api.conftest import Api, error_of, token_of
from tests.fakes.runner_server import Reply, RunnerServer, reply
from tests.runners.scenes import bound_session, compacted
from tests.services.compaction_scenes import fresh, long_session

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def queued(monkeypatch):
    """Nobody takes the queue here."""
    tasks = []
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda name, *arguments: tasks.append((name, *arguments)))
    return tasks


def post(api, session, event_type, **data):
    return api.post(f"/sessions/{session.pk}/events", {"type": event_type, "data": data})


def stream_of(session) -> list[str]:
    """The `response.compaction.…` events that followers of a session get, in order."""
    events = Event.objects.filter(stream=f"session:{session.pk}", type="compaction.reported").order_by("seq")
    return [told for event in events if (told := event.payload["response_event"])]


@pytest.mark.parametrize("status", ["in_progress", "completed", "failed"])
def test_a_status_of_an_agent_s_compaction_is_one_event_of_that_session(as_support, status):
    session, other = long_session(), long_session()
    answer = post(as_support, session, "external_compaction_status", status=status)
    assert (answer.status_code, answer.json()) == (202, {"queued": False})
    assert (stream_of(session), stream_of(other)) == ([f"response.compaction.{status}"], [])
    event = Event.objects.get(type="compaction.reported")
    assert "total_tokens" not in event.payload
    assert not Compaction.objects.exists()


@pytest.mark.parametrize(
    "told", [{"status": "Done"}, {"status": "Completed"}, {"status": " completed"}, {"status": None}, {"status": 1}, {}]
)
def test_any_other_word_is_refused_by_name_with_those_that_are_allowed(as_support, told):
    session = long_session()
    answer = post(as_support, session, "external_compaction_status", **told)
    error = error_of(answer)
    assert (answer.status_code, error["code"], error["field"]) == (400, "invalid_input", "data.status")
    assert "external_compaction_status" in error["message"]
    if "status" in told:
        assert all(word in error["message"] for word in ("in_progress", "completed", "failed"))
    assert stream_of(session) == []


@pytest.mark.parametrize(("status", "ended"), [("completed", Status.COMPLETED), ("failed", Status.FAILED)])
def test_the_report_of_an_operation_ends_the_attempt_that_waits_for_it_and_no_other(as_support, status, ended):
    with RunnerServer(reply(202, {"operation_id": "op-1"})) as server:
        attempt = compacted(bound_session(server))
    session = attempt.session
    assert (attempt.status, attempt.operation_id, fresh(session).status) == (Status.RUNNING, "op-1", SessionStatus.COMPACTING)
    post(as_support, session, "external_compaction_status", status="in_progress", operation_id="op-1")
    post(as_support, session, "external_compaction_status", status="completed", operation_id="op-other")
    assert fresh(attempt).status == Status.RUNNING
    post(as_support, session, "external_compaction_status", status=status, operation_id="op-1")
    assert (fresh(attempt).status, attempt.lineage, fresh(session).status) == (ended, Lineage.AGENT, SessionStatus.IDLE)
    assert stream_of(session)[-1] != f"response.compaction.{status}" or status == "completed"  # its own step tells it
    assert Event.objects.filter(type="compaction.reported").last().payload["response_event"] is None


def test_a_report_without_an_operation_ends_it_as_well(as_support):
    with RunnerServer(reply(202, {"operation_id": "op-1"})) as server:
        attempt = compacted(bound_session(server))
    post(as_support, attempt.session, "external_compaction_status", status="completed")
    assert fresh(attempt).status == Status.COMPLETED


def test_a_report_settles_an_outcome_that_was_unknown(as_support):
    with RunnerServer(Reply(breaks=True)) as server:
        session = compacted(bound_session(server)).session
    assert unknown.undecided(session.pk).exists()
    post(as_support, session, "external_compaction_status", status="in_progress")
    assert unknown.undecided(session.pk).exists()
    post(as_support, session, "external_compaction_status", status="failed")
    assert not unknown.undecided(session.pk).exists()


PAYLOAD = base64.b64encode(b"\x89PNG" + bytes(range(256)) * 400).decode()


def snapshot() -> list[dict]:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PAYLOAD}}
    return [
        {"role": "user", "content": [{"type": "text", "text": "Look at this."}, image]},
        {"role": "assistant", "content": [{"type": "text", "text": "I see a red square."}]},
    ]


def checkpoint(session, last=11, **more):
    told = {"summary": "We looked at the build.", "last_item_id": item_id(session.pk, last), "token_count": 1234, "model": "opus"}
    return told | more


def items_of(api, session):
    found = api.get(f"/sessions/{session.pk}/items?limit=1000").json()["data"]
    return [item for item in found if item["type"] == "compaction"]


def test_a_reported_checkpoint_is_listed_once_without_its_payloads(as_support):
    session = long_session()
    before = session.entry_count
    answer = post(as_support, session, "compaction", **checkpoint(session, compacted_messages=snapshot(), window_id=3))
    assert (answer.status_code, answer.json()["queued"]) == (202, True)
    compaction = Compaction.objects.get()
    assert (compaction.lineage, compaction.generation, compaction.trigger, compaction.boundary_index) == (Lineage.AGENT, 1, "external", 12)
    assert (compaction.tokens_after, compaction.tokens_after_origin, compaction.divider_index) == (1234, "reported", before)
    told = compaction.detail["item"]
    marker = "[image/png content omitted from the compaction snapshot]"
    assert (told["summary"], told["token_count"], told["window_id"], told["model"]) == ("We looked at the build.", 1234, 3, "opus")
    assert [message["role"] for message in told["compacted_messages"]] == ["user", "assistant"]
    text, image = told["compacted_messages"][0]["content"]
    assert (text["text"], image["source"]) == ("Look at this.", {"type": "base64", "media_type": "image/png", "data": marker})
    rows = [*Compaction.objects.values(), *compaction.segments.values(), *Entry.objects.filter(index=before).values()]
    assert len(json.dumps(rows, default=str)) < len(PAYLOAD) / 2
    assert Event.objects.filter(type="compaction.reported").get().payload["status"] == "checkpoint"
    (listed,) = items_of(as_support, session)
    assert listed["id"] == answer.json()["item_id"]
    assert {name: listed[name] for name in told} == told
    assert PAYLOAD not in json.dumps(listed)


def test_it_is_the_agent_s_view_from_then_on_and_the_history_stays(as_support):
    session = long_session()
    count = session.entry_count
    post(as_support, session, "compaction", **checkpoint(session, compacted_messages=snapshot()))
    session = fresh(session)
    assert (session.active_agent, session.entry_count, session.status) == (Compaction.objects.get(), count + 1, SessionStatus.IDLE)
    view = plans.load_view(session)
    spoken = [part.part.text for message in view for part in message.parts]
    assert spoken[0].startswith("Look at this.\n")
    assert spoken[1] == "I see a red square."
    assert "Turn 3: please look" in spoken[2]
    assert session.signal_tokens < session.tokens_total


def test_without_messages_the_summary_stands_for_what_was_folded(as_support):
    session = long_session()
    post(as_support, session, "compaction", **checkpoint(session))
    view = plans.load_view(fresh(session))
    assert view[0].parts[0].part.text == "We looked at the build."


def test_what_the_runner_was_asked_for_and_what_it_then_reports_is_one_attempt(as_support):
    with RunnerServer(Reply(200)) as server:
        attempt = compacted(bound_session(server))
    session = attempt.session
    assert post(as_support, session, "compaction", **checkpoint(session)).status_code == 202
    assert (fresh(attempt).generation, Compaction.objects.count(), fresh(session).active_agent) == (1, 1, attempt)
    assert post(as_support, session, "compaction", **checkpoint(session, last=20)).status_code == 202
    assert [row.generation for row in Compaction.objects.order_by("attempt")] == [1, 2]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"last_item_id": "item_0"}, "data.last_item_id"),
        ({"last_item_id": f"item_{'0' * 32}_3"}, "data.last_item_id"),
        ({"summary": None}, "data.summary"),
        ({"summary": "   "}, "data.summary"),
        ({"token_count": -1}, "data.token_count"),
        ({"token_count": True}, "data.token_count"),
        ({"token_count": "12"}, "data.token_count"),
        ({"token_count": 2**70}, "data.token_count"),
        ({"compacted_messages": "x"}, "data.compacted_messages"),
        ({"compacted_messages": ["x"]}, "data.compacted_messages.0"),
        ({"window_id": -1}, "data.window_id"),
    ],
)
def test_a_checkpoint_that_can_t_be_so_is_refused(as_support, change, field):
    session = long_session()
    answer = post(as_support, session, "compaction", **checkpoint(session) | change)
    assert (answer.status_code, error_of(answer)["field"]) == (400, field)
    assert not Compaction.objects.exists()


@pytest.mark.parametrize("missing", ["summary", "last_item_id", "token_count"])
def test_what_is_required_is_named(as_support, missing):
    session = long_session()
    told = checkpoint(session)
    del told[missing]
    answer = post(as_support, session, "compaction", **told)
    assert (answer.status_code, error_of(answer)["field"]) == (400, f"data.{missing}")


def test_an_item_of_another_session_cuts_nothing(as_support):
    session, other = long_session(), long_session()
    answer = post(as_support, session, "compaction", **checkpoint(other))
    assert (answer.status_code, error_of(answer)["field"]) == (400, "data.last_item_id")


def test_no_checkpoint_takes_an_earlier_one_back(as_support):
    session = long_session()
    post(as_support, session, "compaction", **checkpoint(session, last=20))
    answer = post(as_support, session, "compaction", **checkpoint(session, last=8))
    assert (answer.status_code, error_of(answer)["field"]) == (400, "data.last_item_id")
    assert fresh(session).active_agent.generation == 1


def test_texts_that_no_database_stores_are_made_so(as_support):
    session = long_session()
    messages = [{"role": "user", "content": "a\u0000b", "k\u0000": ["\ud83d"]}]
    assert (
        post(as_support, session, "compaction", **checkpoint(session, summary="x\u0000y", compacted_messages=messages)).status_code == 202
    )
    assert "\0" not in json.dumps(Compaction.objects.get().detail)


def test_a_measured_context_is_what_the_meter_shows(as_support):
    session = long_session()
    answer = post(as_support, session, "external_session_usage", context_tokens=6543, context_window=20_000)
    assert (answer.status_code, answer.json()) == (202, {"queued": False})
    session = fresh(session)
    assert (session.signal_tokens, session.signal_origin, session.signal_measured) == (6543, "measured", 6543)
    assert (session.window_reported, Event.objects.get(type="session.usage_reported").payload["context_tokens"]) == (20_000, 6543)
    post(as_support, session, "usage", input_tokens=1000, cache_read_input_tokens=5000, output_tokens=77)
    assert fresh(session).signal_measured == 6077


def test_after_a_checkpoint_an_older_measurement_says_nothing_more(as_support):
    session = long_session()
    post(as_support, session, "external_session_usage", context_tokens=6543)
    post(as_support, session, "compaction", **checkpoint(session, last=20))
    assert fresh(session).signal_origin == "estimated"
    post(as_support, session, "external_session_usage", context_tokens=2222)
    assert fresh(session).signal_tokens == 2222


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"model": "x"},
        {"context_tokens": -1},
        {"context_tokens": 1.5},
        {"context_window": 0},
        {"cumulative_cost_usd": -1},
        {"context_tokens": 10**30},
    ],
)
def test_usage_that_can_t_be_so_is_refused(as_support, told):
    answer = post(as_support, long_session(), "external_session_usage", **told)
    assert (answer.status_code, "external_session_usage" in error_of(answer)["message"]) == (400, True)


def test_how_a_session_stands_is_what_its_agent_says(as_support):
    session = long_session()
    for told, status in [
        ("running", "working"),
        ("waiting", "waiting"),
        ("failed", "failed"),
        ("idle", "failed"),
        ("running", "working"),
        ("idle", "idle"),
    ]:
        assert post(as_support, session, "external_session_status", status=told).status_code == 202
        assert fresh(session).status == status
    assert post(as_support, session, "external_session_status", status="Busy").status_code == 400


def test_a_compaction_that_waited_for_the_turn_begins_with_its_end(as_support, queued):
    session = long_session(status=SessionStatus.WORKING)
    post(as_support, session, "compact", wait=False, when="idle")
    attempt = Compaction.objects.get()
    assert attempt.status == Status.WAITING_FOR_IDLE
    post(as_support, session, "external_session_status", status="idle")
    assert (fresh(attempt).status, fresh(session).status) == (Status.REQUESTED, SessionStatus.COMPACTING)
    assert queued == [("sessions_app.run_compaction", str(attempt.pk))]
    post(as_support, session, "external_session_status", status="failed")
    assert (fresh(session).status, fresh(attempt).session_status_before) == (SessionStatus.COMPACTING, "failed")


MIRRORS = [
    ("external_compaction_status", {"status": "completed"}),
    ("external_session_usage", {"context_tokens": 1}),
    ("external_session_status", {"status": "failed"}),
    ("usage", {"input_tokens": 1}),
    ("external_conversation_item", {"item_type": "message", "item_data": {"role": "user", "content": "forged"}}),
    ("external_assistant_message", {"agent": "a", "text": "forged"}),
    ("function_call", {"name": "rm", "call_id": "c", "arguments": "{}"}),
    ("compaction", {"summary": "forged", "last_item_id": "", "token_count": 1}),
]


@pytest.mark.parametrize(("event_type", "told"), MIRRORS)
def test_whoever_may_only_steer_or_read_can_not_forge_history(support, operator, event_type, told):
    session = long_session(kind="inline")
    told = told | ({"last_item_id": item_id(session.pk, 3)} if event_type == "compaction" else {})
    before = list(Session.objects.values())
    for api in (Api(token_of(support, "read", "steer")), Api(token_of(operator, "read", "ingest", "steer"))):
        answer = post(api, session, event_type, **told)
        assert (answer.status_code, error_of(answer)["code"]) == (403, "forbidden")
    assert (list(Session.objects.values()), Compaction.objects.count()) == (before, 0)
    assert Event.objects.filter(type="access.refused").count() == 2


def test_the_same_key_reports_once(as_support):
    session = long_session()
    body = {"type": "compaction", "data": checkpoint(session)}
    answers = [as_support.post(f"/sessions/{session.pk}/events", body, Idempotency_Key="k") for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert Compaction.objects.count() == 1


def test_an_unknown_type_is_refused_with_those_that_there_are(as_support):
    answer = post(as_support, long_session(), "explode")
    error = error_of(answer)
    assert (answer.status_code, error["field"]) == (400, "type")
    assert all(name in error["message"] for name in ("compact", "external_compaction_status", "turn_routed", "message"))


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"type": 7}', b'{"data": {}}', b'{"type": "compact", "data": []}', b"\xff", b'{"type": "compact", "x": 1}']
)
def test_a_body_that_is_no_event_is_refused(as_support, body):
    session = long_session()
    answer = as_support.post(f"/sessions/{session.pk}/events", body)
    assert (answer.status_code, error_of(answer)["code"]) == (400, "invalid_input")


def test_a_session_that_is_not_there_is_not_found(as_support):
    from uuid import uuid4

    answer = as_support.post(f"/sessions/{uuid4()}/events", {"type": "explode"})
    assert answer.status_code == 404
