"""What strangers send: whatever it is, an error in the shape of the API and nothing stored, and never a failure of the server."""

import json

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient, Client

from sessions_app.models import Session
from sessions_app.services import tokens
from tests.api.conftest import ALL_SCOPES, Api, error_of, token_of
from tests.api.scenes import compacted_session

DEEP = "[" * 100_000 + "]" * 100_000
BODIES: dict[str, str | bytes] = {
    "nothing": "",
    "no JSON": "{",
    "half a string": '{"title": "\\ud8',
    "NaN": '{"context_window": NaN}',
    "infinity": '{"context_window": 1e999}',
    "a number without an end": '{"context_window": ' + "9" * 5_000 + "}",
    "deep": DEEP,
    "deep inside": '{"initial_items": ' + DEEP + "}",
    "deep arguments": '{"initial_items": [{"type": "function_call", "name": "a", "call_id": "b", "arguments": {"a": ' + DEEP + "}}]}",
    "an array": "[]",
    "a string": '"title"',
    "null": "null",
    "no UTF-8": b'{"title": "\xff\xfe"}',
    "UTF-16": '{"title": "a"}'.encode("utf-16"),
    "a field of another type": '{"title": {"$ne": null}}',
    "labels of numbers": '{"labels": [1, 2]}',
    "a NUL in a label": '{"labels": ["a\\u0000b"]}',
    "many labels": json.dumps({"labels": [str(number) for number in range(1_000)]}),
    "items that are none": '{"initial_items": [1, null, "a"]}',
    "an item without a type": '{"initial_items": [{}]}',
    "content of another type": '{"initial_items": [{"type": "message", "role": "user", "content": {"a": 1}}]}',
    "a parent that is hidden": '{"parent_session_id": "01890000-0000-7000-8000-000000000000"}',
    "a name of a field that is none": '{"__class__": "Session"}',
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_is_none_begins_nothing(as_support, name):
    answer = as_support.call("POST", "/sessions", BODIES[name])
    assert answer.status_code in {400, 404}, answer.content
    assert error_of(answer)["code"] in {"invalid_input", "not_found"}
    assert not Session.objects.exists()


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_is_none_changes_nothing(as_support, session, name):
    answer = as_support.call("PATCH", f"/sessions/{session.pk}", BODIES[name])
    assert (answer.status_code, error_of(answer)["code"]) == (400, "invalid_input")
    session.refresh_from_db()
    assert (session.title, session.labels, session.window_override) == ("A session", [], None)


def test_halves_of_characters_and_nul_are_stored_as_what_can_be_stored(as_support):
    told = as_support.call("POST", "/sessions", '{"title": "a\\ud83d b\\u0000c \\ud83d\\ude00"}')
    assert told.status_code == 201, told.content
    assert told.json()["title"] == "a\N{REPLACEMENT CHARACTER} b\N{REPLACEMENT CHARACTER}c \N{GRINNING FACE}"
    item = {"type": "function_call_output", "call_id": "a\x00b", "output": {"a": "\x00", "b": [1, None]}}
    made = as_support.post("/sessions", {"initial_items": [item]}).json()
    [kept] = as_support.get(f"/sessions/{made['id']}/items").json()["data"]
    assert (kept["call_id"], kept["output"]) == ("a\N{REPLACEMENT CHARACTER}b", '{"a":"\\u0000","b":[1,null]}')


@pytest.mark.parametrize("address", ["/sessions", "/sessions/{session}", "/imports"])
def test_ten_megabytes_are_refused_without_being_read(as_support, session, address):
    method = "PATCH" if "{" in address else "POST"
    answer = as_support.call(method, address.format(session=session.pk), b'{"title": "' + b"x" * 10_000_000 + b'"}')
    expected = {400} if address == "/imports" else {413}
    assert answer.status_code in expected, answer.content
    assert error_of(answer)["code"] == ("invalid_input" if address == "/imports" else "payload_too_large")


def test_a_body_beyond_what_django_takes_is_too_large(as_support, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100
    answer = as_support.post("/sessions", {"title": "x" * 150})
    assert (answer.status_code, error_of(answer)["code"]) == (413, "payload_too_large")


@pytest.mark.parametrize("name", ["query", "agent", "label", "project", "runner", "model"])
@pytest.mark.parametrize("value", ["%00", "%ff", "%F0%9F", "%ED%A0%80", "x" * 501])
def test_a_filter_of_any_text_is_answered(as_support, make_session, name, value):
    make_session()
    answer = as_support.get(f"/sessions?{name}={value}")
    if value == "%00" or len(value) > 500:
        assert (answer.status_code, error_of(answer)["field"]) == (400, name)
    else:
        assert (answer.status_code, answer.json()["data"]) == (200, [])


@pytest.mark.parametrize("name", ["stream", "actor", "type", "target", "request", "gesture", "address", "q"])
def test_a_filter_of_the_log_takes_no_nul(as_admin, name):
    answer = as_admin.get(f"/events?{name}=%00")
    assert (answer.status_code, error_of(answer)["field"]) == (400, name)
    assert as_admin.get(f"/events?{name}=%ED%A0%80").status_code == 200


@pytest.mark.parametrize("header", ["Idempotency-Key", "X-Gesture-Id", "X-Request-Id", "Content-Type", "Last-Event-ID"])
@pytest.mark.parametrize("value", ["\x00", "é", "x" * 300, "' OR 1=1 --", "\udc80"])
def test_headers_of_any_text_are_answered(as_support, header, value):
    sent = value.encode("utf-8", "surrogateescape").decode("latin-1")
    answer = as_support.client.generic(
        "POST", "/v1/sessions", "{}", content_type="application/json", headers=as_support.headers | {header: sent}
    )
    assert answer.status_code in {201, 400}
    if answer.status_code == 400:
        assert error_of(answer)["code"] == "invalid_input"


def test_a_host_that_is_none_is_refused_in_the_same_shape(db):
    answer = Client().get("/v1/sessions", headers={"Host": "evil.example"})
    assert (answer.status_code, error_of(answer)["code"]) == (400, "invalid_input")


@pytest.mark.django_db(transaction=True)
async def test_over_asgi_it_is_the_same(support):
    secret = await sync_to_async(token_of)(support, *ALL_SCOPES)
    session, _ = await sync_to_async(compacted_session)(6)
    client, headers = AsyncClient(), {"Authorization": f"Bearer {secret}"}
    view = await client.get(f"/v1/sessions/{session.pk}/view", headers=headers)
    assert view.status_code == 200
    told = json.loads(b"".join([chunk async for chunk in view.streaming_content]))
    assert told["object"] == "view"
    assert len(told["messages"]) > 1
    assert error_of(await client.get("/v1/nothing", headers=headers))["code"] == "not_found"
    assert error_of(await client.put("/v1/sessions", headers=headers))["code"] == "method_not_allowed"
    assert error_of(await client.get("/v1/sessions"))["code"] == "unauthorized"
    made = await client.post("/v1/sessions", data="{}", content_type="application/json", headers=headers | {"Idempotency-Key": "k"})
    assert made.status_code == 201


def test_a_secret_of_any_text_is_just_wrong(session):
    for secret in ("\x00", "é", "x" * 100_000, "\udc80"):
        with pytest.raises((tokens.Unauthorized, tokens.TooManyFailures)):
            tokens.authenticate(secret)
    assert Api("x" * 8_000).get(f"/sessions/{session.pk}").status_code == 401


@pytest.mark.parametrize(
    "content_type", ["multipart/form-data", "multipart/form-data; boundary=é", "multipart/mixed; boundary=x", "text/plain", ""]
)
@pytest.mark.parametrize("body", ["", "--x", '--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'])
def test_an_upload_that_is_none_is_refused(as_support, content_type, body):
    answer = as_support.client.generic("POST", "/v1/imports", body, content_type=content_type, headers=as_support.headers)
    assert (answer.status_code, error_of(answer)["code"]) == (400, "invalid_input")
