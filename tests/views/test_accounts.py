"""Signing in and out, and what is written down about it."""

import pytest
from django.test import Client

from sessions_app.events.log import SECURITY
from sessions_app.events.types import EventType
from sessions_app.models import Event
from tests.conftest import PASSWORD


def security_events() -> list[tuple[str, str, str, str]]:
    return list(Event.objects.filter(stream=SECURITY).values_list("type", "result", "actor_name", "target_id"))


def sign_in(client: Client, name: str = "ana", password: str = PASSWORD, **more: str):
    return client.post("/sign-in/", {"username": name, "password": password, **more})


def test_a_right_password_leads_to_where_one_wanted_to_go_and_is_an_event(client: Client, support):
    response = sign_in(client, next="/imports/?x=1")
    assert response["Location"] == "/imports/?x=1"
    assert security_events() == [(EventType.SIGNED_IN, "allowed", "ana", str(support.pk))]


@pytest.mark.parametrize("address", ["https://evil.example/", "//evil.example/", "javascript:alert(1)", "/\\evil.example", ""])
def test_no_address_outside_this_site_is_followed(client: Client, support, address):
    assert sign_in(client, next=address)["Location"] == "/"


@pytest.mark.parametrize(("name", "known"), [("ana", True), ("nobody", False)])
def test_a_wrong_password_says_the_same_for_known_and_unknown_names(client: Client, support, name, known):
    response = sign_in(client, name, "wrong")
    page = response.content.decode()
    assert response.status_code == 422
    assert "Name and password do not match." in page
    assert security_events() == [(EventType.SIGN_IN_FAILED, "failed", "", str(support.pk) if known else "")]


def test_what_was_typed_as_a_name_is_not_kept(client: Client, support):
    sign_in(client, "my secret passphrase", "x")
    assert "passphrase" not in str(Event.objects.values().get(stream=SECURITY))


def test_an_account_that_was_switched_off_cannot_sign_in(client: Client, support):
    support.is_active = False
    support.save()
    assert sign_in(client).status_code == 422


def test_signing_out_needs_a_post_and_is_an_event(client: Client, support):
    client.force_login(support)
    assert client.get("/sign-out/").status_code == 405
    response = client.post("/sign-out/")
    assert response["Location"] == "/sign-in/"
    assert client.get("/").status_code == 302
    assert (EventType.SIGNED_OUT, "allowed", "ana", str(support.pk)) in security_events()


def test_a_part_that_is_asked_for_after_the_session_ended_sends_the_whole_page_to_the_sign_in(client: Client):
    response = client.get("/", headers={"HX-Request": "true", "HX-Current-URL": "http://testserver/?q=a"}, follow=True)
    assert response["HX-Redirect"] == "/sign-in/?next=%2F%3Fq%3Da&ended=1"
    assert "What was pressed last was not done" in client.get(response["HX-Redirect"]).content.decode()
    assert "What was pressed last" not in client.get("/sign-in/").content.decode()


def test_a_form_from_elsewhere_changes_nothing(support):
    client = Client(enforce_csrf_checks=True)
    response = sign_in(client)
    assert response.status_code == 403
    assert "nothing was changed" in response.content.decode()
    assert security_events() == []
