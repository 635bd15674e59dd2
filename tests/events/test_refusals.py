"""Whoever is refused over and over is written down, but cannot fill the log."""

import pytest
import time_machine

from sessions_app.events import refusals
from sessions_app.events.actors import Actor
from sessions_app.models import ActorKind, Event

pytestmark = pytest.mark.django_db


def nobody(address: str = "10.0.0.1") -> Actor:
    return Actor(kind=ActorKind.ANONYMOUS, address=address)


def olga() -> Actor:
    return Actor(kind=ActorKind.USER, id="7", name="olga", role="operator", address="10.0.0.2")


def refuse(actor: Actor, target: str = "s1") -> None:
    refusals.record(actor=actor, reason="may not", target=("session", target))


def written() -> list[Event]:
    return list(Event.objects.filter(type="access.refused").order_by("pk"))


def test_without_a_sign_in_one_a_minute_and_address_whatever_is_asked_for():
    for number in range(50):
        refuse(nobody(), f"s{number}")
    refuse(nobody("10.0.0.9"))
    assert [event.address for event in written()] == ["10.0.0.1", "10.0.0.9"]


def test_the_next_one_says_how_many_were_left_out():
    with time_machine.travel("2026-11-30T12:00:00Z", tick=False) as clock:
        for _ in range(5):
            refuse(nobody())
        clock.shift(refusals.WINDOW_S + 1)
        refuse(nobody())
    assert [event.payload for event in written()] == [{}, {"left_out_before": 4}]


def test_of_a_person_each_thing_is_written_and_the_same_one_once():
    for target in ("s1", "s2", "s1", "s1"):
        refuse(olga(), target)
    assert [event.target_id for event in written()] == ["s1", "s2"]


def test_a_person_who_asks_for_ever_new_things_is_bounded_too():
    with time_machine.travel("2026-11-30T12:00:00Z", tick=False):
        for number in range(refusals.MOST_OF_ONE + 40):
            refuse(olga(), f"s{number}")
    assert len(written()) == refusals.MOST_OF_ONE


def test_many_addresses_without_a_sign_in_are_bounded_together():
    with time_machine.travel("2026-11-30T12:00:00Z", tick=False):
        for number in range(refusals.MOST_OF_NOBODY + 40):
            refuse(nobody(f"10.1.{number // 250}.{number % 250}"))
    assert len(written()) == refusals.MOST_OF_NOBODY
