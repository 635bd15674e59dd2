"""Tokens and browsers: who gets in, and in which words the others are turned away."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.test import Client

from sessions_app.events import deferred
from sessions_app.models import AccessToken, Event
from sessions_app.services import tokens
from sessions_app.services.sign_in_store import MUST_CHANGE
from tests.api.conftest import TESTS, Api, error_of, token_of

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def test_a_token_reads_and_its_use_is_written_down(operator, session):
    secret = token_of(operator, "read")
    answer = Api(secret).get(f"/sessions/{session.pk}")
    assert answer.status_code == 200
    assert answer.json()["id"] == str(session.pk)
    assert answer.headers["Cache-Control"] == "private, no-store"
    token = AccessToken.objects.get()
    assert token.last_used_at is not None
    assert secret not in str(AccessToken.objects.values())
    deferred.flush()
    event = Event.objects.get(type="session.viewed")
    assert (event.actor_kind, event.actor_id, event.actor_name, event.actor_role) == ("token", str(token.pk), "olga", "operator")


@pytest.mark.parametrize("sent", ["", "Bearer", "Bearer ", "Bearer wrong", "Basic b2xnYTp4", "Bearer \x00", "bearer " + "x" * 5_000])
def test_without_a_token_that_holds_nothing_opens(session, sent):
    headers = {"Authorization": sent} if sent else {}
    answer = Client().get(f"/v1/sessions/{session.pk}", headers=headers)
    assert answer.status_code == 401
    assert error_of(answer)["code"] == "unauthorized"
    assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_a_revoked_token_an_expired_one_and_one_of_a_person_who_left_open_nothing(operator, support, session):
    expired = Api(token_of(operator, "read", expires_at=datetime.now(UTC) + timedelta(hours=1), name="an hour"))
    revoked, left = Api(token_of(operator, "read", name="revoked")), Api(token_of(support, "read", name="left"))
    address = f"/sessions/{session.pk}"
    assert [api.get(address).status_code for api in (expired, revoked, left)] == [200, 200, 200]
    tokens.revoke(actor=TESTS, token_id=AccessToken.objects.get(name="revoked").pk)
    support.is_active = False
    support.save()
    with time_machine.travel(datetime.now(UTC) + timedelta(hours=2)):
        answers = [api.get(address) for api in (expired, revoked, left)]
    assert [answer.status_code for answer in answers] == [401, 401, 401]
    assert len({error_of(answer)["message"] for answer in answers}) == 1
    assert set(Event.objects.filter(type="access.refused").values_list("reason", flat=True)) == {"token expired"}  # one address, one minute


def test_a_wrong_token_is_wrong_also_beside_a_browser_that_is_signed_in(operator_page, session):
    answer = operator_page.get(f"/v1/sessions/{session.pk}", headers={"Authorization": "Bearer wrong"})
    assert answer.status_code == 401


def test_a_browser_reads_by_its_sign_in(operator_page, session):
    assert operator_page.get(f"/v1/sessions/{session.pk}").status_code == 200


def test_a_browser_with_a_one_time_password_gets_no_further_than_its_change(operator_page, session):
    store = operator_page.session
    store[MUST_CHANGE] = True
    store.save()
    answer = operator_page.get(f"/v1/sessions/{session.pk}")
    assert answer.status_code == 403
    assert "password" in error_of(answer)["message"]


def test_whoever_sends_wrong_tokens_is_told_to_wait_and_a_right_one_still_opens(operator, session):
    right = token_of(operator, "read")
    address = f"/sessions/{session.pk}"
    answers = [Api(f"wrong {number}").get(address) for number in range(tokens.FAILURES + 2)]
    assert [answer.status_code for answer in answers] == [401] * tokens.FAILURES + [429] * 2
    assert error_of(answers[-1])["code"] == "rate_limited"
    assert error_of(answers[-1])["retryable"] is True
    assert answers[-1].headers["Retry-After"] == str(tokens.FAILURE_WINDOW_S)
    assert Api(right).get(address).status_code == 200


def test_the_same_wrong_token_is_soon_not_looked_up_any_more(session, django_assert_num_queries):
    api = Api("stale")
    for _ in range(tokens.FAILURES):
        api.get(f"/sessions/{session.pk}")
    with django_assert_num_queries(0):
        assert api.get(f"/sessions/{session.pk}").status_code == 429


def test_a_token_of_somebody_in_no_group_finds_nothing(outsider, session):
    answer = Api(token_of(outsider, "read", "steer")).get(f"/sessions/{session.pk}")
    assert answer.status_code == 404
    assert error_of(answer)["code"] == "not_found"
