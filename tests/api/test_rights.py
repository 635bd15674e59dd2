"""Who may do what by the API: roles and scopes together, and what is hidden from whoever has no role."""

import uuid

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from sessions_app.api.root import api
from sessions_app.models import Event
from sessions_app.permissions import ACTIONS_BY_ROLE, ACTIONS_BY_SCOPE, Action, Scope
from tests.api.conftest import ALL_SCOPES, Api, error_of, token_of
from tests.api.scenes import compacted_session

NOBODY = uuid.UUID("01890000-0000-7000-8000-000000000000")
CALLS: dict[str, tuple[str, str, object, Action, set[int]]] = {
    "list sessions": ("GET", "/sessions", None, Action.READ, {200}),
    "create a session": ("POST", "/sessions", {}, Action.MESSAGE, {201}),
    "read a session": ("GET", "/sessions/{session}", None, Action.READ, {200}),
    "edit a session": ("PATCH", "/sessions/{session}", {"title": "New"}, Action.EDIT, {200}),
    "choose a window": ("PATCH", "/sessions/{session}", {"context_window": 9000}, Action.CHOOSE_MODEL, {200}),
    "bind a runner": ("PATCH", "/sessions/{session}", {"runner": "none"}, Action.BIND_RUNNER, {400}),
    "items": ("GET", "/sessions/{session}/items", None, Action.READ, {200}),
    "view": ("GET", "/sessions/{session}/view", None, Action.READ, {200}),
    "compactions": ("GET", "/sessions/{session}/compactions", None, Action.READ, {200}),
    "one compaction": ("GET", "/sessions/{session}/compactions/{compaction}", None, Action.READ, {200}),
    "preview": ("POST", "/sessions/{session}/compactions/preview", {}, Action.COMPACT, {200}),
    "cancel": ("POST", "/sessions/{session}/compactions/{compaction}/cancel", None, Action.CANCEL, {200}),
    "commit": ("POST", "/sessions/{session}/compactions/{compaction}/commit", {}, Action.DRAFT, {409}),
    "discard": ("POST", "/sessions/{session}/compactions/{compaction}/discard", None, Action.DRAFT, {409}),
    "restore": ("POST", "/sessions/{session}/compactions/{compaction}/restore", {}, Action.REVERT, {200}),
    "revert": ("POST", "/sessions/{session}/compactions/{compaction}/revert", {}, Action.REVERT, {200, 409}),
    "export": ("GET", "/sessions/{session}/export?format=jsonl", None, Action.EXPORT, {200}),
    "list imports": ("GET", "/imports", None, Action.IMPORT, {200}),
    "events": ("GET", "/events", None, Action.AUDIT, {200}),
    "export events": ("GET", "/events/export", None, Action.AUDIT, {200}),
    "verify events": ("GET", "/events/verify", None, Action.AUDIT, {200}),
}
ROLES = ("operator", "support", "admin")


@pytest.fixture
def people(operator, support, admin) -> dict[str, User]:
    return {"operator": operator, "support": support, "admin": admin}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_takes_a_role_and_a_scope(people, name):
    method, address, body, action, good = CALLS[name]
    session, compaction = compacted_session(8)
    address = address.format(session=session.pk, compaction=compaction.pk)
    for role in ROLES:
        for scope in Scope:
            answer = Api(token_of(people[role], scope, name=f"{role} {scope}")).call(method, address, body)
            is_creation = name == "create a session"
            may = action in ACTIONS_BY_ROLE[role] & ACTIONS_BY_SCOPE[scope]
            may |= is_creation and Action.INGEST in ACTIONS_BY_ROLE[role] & ACTIONS_BY_SCOPE[scope]
            assert answer.status_code in (good if may else {403}), (role, scope, answer.content)
            if not may:
                assert error_of(answer)["code"] == "forbidden"


@pytest.mark.parametrize("name", CALLS)
def test_without_a_role_there_is_nothing_and_without_a_name_nobody(outsider, name):
    method, address, body, _, _ = CALLS[name]
    session, compaction = compacted_session(4)
    address = address.format(session=session.pk, compaction=compaction.pk)
    hidden = Api(token_of(outsider, *ALL_SCOPES)).call(method, address, body)
    assert (hidden.status_code, error_of(hidden)["code"]) == (404, "not_found")
    unknown = Api().call(method, address, body)
    assert (unknown.status_code, error_of(unknown)["code"]) == (401, "unauthorized")


def test_what_is_not_there_looks_the_same_as_what_is_hidden(as_admin, outsider):
    session, _ = compacted_session(4)
    outside = Api(token_of(outsider, *ALL_SCOPES))
    there, nowhere = (outside.get(f"/sessions/{named}") for named in (session.pk, NOBODY))
    assert {**error_of(there), "request_id": ""} == {**error_of(nowhere), "request_id": ""}
    missing = as_admin.get(f"/sessions/{NOBODY}")
    assert (missing.status_code, error_of(missing)["code"]) == (404, "not_found")


def test_a_refusal_says_what_is_missing_and_is_an_event(support, session):
    answer = Api(token_of(support, "read")).patch(f"/sessions/{session.pk}", {"title": "x"})
    assert "takes the scope steer; it has read" in error_of(answer)["message"]
    event = Event.objects.get(type="access.refused")
    assert (event.actor_kind, event.actor_name, event.result, event.target_id) == ("token", "ana", "refused", str(session.pk))
    session.refresh_from_db()
    assert session.title == "A session"


def test_a_right_that_is_taken_away_is_gone_with_the_next_call(support, session):
    token = Api(token_of(support, *ALL_SCOPES))
    assert token.patch(f"/sessions/{session.pk}", {"title": "One"}).status_code == 200
    support.groups.clear()
    assert token.patch(f"/sessions/{session.pk}", {"title": "Two"}).status_code == 404


def test_every_action_belongs_to_exactly_one_scope():
    for action in Action:
        assert [scope for scope in Scope if action in ACTIONS_BY_SCOPE[scope]].__len__() == 1, action


def calls_that_change() -> list[tuple[str, str]]:
    document = api.get_openapi_schema(path_prefix="/v1/")
    return [(method, path) for path, methods in document["paths"].items() for method in methods if method != "get"]


@pytest.mark.parametrize(("method", "path"), calls_that_change())
def test_a_browser_needs_its_csrf_token_for_each_call_that_changes_something(admin, session, method, path):
    client = Client(enforce_csrf_checks=True)
    client.force_login(admin)
    address = path.format(session_id=session.pk, compaction_id=NOBODY, run_id=NOBODY, named=NOBODY)
    sent = {"file": SimpleUploadedFile("a.json", b"{}")} if path == "/v1/imports" else None

    def ask(**headers: str) -> int:
        if sent:
            sent["file"].seek(0)
            return client.post(address, sent, headers=headers).status_code
        return client.generic(method.upper(), address, "{}", content_type="application/json", headers=headers).status_code

    assert ask() == 403
    assert ask(**{"X-CSRFToken": "x" * 32}) == 403
    client.get("/")
    client.cookies["csrftoken"] = token = "a" * 32
    assert ask(**{"X-CSRFToken": token}) != 403


def test_a_token_needs_none(as_support):
    assert as_support.post("/sessions", {}).status_code == 201
