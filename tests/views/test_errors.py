"""Refusals and failures: the status that is true, one sentence, the same for pages and parts."""

import errno

import pytest
from django.db import DatabaseError
from django.test import Client

from sessions_app.events.deferred import NotRecorded
from sessions_app.models import Event
from sessions_app.permissions import Action, ActionRefused, NoAccess
from sessions_app.views import sessions


@pytest.fixture
def refusing(monkeypatch):
    def refuse_with(error: Exception) -> None:
        def refuse(*_: object) -> None:
            raise error

        monkeypatch.setattr(sessions, "require", refuse)

    return refuse_with


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (NoAccess("There is no such session."), 404, "There is no such session."),
        (ActionRefused(Action.REVERT, "operator"), 403, "may not revert"),
    ],
)
@pytest.mark.parametrize("is_part", [False, True])
def test_what_a_gate_refuses_is_told_in_its_own_sentence(operator_page: Client, refusing, error, status, sentence, is_part):
    refusing(error)
    response = operator_page.get("/", headers={"HX-Request": "true"} if is_part else {})
    page = response.content.decode()
    assert response.status_code == status
    assert sentence in page
    assert ("<!doctype html>" in page) is not is_part
    assert response.headers.get("X-Fragment") == ("toast" if is_part else None)


def test_an_unknown_address_is_answered_404_with_the_request_s_number(operator_page: Client):
    response = operator_page.get("/nowhere/")
    assert response.status_code == 404
    assert response["X-Request-Id"] in response.content.decode()


@pytest.mark.parametrize("part", ["entries/99/raw/", "entries/99/parts/0/text/", "entries/99/parts/0/image/"])
def test_who_asks_for_a_part_that_is_not_there_is_written_down(operator_page: Client, make_session, part):
    path = f"/sessions/{make_session().pk}/{part}"
    assert operator_page.get(path).status_code == 404
    event = Event.objects.get(type="access.refused")
    assert (event.reason, event.target_id, event.actor_name) == ("nothing there", path[:64], "olga")


def test_a_failure_of_the_database_still_gets_a_page_and_no_detail(operator_page: Client, refusing):
    refusing(DatabaseError("secret detail"))
    operator_page.raise_request_exception = False
    response = operator_page.get("/")
    page = response.content.decode()
    assert response.status_code == 500
    assert "Something went wrong" in page
    assert "secret detail" not in page


@pytest.mark.parametrize("error", [DatabaseError("database or disk is full"), OSError(errno.ENOSPC, "No space left on device")])
def test_a_full_disk_is_said_so_with_its_own_status(operator_page: Client, refusing, error):
    refusing(error)
    operator_page.raise_request_exception = False
    response = operator_page.get("/")
    assert response.status_code == 507
    assert "no space left" in response.content.decode()


@pytest.mark.parametrize(("said", "status"), [("database or disk is full", 507), ("attempt to write a readonly database", 503)])
def test_what_cant_be_written_down_is_not_shown_and_the_page_says_why(operator_page: Client, refusing, said, status):
    refusing(NotRecorded(said))
    operator_page.raise_request_exception = False
    response = operator_page.get("/")
    assert response.status_code == status
    assert "written down first, and that is not possible now, so nothing is shown" in response.content.decode()


def test_pages_carry_the_strict_policy_and_no_inline_code(operator_page: Client):
    response = operator_page.get("/")
    policy = response["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    page = response.content.decode()
    assert " style=" not in page
    assert "<style" not in page
    assert page.count("<script") == page.count("<script src=") + page.count('<script type="module" src=')


def test_the_style_guide_is_for_developers_only(operator_page: Client, settings):
    assert operator_page.get("/styleguide/").status_code == 404
    settings.DEBUG = True
    assert operator_page.get("/styleguide/").status_code == 200


@pytest.mark.parametrize(
    ("came_from", "is_offered"), [("http://testserver/password/?next=/", True), ("http://elsewhere.example/form", False), ("", False)]
)
def test_a_form_that_is_too_old_leads_back_to_its_page_and_nowhere_else(operator, came_from, is_offered):
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator)
    response = client.post("/password/", {"old_password": "x"}, headers={"Referer": came_from})
    page = response.content.decode()
    assert response.status_code == 403
    assert "nothing was changed" in page
    assert ("Back to the form" in page) is is_offered
    assert "elsewhere.example" not in page
