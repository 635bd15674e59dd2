"""The page of tokens: made there and shown once, revoked there, for admins alone."""

import re

import pytest
from django.test import Client

from sessions_app.models import AccessToken, Event
from tests.api.conftest import Api, token_of

FORM = {"name": "ci", "user": "ana", "scopes": ["read", "steer"], "days": "30"}


@pytest.fixture
def admin_page(client: Client, admin) -> Client:
    client.force_login(admin)
    return client


def test_a_token_is_made_shown_once_and_works(admin_page, support, make_session):
    answer = admin_page.post("/tokens/", FORM)
    assert answer.status_code == 200
    secret = re.search(r"<code>(plm_[\w-]+)</code>", answer.content.decode())[1]
    token = AccessToken.objects.get()
    assert (token.name, token.owner, token.scopes, token.created_by) == ("ci", support, ["read", "steer"], "ada")
    assert secret not in admin_page.get("/tokens/").content.decode()
    assert Api(secret).get(f"/sessions/{make_session().pk}").status_code == 200
    event = Event.objects.get(type="token.created")
    assert (event.stream, event.actor_name, event.target_id) == ("security", "ada", str(token.pk))
    assert event.after["scopes"] == ["read", "steer"]
    assert secret not in str(Event.objects.values_list("after", "payload"))


def test_a_token_is_revoked_and_opens_nothing_more(admin_page, support, make_session):
    secret = token_of(support, "read", name="ci")
    token = AccessToken.objects.get()
    answer = admin_page.post(f"/tokens/{token.pk}/revoke/", follow=True)
    assert "ci is revoked" in answer.content.decode()
    assert Api(secret).get(f"/sessions/{make_session().pk}").status_code == 401
    event = Event.objects.get(type="token.revoked")
    assert (event.before["revoked"], event.after["revoked"]) == (False, True)
    assert admin_page.post(f"/tokens/{token.pk}/revoke/").status_code == 404
    assert Event.objects.filter(type="token.revoked").count() == 1


def test_the_audit_log_says_by_which_token_somebody_acted(admin_page, support, make_session):
    session = make_session()
    Api(token_of(support, "steer", name="nightly job")).patch(f"/sessions/{session.pk}", {"title": "New"})
    page = admin_page.get("/audit/").content.decode()
    assert "ana by token nightly job" in page
    assert "token nightly job" in admin_page.get("/audit/?action=token.created").content.decode()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": ""}, "needs a name"),
        ({"name": "taken"}, "already a token"),
        ({"name": "a\u202eb"}, "printable characters"),
        ({"user": "nobody"}, "no active user"),
        ({"scopes": []}, "at least one scope"),
        ({"scopes": ["all"]}, "no scope"),
        ({"days": "9999999"}, "valid choice"),
    ],
)
def test_what_makes_no_token_is_said_and_nothing_is_stored(admin_page, support, change, words):
    token_of(support, "read", name="taken")
    answer = admin_page.post("/tokens/", FORM | change)
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert AccessToken.objects.count() == 1


def test_the_page_is_for_admins(client, support, admin):
    token_of(support, "read")
    client.force_login(support)
    pk = AccessToken.objects.get().pk
    assert client.get("/tokens/").status_code == 403
    assert client.post("/tokens/", FORM).status_code == 403
    assert client.post(f"/tokens/{pk}/revoke/").status_code == 403
    assert AccessToken.objects.filter(revoked_at=None).count() == 1


def test_the_list_costs_the_same_however_many_there_are(admin_page, support, django_assert_max_num_queries):
    for number in range(20):
        token_of(support, "read", name=f"token {number}")
    with django_assert_max_num_queries(12):
        page = admin_page.get("/tokens/").content.decode()
    assert page.count("Revoke<span") == 20


def test_the_page_of_the_api_lists_every_call(admin_page):
    page = admin_page.get("/v1/docs").content.decode()
    for path in ("/v1/sessions", "/v1/sessions/{session_id}/items", "/v1/sessions/{session_id}/view", "/v1/imports", "/v1/events/verify"):
        assert f">{path}</code>" in page
    assert "<script" not in re.sub(r"<script[^>]*\bsrc=[^>]*>", "", page)


def test_the_page_of_the_api_is_for_people_who_are_signed_in(client, db):
    assert client.get("/v1/docs").headers["Location"].startswith("/sign-in/")
