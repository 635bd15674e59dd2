"""Accounts and the command that makes them."""

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from sessions_app.events.log import SECURITY
from sessions_app.models import Event
from sessions_app.permissions import ActionRefused, command_actor, role_of
from sessions_app.services.accounts import AccountError, create_user

PASSWORD = "a long enough phrase"


def test_an_account_has_the_role_that_it_was_made_with_and_an_event_says_who_made_it(db):
    user = create_user(actor=command_actor(), name="maria", role="support", password=PASSWORD)
    assert role_of(User.objects.get(pk=user.pk)) == "support"
    event = Event.objects.get(stream=SECURITY)
    assert (event.type, event.target_id, event.actor_kind) == ("user.created", str(user.pk), "cli")
    assert PASSWORD not in str(event.payload)


@pytest.mark.parametrize(
    ("name", "role", "password", "says"),
    [
        ("maria", "emperor", PASSWORD, "no role 'emperor'"),
        ("olga", "operator", PASSWORD, "already a user 'olga'"),
        ("maria", "operator", "short", "too short"),
        ("ma ria", "operator", PASSWORD, "valid username"),
    ],
)
def test_a_bad_account_is_refused_in_words_and_leaves_nothing_behind(operator, name, role, password, says):
    with pytest.raises(AccountError, match=says) as refusal:
        create_user(actor=command_actor(), name=name, role=role, password=password)
    assert "Nothing was changed." in str(refusal.value)
    assert User.objects.count() == 1


class MeanwhileTaken:
    """A rule for passwords during whose check somebody else takes the name, as a second click of the same form does."""

    def validate(self, password, user):
        User.objects.create(username=user.username)


def test_a_name_that_is_taken_while_the_password_is_checked_is_refused_in_words(db, settings):
    settings.AUTH_PASSWORD_VALIDATORS = [{"NAME": f"{__name__}.MeanwhileTaken"}]
    with pytest.raises(AccountError, match="already a user 'nora'"):
        create_user(actor=command_actor(), name="nora", role="operator", password=PASSWORD)
    assert User.objects.filter(username="nora").count() == 1
    assert not Event.objects.filter(type="user.created").exists()


def test_an_operator_may_not_make_accounts(operator):
    with pytest.raises(ActionRefused):
        create_user(actor=command_actor("olga"), name="maria", role="admin", password=PASSWORD)
    assert Event.objects.get().result == "refused"
    assert not User.objects.filter(username="maria").exists()


def test_the_command_prints_the_password_once_and_it_works(db, client, capsys):
    call_command("create_user", "maria", "--role", "operator")
    password = capsys.readouterr().out.strip().splitlines()[-1].removeprefix("Password, shown only now: ")
    assert client.post("/sign-in/", {"username": "maria", "password": password})["Location"] == "/"


def test_the_command_says_why_it_refuses(operator):
    with pytest.raises(CommandError, match="already a user"):
        call_command("create_user", "olga", "--role", "operator")
