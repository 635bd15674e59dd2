"""One session, its view, its compactions and its exports by the API: the same as its pages and commands say."""

import json
from pathlib import Path

import pytest

from sessions_app.models import Compaction, Event, Session
from sessions_app.selectors import plans
from sessions_app.selectors.view_stream import stream_view
from sessions_app.services.compactions.revert import revert
from sessions_app.shapes import message_shape
from sessions_app.writers.provider_requests import anthropic_messages, openai_messages
from tests.api.conftest import TESTS, Api, error_of
from tests.api.scenes import DATA, compact, compacted_session, imported_file
from tests.services.compaction_scenes import grow, long_session, set_policy

QUERY_COUNTS = json.loads((Path(__file__).resolve().parents[1] / "query_counts.json").read_text())


def document(api: Api, address: str) -> dict:
    answer = api.get(address)
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    assert answer.status_code == 200, body
    return json.loads(body)


def test_a_session_says_how_full_it_is_and_what_was_done_to_it(as_operator, django_assert_num_queries):
    session, attempt = compacted_session()
    told = document(as_operator, f"/sessions/{session.pk}")
    assert told["signal"]["tokens"] == session.signal_tokens
    assert (told["window"], told["trigger"], told["entries"]) == (session.window, session.trigger_tokens, session.entry_count)
    assert (told["context"], told["generation"]) == ("console", {"agent": None, "console": attempt.generation})
    assert (told["active_compaction"], told["last_error"], told["runner"]) == (None, None, None)
    assert told["last_seq"] == Event.objects.filter(stream=f"session:{session.pk}").latest("seq").seq
    with django_assert_num_queries(QUERY_COUNTS["api session"]):
        document(as_operator, f"/sessions/{session.pk}")


def test_a_failure_is_told_until_something_goes_right(as_operator):
    session = long_session()
    Compaction.objects.create(
        session=session, attempt=1, lineage="console", trigger="manual", status="failed", outcome="failed", reason="worker_lost",
        explanation="Its worker was lost.", requested_at=session.created_at, finished_at=session.created_at,
    )  # fmt: skip
    Session.objects.filter(pk=session.pk).update(last_attempt=1)
    error = document(as_operator, f"/sessions/{session.pk}")["last_error"]
    assert (error["of"], error["reason"], error["message"]) == ("compaction", "worker_lost", "Its worker was lost.")
    compact(session)
    assert document(as_operator, f"/sessions/{session.pk}")["last_error"] is None


def without_item(part: dict) -> dict:
    return {name: value for name, value in part.items() if name != "item_id"}


@pytest.mark.parametrize("query", ["", "?generation=0", "?generation=1", "?at=12", "?context=agent"])
def test_the_view_is_the_one_that_its_page_is_made_from(as_operator, query):
    session, attempt = compacted_session()
    told = document(as_operator, f"/sessions/{session.pk}/view{query}")
    chain = plans.load_chain(session)
    wanted = {
        "": (chain[-1], None), "?generation=1": (chain[-1], None), "?generation=0": (None, None), "?at=12": (None, 12),
        "?context=agent": (None, None),
    }[query]  # fmt: skip
    messages = [message_shape(message) for message in stream_view(session.pk, wanted[0], upto=wanted[1])]
    bare = [
        {**message, "parts": [{k: v for k, v in part.items() if k != "item_id"} for part in message["parts"]]}
        for message in told["messages"]
    ]
    assert bare == json.loads(json.dumps(messages, default=str))
    assert told["generation"] == (attempt.generation if wanted[0] else 0)
    for part in (part for message in told["messages"] for part in message["parts"]):
        assert (part["item_id"] is None) == (part["entry"] is None)
        assert part["item_id"] is None or part["item_id"].endswith(f"_{part['entry']}")


@pytest.mark.parametrize(("name", "write"), [("openai", openai_messages), ("anthropic", anthropic_messages)])
def test_a_view_is_given_as_the_request_that_a_provider_takes(as_operator, name, write):
    session, _ = compacted_session()
    told = document(as_operator, f"/sessions/{session.pk}/view?format={name}")
    wanted = list(write(stream_view(session.pk, plans.load_chain(session)[-1]), plans.load_blob))
    if wanted[0]["role"] == "system" and name == "anthropic":
        assert told["system"] == wanted.pop(0)["content"]
    assert told["messages"] == wanted


def test_an_empty_view_is_one_as_well(as_operator, session):
    for name in ("canonical", "openai", "anthropic"):
        assert document(as_operator, f"/sessions/{session.pk}/view?format={name}")["messages"] == []


@pytest.mark.parametrize(
    ("query", "field"), [("generation=9", "generation"), ("at=999", "at"), ("at=1&generation=1", "generation"), ("format=xml", "format")]
)
def test_a_view_that_is_none_is_named(as_operator, query, field):
    session, _ = compacted_session(6)
    answer = as_operator.get(f"/sessions/{session.pk}/view?{query}")
    assert (answer.status_code, error_of(answer)["field"]) == (400, field)


def test_a_broken_plan_is_a_conflict_before_an_answer_begins(as_operator):
    session, attempt = compacted_session()
    attempt.segments.all().delete()
    answer = as_operator.get(f"/sessions/{session.pk}/view")
    assert (answer.status_code, error_of(answer)["code"], error_of(answer)["retryable"]) == (409, "conflict", False)


def test_the_ledger_is_paged_and_an_attempt_is_opened(as_support):
    session, first = compacted_session()
    for _ in range(4):
        grow(session, 6)
        compact(session)
    ids = [str(pk) for pk in Compaction.objects.filter(session=session).order_by("-attempt").values_list("pk", flat=True)]
    found, after = [], ""
    while True:
        page = document(as_support, f"/sessions/{session.pk}/compactions?limit=2&after={after}")
        found += [one["id"] for one in page["data"]]
        if not page["has_more"]:
            break
        after = page["last_id"]
    assert found == ids
    assert [one["id"] for one in document(as_support, f"/sessions/{session.pk}/compactions?order=asc")["data"]] == ids[::-1]
    before = document(as_support, f"/sessions/{session.pk}/compactions?limit=1&before={ids[2]}")
    assert [one["id"] for one in before["data"]] == [ids[1]]
    opened = document(as_support, f"/sessions/{session.pk}/compactions/{first.pk}")
    first.refresh_from_db()
    assert (opened["summary"], opened["generation"], opened["boundary"]) == (first.summary, 1, first.boundary_index)
    assert opened["retention"]["total"]
    assert {one["name"] for one in opened["state"]}
    other = long_session(4, source_key="test:other")
    for missing in (f"/sessions/{other.pk}/compactions/{first.pk}", f"/sessions/{session.pk}/compactions/{other.pk}"):
        assert as_support.get(missing).status_code == 404
    assert error_of(as_support.get(f"/sessions/{other.pk}/compactions?after={first.pk}"))["field"] == "after"


def test_a_checkpoint_is_taken_back_and_put_in_force_again(as_support):
    session, attempt = compacted_session()
    address = f"/sessions/{session.pk}/compactions/{attempt.pk}"
    answer = as_support.post(f"{address}/revert")
    assert (answer.status_code, answer.json()["is_in_force"]) == (200, False)
    assert document(as_support, f"/sessions/{session.pk}")["generation"]["console"] is None
    again = as_support.post(f"{address}/revert", {})
    assert (again.status_code, error_of(again)["code"]) == (409, "conflict")
    assert as_support.post(f"{address}/restore", {"as_it_was": True}).json()["is_in_force"] is True
    kinds = list(Event.objects.filter(type="compaction.reverted").values_list("actor_kind", flat=True))
    assert kinds == ["token", "token"]
    revert(actor=TESTS, session=session, generation=None)
    missing = as_support.post(f"/sessions/{session.pk}/compactions/{session.pk}/restore", {})
    assert (missing.status_code, error_of(missing)["code"]) == (404, "not_found")


def test_a_draft_is_committed_or_discarded(as_support):
    session = long_session()
    set_policy(session, review_before_commit=True)
    draft = compact(session)
    address = f"/sessions/{session.pk}/compactions/{draft.pk}"
    assert document(as_support, address)["has_draft"] is True
    stale = as_support.post(f"{address}/commit", {"version": 7})
    assert (stale.status_code, error_of(stale)["code"]) == (409, "conflict")
    assert as_support.post(f"{address}/commit", {"version": 1}).json()["status"] == "completed"
    grow(session, 8)
    other = compact(session)
    discarded = as_support.post(f"/sessions/{session.pk}/compactions/{other.pk}/discard").json()
    assert discarded["status"] == "cancelled"


def test_a_preview_plans_each_policy_and_does_nothing(as_support):
    session = long_session()
    before = Event.objects.count()
    answer = as_support.post(
        f"/sessions/{session.pk}/compactions/preview", {"policies": [{"name": "now"}, {"name": "all", "force": True}, {"boundary": 9}]}
    )
    assert answer.status_code == 200, answer.content
    now, everything, chosen = answer.json()["plans"]
    assert (now["name"], everything["name"], chosen["name"]) == ("now", "all", None)
    assert everything["folded"] >= now["folded"] > 0
    assert (chosen["boundary_index"] == 9) != bool(chosen["refusal"])
    assert as_support.post(f"/sessions/{session.pk}/compactions/preview").json()["plans"][0]["folded"] == now["folded"]
    assert not Compaction.objects.exists()
    assert Event.objects.exclude(type="session.viewed").count() == before
    for body, field in (({"policies": []}, "policies"), ({"policies": [{"summariser": "nobody"}]}, "policies.0.summariser")):
        answer = as_support.post(f"/sessions/{session.pk}/compactions/preview", body)
        assert answer.status_code == 400
        assert error_of(answer)["field"].removeprefix("body.") == field


def test_exports_are_those_of_the_page(as_operator):
    session = imported_file("anthropic_request.json")
    original = as_operator.get(f"/sessions/{session.pk}/export")
    assert b"".join(original.streaming_content) == (DATA / "anthropic_request.json").read_bytes()
    assert 'filename="anthropic_request.json"' in original.headers["Content-Disposition"]
    assert b"".join(as_operator.get(f"/sessions/{session.pk}/export?format=markdown").streaming_content).startswith(b"# ")
    lines = b"".join(as_operator.get(f"/sessions/{session.pk}/export?format=jsonl").streaming_content).splitlines()
    assert len(lines) >= session.entry_count
    refused = as_operator.get(f"/sessions/{session.pk}/export?format=continuation")
    assert (refused.status_code, error_of(refused)["code"]) == (409, "conflict")
    assert Event.objects.filter(type="session.exported", actor_kind="token").count() == 3


def test_a_session_of_no_file_has_no_original(as_operator, session):
    answer = as_operator.get(f"/sessions/{session.pk}/export")
    assert (answer.status_code, error_of(answer)["code"]) == (404, "not_found")
