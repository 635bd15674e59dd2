"""The page of users: who may sign in, changed by admins alone, each change an event with before and after."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from sessions_app.models import Event
from sessions_app.permissions import role_of
from tests.conftest import PASSWORD, make_user


@pytest.fixture
def page(client: Client, admin) -> Client:
    client.force_login(admin)
    return client


def fresh(user: User) -> User:
    return User.objects.get(pk=user.pk)


def shown_password(response) -> str:
    return re.search(r"<code>([^<]+)</code>", response.content.decode()).group(1)


def test_everybody_is_listed_with_role_last_sign_in_and_state(page: Client, support, outsider):
    text = page.get("/users/").content.decode()
    for told in ("ana", "support", "otto", "none: sees nothing", "never", "active", "ada"):
        assert told in text


def test_a_new_user_gets_a_one_time_password_that_is_shown_once(page: Client):
    response = page.post("/users/", {"name": "maria", "role": "support"})
    password = shown_password(response)
    assert "no-store" in response["Cache-Control"]
    user = User.objects.get(username="maria")
    assert role_of(user) == "support"
    assert password not in str(list(Event.objects.values()))
    assert "one-time password" in page.get("/users/").content.decode()
    browser = Client()
    browser.post("/sign-in/", {"username": "maria", "password": password})
    assert browser.get("/")["Location"].startswith("/password/")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"name": "ana", "role": "support"}, "already a user"),
        ({"name": "", "role": "support"}, "needs a name"),
        ({"name": "ma ria", "role": "support"}, "valid username"),
        ({"name": "maria", "role": "emperor"}, "no role"),
    ],
)
def test_a_bad_new_user_is_refused_in_words(page: Client, support, given, says):
    response = page.post("/users/", given)
    assert response.status_code == 422
    assert says in response.content.decode()
    assert "Nothing was changed." in response.content.decode()
    assert User.objects.count() == 2


def test_a_role_is_changed_at_once_and_the_event_says_before_and_after(page: Client, support):
    assert page.post(f"/users/{support.pk}/role/", {"role": "operator"}).status_code == 302
    assert role_of(fresh(support)) == "operator"
    event = Event.objects.get(type="user.role_changed")
    assert (event.before, event.after, event.actor_name) == ({"role": "support"}, {"role": "operator"}, "ada")
    page.post(f"/users/{support.pk}/role/", {"role": "operator"})
    assert Event.objects.filter(type="user.role_changed").count() == 1


def test_an_account_is_switched_off_and_on_again(page: Client, support):
    browser = Client()
    browser.force_login(support)
    page.post(f"/users/{support.pk}/active/", {"active": "off"})
    assert browser.get("/").status_code == 302
    assert browser.post("/sign-in/", {"username": "ana", "password": PASSWORD}).status_code == 422
    assert "switched off" in page.get("/users/").content.decode()
    page.post(f"/users/{support.pk}/active/", {"active": "on"})
    assert browser.post("/sign-in/", {"username": "ana", "password": PASSWORD}).status_code == 302
    assert [(event.before, event.after) for event in Event.objects.filter(type="user.switched").order_by("seq")] == [
        ({"active": True}, {"active": False}),
        ({"active": False}, {"active": True}),
    ]


def test_a_reset_password_ends_the_sign_ins_and_has_to_be_changed(page: Client, support):
    browser = Client()
    browser.force_login(support)
    password = shown_password(page.post(f"/users/{support.pk}/password/"))
    assert browser.get("/")["Location"].startswith("/sign-in/")
    browser.post("/sign-in/", {"username": "ana", "password": password})
    assert browser.get("/")["Location"].startswith("/password/")
    assert Event.objects.get(type="user.password_reset").target_id == str(support.pk)


@pytest.mark.parametrize(("act", "given"), [("role", {"role": "operator"}), ("active", {"active": "off"}), ("password", {})])
def test_nobody_takes_their_own_right_away(page: Client, admin, act, given):
    make_user("second", "admins")
    response = page.post(f"/users/{admin.pk}/{act}/", given)
    assert response.status_code == 422
    assert "Nothing was changed" in response.content.decode()
    assert role_of(fresh(admin)) == "admin"
    assert fresh(admin).is_active
    assert fresh(admin).check_password(PASSWORD)


def test_the_last_admin_stays_whoever_asks(db, admin):
    from sessions_app.permissions import command_actor
    from sessions_app.services.accounts import AccountError, change_role, switch_user

    make_user("gone", "admins").delete()
    User.objects.filter(username=make_user("off", "admins").username).update(is_active=False)
    with pytest.raises(AccountError, match="the last admin"):
        change_role(actor=command_actor(), user_id=admin.pk, role="support")
    with pytest.raises(AccountError, match="the last admin"):
        switch_user(actor=command_actor(), user_id=admin.pk, is_active=False)
    assert role_of(fresh(admin)) == "admin"


@pytest.mark.parametrize("address", ["/users/", "/users/1/", "/users/unlock/", "/users/1/role/", "/users/1/active/", "/users/1/password/"])
@pytest.mark.parametrize(("who", "status"), [("support", 403), ("outsider", 404)])
def test_only_admins_come_here_and_a_refusal_is_an_event(client: Client, request, address, who, status):
    client.force_login(request.getfixturevalue(who))
    ask = client.get if address in {"/users/", "/users/1/"} else client.post
    assert ask(address).status_code == status
    assert Event.objects.get(type="access.refused").payload["action"] == "manage_users"


def test_a_user_that_is_not_there_is_answered_404(page: Client):
    assert page.get("/users/4711/").status_code == 404
    assert page.post("/users/4711/role/", {"role": "support"}).status_code == 404
    event = Event.objects.get(type="access.refused")
    assert (event.reason, event.target_kind, event.target_id) == ("no such user", "user", "4711")
