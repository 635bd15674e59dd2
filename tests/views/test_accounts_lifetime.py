"""How long a sign-in lasts: idle, absolute, across clocks that jump; and the way back to where one was."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.contrib.sessions.models import Session as SignIn
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from sessions_app.models import ActorKind
from sessions_app.permissions import actor_of_socket
from sessions_app.services import sweeper
from sessions_app.services.sign_in_store import SessionStore
from tests.conftest import PASSWORD

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.fixture
def clock():
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller


@pytest.fixture
def page(client: Client, support, clock) -> Client:
    """Signed in at noon; 120 minutes idle, 12 hours at most."""
    client.post("/sign-in/", {"username": "ana", "password": PASSWORD})
    return client


def is_in(client: Client) -> bool:
    return client.get("/password/").status_code == 200


def test_a_sign_in_ends_when_no_page_is_asked_for(page: Client, clock):
    clock.shift(timedelta(minutes=119))
    assert is_in(page)
    clock.shift(timedelta(minutes=119))
    assert is_in(page)
    clock.shift(timedelta(minutes=121))
    assert not is_in(page)


def test_it_ends_after_twelve_hours_whatever_is_asked_for(page: Client, clock):
    hours = 0
    while hours < 11:
        clock.shift(timedelta(hours=1))
        hours += 1
        assert is_in(page)
    clock.shift(timedelta(minutes=59))
    assert is_in(page)
    clock.shift(timedelta(minutes=1, seconds=1))
    assert not is_in(page)


def test_sliding_writes_once_in_a_while_not_with_every_page(page: Client, clock):
    writes = 0
    for _ in range(60):
        clock.shift(timedelta(seconds=10))
        with CaptureQueriesContext(connection) as queries:
            assert is_in(page)
        writes += sum(query["sql"].startswith(("UPDATE", "INSERT")) for query in queries)
    assert writes == 1  # in ten minutes: a twentieth of two hours is six


def test_a_socket_of_an_ended_sign_in_is_nobodys_and_asking_does_not_keep_it(page: Client, support, clock):
    scope = {"user": support, "session": SessionStore(page.cookies["palimpsest_session"].value), "client": ("127.0.0.1", 1)}
    for _ in range(4):
        clock.shift(timedelta(minutes=29))
        assert actor_of_socket(scope).kind == ActorKind.USER
    clock.shift(timedelta(minutes=5))
    assert actor_of_socket(scope).kind == ActorKind.ANONYMOUS


def test_a_clock_that_was_ahead_lets_nobody_in_for_longer(support, clock):
    clock.move_to(NOON + timedelta(days=100))
    client = Client()
    client.post("/sign-in/", {"username": "ana", "password": PASSWORD})
    clock.move_to(NOON)
    assert is_in(client)
    clock.shift(timedelta(minutes=121))
    assert not is_in(client)


def test_a_sign_in_from_before_there_were_lifetimes_gets_them(page: Client, support, clock):
    stored = SessionStore(page.cookies["palimpsest_session"].value)
    data = {name: value for name, value in stored.load().items() if name != "_began"}
    SignIn.objects.update(session_data=stored.encode(data), expire_date=NOON + timedelta(days=14))
    assert is_in(page)
    clock.shift(timedelta(minutes=121))
    assert not is_in(page)


def test_the_sweep_removes_what_has_ended(page: Client, clock):
    assert SignIn.objects.count() == 1
    assert sweeper.sweep().sign_ins_ended == 0
    clock.shift(timedelta(minutes=121))
    assert sweeper.sweep().sign_ins_ended == 1
    assert SignIn.objects.count() == 0


def test_after_the_end_a_page_a_part_and_a_form_lead_back_to_where_one_was(page: Client, clock):
    clock.shift(timedelta(hours=3))
    assert page.get("/imports/?q=1")["Location"] == "/sign-in/?next=%2Fimports%2F%3Fq%3D1"
    part = page.get("/imports/", headers={"HX-Request": "true", "HX-Current-URL": "http://testserver/?q=a"})
    assert (part["HX-Redirect"], part.content) == ("/sign-in/?next=%2F%3Fq%3Da&ended=1", b"")
    form = page.post("/sessions/019a0000-0000-7000-8000-000000000000/compact/", headers={"Referer": "http://testserver/a/?b=c"})
    assert form["Location"] == "/sign-in/?next=%2Fa%2F%3Fb%3Dc&ended=1"
    assert "was not done" in page.get(form["Location"]).content.decode()
    foreign = page.post("/imports/", headers={"Referer": "https://evil.example/x"})
    assert foreign["Location"].startswith("/sign-in/?next=%2F&")
    back = page.post("/sign-in/", {"username": "ana", "password": PASSWORD, "next": "/a/?b=c"})
    assert back["Location"] == "/a/?b=c"


def test_an_account_that_is_switched_off_is_out_at_once(page: Client, support):
    support.is_active = False
    support.save()
    assert not is_in(page)
