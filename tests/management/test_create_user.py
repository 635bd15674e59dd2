"""`manage.py create_user`: three ways to a password."""

import io
import json

import pytest
from django.contrib.auth.models import User

from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.models import Event
from tests.management.commands import run

pytestmark = pytest.mark.django_db

STRONG = "correct horse battery"


def answers(monkeypatch, *given: str) -> None:
    left = iter(given)
    monkeypatch.setattr("getpass.getpass", lambda _prompt: next(left))


def test_a_password_that_is_made_is_shown_once_and_works():
    made = json.loads(run("create_user", "maria", role="support", as_json=True)[0])
    assert User.objects.get(username="maria").check_password(made["password"])
    assert made | {"password": ""} == {"object": "user", "id": made["id"], "name": "maria", "role": "support", "password": ""}


def test_a_password_from_standard_input_is_its_first_line_and_never_shown(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{STRONG}\nmore\n"))
    out, err, _ = run("create_user", "maria", role="support", password_stdin=True)
    assert User.objects.get(username="maria").check_password(STRONG)
    assert STRONG not in out + err


def test_a_password_that_is_asked_for_is_asked_for_twice(monkeypatch):
    answers(monkeypatch, STRONG, "another")
    with pytest.raises(CommandFailure, match=r"differ\. Nothing was changed"):
        run("create_user", "maria", role="support", ask_password=True)
    assert not User.objects.exists()
    answers(monkeypatch, STRONG, STRONG)
    run("create_user", "maria", role="support", ask_password=True)
    assert User.objects.get().check_password(STRONG)


@pytest.mark.parametrize("given", ["", "\n", "short\n"])
def test_a_password_that_will_not_do_makes_no_account(monkeypatch, given):
    monkeypatch.setattr("sys.stdin", io.StringIO(given))
    with pytest.raises(CommandFailure, match="Nothing was changed") as failure:
        run("create_user", "maria", role="support", password_stdin=True)
    assert failure.value.end == Exit.USAGE
    assert not User.objects.exists()


def test_whoever_may_not_is_refused_before_a_password_is_asked_for(monkeypatch, support):
    answers(monkeypatch)
    with pytest.raises(CommandFailure) as failure:
        run("create_user", "maria", role="admin", ask_password=True, acting_as=support.username)
    assert failure.value.end == Exit.REFUSED
    assert Event.objects.get().type == "access.refused"
