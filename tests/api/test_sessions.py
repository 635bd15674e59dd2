"""Sessions by the API: begun once, listed page by page, described, and gone from lists when they are archived."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.db import connection, connections

from sessions_app.models import Event, IdempotencyKey, Session
from sessions_app.selectors import plans
from sessions_app.services import sweeper
from tests.api.conftest import Api, error_of, token_of
from tests.services.compaction_scenes import long_session

HISTORY = [
    {"type": "message", "role": "user", "content": "Why does the build fail?"},
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Look at the log."}]},
    {"type": "function_call", "name": "read", "arguments": {"path": "build.log"}, "call_id": "c1"},
    {"type": "function_call_output", "call_id": "c1", "output": "error: x is not defined"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x is missing."}], "model": "gpt-5"},
]


def listed(api: Api, query: str = "") -> list[dict]:
    answer = api.get(f"/sessions?{query}")
    assert answer.status_code == 200, answer.content
    return answer.json()["data"]


def test_a_session_begins_with_its_history_and_is_read_back(as_support):
    body = {"title": "A build", "agent": "my-agent", "project": "shop", "model": "gpt-5", "context_window": 50_000, "labels": ["ci"]}
    answer = as_support.post("/sessions", body | {"initial_items": HISTORY})
    assert answer.status_code == 201, answer.content
    told = answer.json()
    assert answer.headers["Location"] == f"/v1/sessions/{told['id']}"
    assert (told["title"], told["agent"], told["project"], told["model"], told["window"]) == (
        "A build",
        "my-agent",
        "shop",
        "gpt-5",
        50_000,
    )
    assert (told["kind"], told["labels"], told["entries"], told["provider"]) == ("inline", ["ci"], 5, None)
    items = as_support.get(f"/sessions/{told['id']}/items").json()["data"]
    assert [item["type"] for item in items] == [item["type"] for item in HISTORY]
    assert items[2]["arguments"] == '{"path":"build.log"}'
    assert items[4]["content"] == [{"type": "output_text", "text": "x is missing."}]
    session = Session.objects.get(pk=told["id"])
    assert len(plans.load_view(session)) >= 2
    assert list(Event.objects.filter(stream=f"session:{session.pk}").order_by("seq").values_list("type", "actor_kind")) == [
        ("session.created", "token"), ("entries.appended", "token"),
    ]  # fmt: skip


def test_a_model_that_can_be_asked_here_answers(as_support):
    told = as_support.post("/sessions", {"model": "scripted@8000"}).json()
    assert (told["provider"], told["model"], told["window"], told["agent"]) == ("scripted", "scripted", 8_000, "palimpsest")


def test_a_session_of_a_parent_is_a_sub_agent(as_support, session):
    child = as_support.post("/sessions", {"title": "Child", "parent_session_id": str(session.pk)}).json()
    assert (child["parent_session_id"], child["relation"]) == (str(session.pk), "sub_agent")
    assert [row["id"] for row in listed(as_support)] == [str(session.pk)]
    assert [row["id"] for row in listed(as_support, f"parent={session.pk}")] == [child["id"]]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"title": "x" * 201}, "body.title"),
        ({"unknown": 1}, "body.unknown"),
        ({"context_window": 10}, "body.context_window"),
        ({"context_window": 10**30}, "body.context_window"),
        ({"labels": ["a\nb"]}, "labels"),
        ({"labels": "a"}, "body.labels"),
        ({"model": "a\x00b"}, "model"),
        ({"parent_session_id": "nobody"}, "body.parent_session_id"),
        ({"runner": "nobody"}, "runner"),
        ({"initial_items": [{"type": "message", "role": "user", "content": "a"}, {"type": "spell"}]}, "initial_items.1.type"),
        ({"initial_items": [{"type": "message", "role": "wizard", "content": "a"}]}, "initial_items.0.role"),
        ({"initial_items": [{"type": "function_call_output", "call_id": "", "output": 1}]}, "initial_items.0.call_id"),
        ({"initial_items": [{"type": "message", "role": "user", "content": [{"type": "input_text"}]}]}, "initial_items.0.content.0"),
    ],
)
def test_what_a_session_cannot_be_is_named_and_nothing_begins(as_support, body, field):
    answer = as_support.post("/sessions", body)
    assert (answer.status_code, error_of(answer)["code"]) == (400, "invalid_input")
    assert error_of(answer)["field"].removeprefix("body.") == field.removeprefix("body.")
    assert not Session.objects.exists()


def test_payloads_of_images_are_not_kept(as_support):
    image = {"type": "input_image", "image_url": "data:image/png;base64,aGVsbG8="}
    told = as_support.post("/sessions", {"initial_items": [{"type": "message", "role": "user", "content": [image]}]}).json()
    [item] = as_support.get(f"/sessions/{told['id']}/items").json()["data"]
    assert item["content"] == [{"type": "input_image", "media_type": "image/png", "data": "[image/png content omitted]", "bytes": 5}]


def test_the_same_key_answers_the_same_and_creates_once(as_support, as_admin):
    first = as_support.post("/sessions", {"title": "Once"}, Idempotency_Key="k1")
    again = as_support.post("/sessions", {"title": "Once"}, Idempotency_Key="k1")
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert (again.headers["Location"], again.headers["Idempotency-Replayed"]) == (first.headers["Location"], "true")
    other = as_support.post("/sessions", {"title": "Other"}, Idempotency_Key="k1")
    assert (other.status_code, error_of(other)["code"], error_of(other)["retryable"]) == (409, "conflict", False)
    assert as_admin.post("/sessions", {"title": "Once"}, Idempotency_Key="k1").status_code == 201, "a key is its sender's own"
    assert Session.objects.count() == 2


def test_a_refused_request_leaves_its_key_free(as_support):
    assert as_support.post("/sessions", {"labels": ["\n"]}, Idempotency_Key="k1").status_code == 400
    assert as_support.post("/sessions", {"title": "Now"}, Idempotency_Key="k1").status_code == 201


@pytest.mark.parametrize("key", ["", "x" * 256])
def test_a_key_that_is_none_is_refused(as_support, key):
    answer = as_support.post("/sessions", {}, Idempotency_Key=key)
    assert (answer.status_code, error_of(answer)["field"]) == (400, "Idempotency-Key")


def test_a_key_counts_for_a_day_and_is_then_forgotten(as_support):
    with time_machine.travel(datetime.now(UTC) - timedelta(hours=25), tick=False):
        as_support.post("/sessions", {"title": "Once"}, Idempotency_Key="k1")
        as_support.post("/sessions", {"title": "Once"}, Idempotency_Key="k2")
    assert as_support.post("/sessions", {"title": "Other"}, Idempotency_Key="k1").status_code == 201
    assert sweeper.sweep().idempotency_keys_forgotten == 1
    assert IdempotencyKey.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_the_same_key_at_the_same_time_creates_once(support, monkeypatch):
    secret = token_of(support, "steer", "read")
    meet, answers = threading.Barrier(4), []

    def ask() -> None:
        try:
            meet.wait(timeout=60)
            answers.append(Api(secret).post("/sessions", {"title": "Once"}, Idempotency_Key="k1"))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.status_code for answer in answers] == [201] * 4, connection.vendor
    assert len({answer.content for answer in answers}) == 1
    assert sum("Idempotency-Replayed" in answer.headers for answer in answers) == 3
    assert Session.objects.count() == 1


def test_lists_are_paged_by_ids_in_both_orders(as_operator, make_session):
    made = [str(make_session(f"Session {number}").pk) for number in range(7)]  # the first is the latest
    for order, wanted in (("desc", made), ("asc", made[::-1])):
        found, after = [], ""
        while True:
            page = as_operator.get(f"/sessions?order={order}&limit=3&after={after}").json()
            found += [row["id"] for row in page["data"]]
            if not page["has_more"]:
                break
            after = page["last_id"]
        assert found == wanted
        assert [row["id"] for row in listed(as_operator, f"order={order}&limit=2&before={wanted[4]}")] == wanted[2:4]
    for unknown in ("nonsense", "01890000-0000-7000-8000-000000000000"):
        answer = as_operator.get(f"/sessions?after={unknown}")
        assert (answer.status_code, error_of(answer)["field"]) == (400, "after")


def test_filters_narrow_the_list(as_support, make_session):
    one = make_session("Alpha build", agent="codex", labels=["ci", "A"], pressure=0.9, status="waiting")
    two = make_session("Beta", model="gpt-5", labels=["a", "über"], archived=True)
    three = make_session("Gamma 50%", last_activity_at=datetime(2020, 1, 1, tzinfo=UTC))

    def ids(query: str) -> set[str]:
        return {row["title"] for row in listed(as_support, query)}

    assert ids("") == {one.title, three.title}
    assert ids("include_archived=true") == {one.title, two.title, three.title}
    assert ids("query=alpha") == {one.title}
    assert ids("agent=codex") == {one.title}
    assert ids("status=waiting") == {one.title}
    assert ids("label=A") == {one.title}
    assert ids("label=a&include_archived=true") == {two.title}
    assert ids("label=%C3%BCber&include_archived=true") == {two.title}
    assert ids("pressure_min=0.5") == {one.title}
    assert ids("until=2021-01-01T00:00:00Z") == {three.title}
    assert ids("since=2021-01-01T00:00:00Z") == {one.title}
    assert ids("project=nothing") == set()
    assert ids("runner=nobody") == set()


def test_the_list_costs_the_same_however_many_there_are(as_operator, make_session, django_assert_num_queries):
    for number in range(30):
        make_session(f"Session {number}")
    as_operator.get("/sessions")
    for limit in (1, 30):
        with django_assert_num_queries(3):
            as_operator.get(f"/sessions?limit={limit}")


def test_a_session_is_described_and_each_change_is_an_event(as_support, session):
    answer = as_support.patch(f"/sessions/{session.pk}", {"title": " New  title ", "labels": ["x", "x"], "archived": True})
    assert answer.status_code == 200, answer.content
    told = answer.json()
    assert (told["title"], told["labels"], told["archived"]) == ("New title", ["x"], True)
    event = Event.objects.get(type="session.edited")
    assert event.before == {"title": "A session", "labels": [], "archived": False}
    assert event.after == {"title": "New title", "labels": ["x"], "archived": True}
    as_support.patch(f"/sessions/{session.pk}", {"archived": True})
    assert Event.objects.filter(type="session.edited").count() == 1, "nothing changed"


def test_a_model_and_a_window_are_changed_as_on_the_page(as_support):
    imported = long_session(3)
    told = as_support.patch(f"/sessions/{imported.pk}", {"context_window": 20_000}).json()
    assert (told["window"], told["window_override"]) == (20_000, 20_000)
    refused = as_support.patch(f"/sessions/{imported.pk}", {"model": "scripted"})
    assert (refused.status_code, error_of(refused)["code"]) == (400, "invalid_input")
    held = as_support.post("/sessions", {"model": "gpt-5"}).json()
    told = as_support.patch(f"/sessions/{held['id']}", {"context_window": 30_000}).json()
    assert (told["model"], told["window"]) == ("gpt-5", 30_000)
    told = as_support.patch(f"/sessions/{held['id']}", {"model": "scripted"}).json()
    assert (told["provider"], told["model"]) == ("scripted", "scripted")
    assert Event.objects.filter(type="session.model_changed").count() == 3


def test_a_goal_is_set_and_left_to_the_messages_again(as_support):
    held = as_support.post(
        "/sessions", {"initial_items": [{"type": "message", "role": "user", "content": "Mend the build, please."}]}
    ).json()
    as_support.patch(f"/sessions/{held['id']}", {"goal": "The build passes."})
    assert as_support.get(f"/sessions/{held['id']}").json()["goal"] == {"text": "The build passes.", "is_set": True}
    as_support.patch(f"/sessions/{held['id']}", {"goal": ""})
    told = as_support.get(f"/sessions/{held['id']}").json()["goal"]
    assert told is None or told["is_set"] is False
    refused = as_support.patch(f"/sessions/{held['id']}", {"goal": "x" * 10_000})
    assert (refused.status_code, error_of(refused)["code"]) == (400, "invalid_input")
    assert Event.objects.filter(type="session.goal_changed").count() == 2


@pytest.mark.parametrize("body", [{"nonsense": 1}, {"title": ""}, {"title": None, "labels": [""]}, {"archived": "maybe"}, [], "x", None])
def test_a_change_that_is_none_is_refused(as_support, session, body):
    answer = as_support.patch(f"/sessions/{session.pk}", body)
    assert (answer.status_code, error_of(answer)["code"]) == (400, "invalid_input")
    session.refresh_from_db()
    assert session.title == "A session"
