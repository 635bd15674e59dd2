"""Imports by the API: a file goes in, and what came of it is told with line numbers."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, override_settings

from sessions_app.models import Event, ImportRun, Session
from sessions_app.services.imports import run_import
from tests.api.conftest import Api, error_of
from tests.api.scenes import DATA


def upload(api: Api, data: bytes, name: str = "request.json", **headers: str):
    sent = {key.replace("_", "-"): value for key, value in headers.items()}
    file = SimpleUploadedFile(name, data)
    return api.client.post("/v1/imports", {"file": file}, headers=api.headers | sent)


def test_a_file_goes_in_and_what_came_of_it_is_told(as_operator):
    data = (DATA / "anthropic_request.json").read_bytes()
    answer = upload(as_operator, data)
    assert answer.status_code == 202, answer.content
    run = answer.json()
    assert (run["object"], run["state"], run["name"]) == ("import", "queued", "request.json")
    assert answer.headers["Location"] == f"/v1/imports/{run['id']}"
    run_import(run["id"])
    told = as_operator.get(f"/imports/{run['id']}").json()
    assert (told["state"], told["files"][0]["state"]) == ("completed", "new")
    session = Session.objects.get()
    assert told["files"][0]["session_id"] == str(session.pk)
    assert as_operator.get("/imports").json()["data"][0]["id"] == run["id"]
    report = as_operator.get(f"/imports/{run['id']}?report={session.pk}").json()["report"]
    assert report["entries"] == session.entry_count
    original = as_operator.get(f"/sessions/{session.pk}/export")
    assert b"".join(original.streaming_content) == data
    assert list(Event.objects.filter(type="import.requested").values_list("actor_kind", flat=True)) == ["token"]


def test_problems_are_told_with_their_lines(as_operator):
    lines = (DATA / "openai_conversations.jsonl").read_bytes() + b"{ no json\n"
    run = upload(as_operator, lines, "chat.jsonl").json()
    run_import(run["id"])
    file = as_operator.get(f"/imports/{run['id']}").json()["files"][-1]
    session = file["session_id"]
    assert session, file
    report = as_operator.get(f"/imports/{run['id']}?report={session}").json()["report"]
    assert all("line" in problem for problem in report["problems"])


def test_a_key_makes_one_run_of_the_same_file(as_operator):
    data = (DATA / "anthropic_request.json").read_bytes()
    first = upload(as_operator, data, Idempotency_Key="k")
    again = upload(as_operator, data, Idempotency_Key="k")
    assert first.json() == again.json()
    other = upload(as_operator, data + b" ", Idempotency_Key="k")
    assert (other.status_code, error_of(other)["code"]) == (409, "conflict")
    assert ImportRun.objects.count() == 1


def test_a_run_that_waits_is_cancelled(as_operator):
    run = upload(as_operator, b"{}").json()
    assert as_operator.post(f"/imports/{run['id']}/cancel").json()["state"] == "cancelled"


@override_settings(UPLOAD_MAX_BYTES=10)
def test_what_is_no_file_or_too_large_is_refused(as_operator):
    assert error_of(upload(as_operator, b""))["field"] == "file"
    assert error_of(upload(as_operator, b"x" * 11))["code"] == "payload_too_large"
    missing = as_operator.client.post("/v1/imports", {"file": "text"}, headers=as_operator.headers)
    assert (missing.status_code, error_of(missing)["field"]) == (400, "file")
    assert not ImportRun.objects.exists()


def test_a_run_that_is_none_is_not_found(as_operator, session):
    answer = as_operator.get(f"/imports/{session.pk}")
    assert (answer.status_code, error_of(answer)["code"]) == (404, "not_found")


@pytest.mark.parametrize("named", ["nonsense", "01890000-0000-7000-8000-000000000000"])
def test_a_report_is_of_a_session_of_the_run(as_operator, named):
    run = upload(as_operator, b"{}").json()
    answer = as_operator.get(f"/imports/{run['id']}?report={named}")
    assert (answer.status_code, error_of(answer)["field"]) == (400, "report")


def test_a_browser_sends_its_csrf_token_along(operator):
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator)
    answer = client.post("/v1/imports", {"file": SimpleUploadedFile("a.json", b"{}")})
    assert (answer.status_code, error_of(answer)["code"]) == (403, "forbidden")
