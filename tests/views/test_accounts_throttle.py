"""Guessing passwords: locked by name and address, the same for names that nobody has, and lifted by an admin or by time."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from axes.models import AccessAttempt
from django.db import connection
from django.test import Client

from sessions_app.events.log import SECURITY
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.models import Event
from sessions_app.services import sweeper
from tests.conftest import PASSWORD
from tests.management.commands import run

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SECRET = "my secret passphrase"


def sign_in(client: Client, name: str = "ana", password: str = "wrong", **more):
    return client.post("/sign-in/", {"username": name, "password": password}, **more)


def guess(client: Client, name: str, times: int, **more) -> list[int]:
    return [sign_in(client, name, **more).status_code for _ in range(times)]


def security_events() -> list[str]:
    return list(Event.objects.filter(stream=SECURITY).order_by("seq").values_list("type", flat=True))


@pytest.mark.parametrize("name", ["ana", "nobody", SECRET])
def test_the_fifth_wrong_password_locks_a_name_whether_somebody_has_it_or_not(client: Client, support, name):
    with time_machine.travel(NOON, tick=False):
        assert guess(client, name, 6) == [422, 422, 422, 422, 429, 429]
        response = sign_in(client, name, PASSWORD)
    assert response.status_code == 429
    assert response["Retry-After"] == "900"
    assert "Try again in 15 minutes" in response.content.decode()
    assert security_events() == ["user.sign_in_failed"] * 5 + ["user.sign_in_locked"]


def test_a_locked_answer_is_the_same_for_every_name(client: Client, support):
    def locked(name: str) -> str:
        guess(client, name, 5)
        page = sign_in(client, name).content.decode()
        return re.sub(r"[A-Za-z0-9]{64}", "TOKEN", page.replace(f'value="{name}"', "NAME"))

    with time_machine.travel(NOON, tick=False):
        assert locked("ana") == locked("nobody")


def test_neither_the_typed_name_nor_what_else_was_sent_is_kept(client: Client, support):
    for _ in range(6):
        client.post("/sign-in/?q=hush", {"username": SECRET, "password": "x", "next": "/hush/"}, headers={"User-Agent": "hush"})
    kept = str(list(AccessAttempt.objects.values())) + str(list(Event.objects.values()))
    assert "passphrase" not in kept
    assert "hush" not in kept


def test_the_browser_that_is_told_makes_no_difference_and_no_row(client: Client, support):
    for number in range(9):
        sign_in(client, headers={"User-Agent": f"browser {number}"})
    assert AccessAttempt.objects.count() == 1
    assert AccessAttempt.objects.get().failures_since_start == 5
    assert AccessAttempt.objects.get().post_data.strip("-\n") == ""


def test_the_lock_is_of_one_address_and_a_header_does_not_change_it(client: Client, support):
    guess(client, "ana", 5)
    for spoofed in ({"X-Forwarded-For": "203.0.113.9"}, {"X-Real-Ip": "203.0.113.9"}):
        assert sign_in(client, "ana", PASSWORD, headers=spoofed).status_code == 429
    assert sign_in(client, "ana", PASSWORD, REMOTE_ADDR="192.0.2.7").status_code == 302


def test_it_ends_by_itself_and_tries_meanwhile_do_not_put_it_off(client: Client, support):
    with time_machine.travel(NOON, tick=False) as clock:
        guess(client, "ana", 5)
        clock.shift(timedelta(minutes=14))
        response = sign_in(client, "ana", PASSWORD)
        assert (response.status_code, response["Retry-After"]) == (429, "60")
        clock.shift(timedelta(minutes=1, seconds=1))
        assert sign_in(client, "ana", PASSWORD).status_code == 302


def test_a_right_password_forgets_the_wrong_ones(client: Client, support):
    guess(client, "ana", 4)
    sign_in(client, "ana", PASSWORD)
    client.post("/sign-out/")
    assert guess(client, "ana", 4) == [422] * 4


def test_the_sweep_forgets_what_no_longer_counts_and_what_a_wrong_clock_left(client: Client, support):
    with time_machine.travel(NOON, tick=False) as clock:
        sign_in(client, "old")
        clock.move_to(NOON + timedelta(days=300))
        sign_in(client, "ahead of its time")
        clock.move_to(NOON + timedelta(minutes=16))
        sign_in(client, "young")
        assert sweeper.sweep().failures_forgotten >= 1
        assert AccessAttempt.objects.count() == 1


def test_an_admin_sees_the_lock_and_lifts_it(client: Client, support, admin):
    guess(client, "ana", 5)
    guess(client, "nobody", 5)
    browser = Client()
    browser.force_login(admin)
    page = browser.get("/users/").content.decode()
    assert "locked" in page
    assert "Locks of names that nobody has" in page
    assert "127.0.0.1" in browser.get(f"/users/{support.pk}/").content.decode()
    assert browser.post("/users/unlock/", {"key": "ana"})["Location"] == "/users/"
    assert sign_in(client, "ana", PASSWORD).status_code == 302
    event = Event.objects.get(type="user.sign_in_unlocked")
    assert (event.actor_name, event.target_id) == ("ada", str(support.pk))
    assert (event.before, event.after) == ({"locks": [{"address": "127.0.0.1", "failures": 5}]}, {"locks": []})
    assert sign_in(Client(), "nobody").status_code == 429


def test_the_command_lifts_a_lock_and_says_when_there_is_none(client: Client, support):
    guess(client, "ana", 5)
    assert run("unlock_user", "ana") == ("ana can sign in again from 127.0.0.1.\n", "", Exit.OK)
    assert sign_in(client, "ana", PASSWORD).status_code == 302
    assert run("unlock_user", "ana") == ("ana was not locked.\n", "", Exit.NOTHING_TO_DO)
    guess(Client(), "ana", 5)
    assert json.loads(run("unlock_user", "ana", as_json=True)[0]) == {"object": "unlock", "name": "ana", "addresses": ["127.0.0.1"]}
    with pytest.raises(CommandFailure, match="There is no user 'nobody'") as failure:
        run("unlock_user", "nobody")
    assert failure.value.end == Exit.NOT_FOUND


def test_who_may_not_manage_users_lifts_nothing(client: Client, support, operator):
    guess(client, "ana", 5)
    with pytest.raises(CommandFailure, match="Nothing was changed") as failure:
        run("unlock_user", "ana", acting_as="olga")
    assert failure.value.end == Exit.REFUSED
    browser = Client()
    browser.force_login(operator)
    assert browser.post("/users/unlock/", {"key": "ana"}).status_code == 403
    assert sign_in(client, "ana", PASSWORD).status_code == 429


@pytest.mark.django_db(transaction=True)
def test_guesses_that_come_at_once_are_all_counted(support):
    def guess_once(_: int) -> int:
        try:
            return sign_in(Client(), "ana").status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(guess_once, range(6)))
    assert set(answers) <= {422, 429}
    assert AccessAttempt.objects.get().failures_since_start >= 5
    assert sign_in(Client(), "ana", PASSWORD).status_code == 429
