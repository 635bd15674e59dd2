"""Changing one's own password, of one's own will or because somebody else made it."""

import pytest
from django.test import Client

from sessions_app.models import Event, OneTimePassword
from sessions_app.permissions import command_actor
from sessions_app.services.accounts import create_user
from tests.conftest import PASSWORD

NEW = "another horse battery"


def change(client: Client, old: str = PASSWORD, new: str = NEW, again: str | None = None, **more):
    return client.post("/password/", {"old": old, "new": new, "again": new if again is None else again, **more})


def is_in(client: Client) -> bool:
    return client.get("/password/").status_code == 200


@pytest.fixture
def page(client: Client, support) -> Client:
    client.force_login(support)
    return client


def test_the_new_password_works_the_old_one_does_not_and_an_event_says_so(page: Client, support):
    assert change(page, next="/imports/")["Location"] == "/imports/"
    support.refresh_from_db()
    assert support.check_password(NEW)
    event = Event.objects.get(type="user.password_changed")
    assert (event.actor_name, event.target_id) == ("ana", str(support.pk))
    assert NEW not in str(list(Event.objects.values()))


def test_other_browsers_are_signed_out_and_this_one_stays(page: Client, support):
    other = Client()
    other.force_login(support)
    change(page)
    assert is_in(page)
    assert not is_in(other)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"old": "wrong"}, "The old password is not right."),
        ({"again": "something else entirely"}, "typed in two ways"),
        ({"new": "short"}, "too short"),
        ({"new": "password123"}, "too common"),
        ({"new": PASSWORD}, "the password that you have already"),
        ({"new": ""}, "is missing"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_is_changed(page: Client, support, given, says):
    response = change(page, **given)
    assert response.status_code == 422
    assert says in response.content.decode()
    assert "Nothing was changed." in response.content.decode()
    support.refresh_from_db()
    assert support.check_password(PASSWORD)
    assert PASSWORD not in response.content.decode()


def test_guessing_the_old_password_is_throttled_as_the_sign_in_is(page: Client, support):
    for _ in range(5):
        change(page, old="wrong")
    assert "Too many wrong passwords" in change(page).content.decode()
    support.refresh_from_db()
    assert support.check_password(PASSWORD)


def test_a_one_time_password_opens_nothing_but_its_change(client: Client, db):
    create_user(actor=command_actor(), name="maria", role="support", password="made for you 1", is_one_time=True)
    client.post("/sign-in/", {"username": "maria", "password": "made for you 1"})
    assert client.get("/imports/?a=b")["Location"] == "/password/?next=%2Fimports%2F%3Fa%3Db"
    part = client.get("/", headers={"HX-Request": "true", "HX-Current-URL": "http://testserver/"})
    assert (part["HX-Redirect"], part.content) == ("/password/?next=%2F", b"")
    assert "made by somebody else" in client.get("/password/").content.decode()
    assert change(client, old="made for you 1", next="/imports/")["Location"] == "/imports/"
    assert client.get("/imports/").status_code == 200
    assert not OneTimePassword.objects.exists()
