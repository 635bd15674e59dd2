"""What every answer carries, and what is refused before it reaches a service."""

import re
import uuid

import pytest
from django.test import Client
from django.urls import reverse

from sessions_app.models import Event
from tests.conftest import PASSWORD
from tests.stored import store_session

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "font-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
PAGES = ["/", "/sign-in/", "/imports/", "/nowhere/", f"/sessions/{uuid.uuid4()}/", "/healthz", "/livez", "/v1/sessions", "/v1/nowhere"]


@pytest.mark.parametrize("path", PAGES)
def test_every_answer_has_the_strict_policy_and_the_other_headers(support, client, path):
    client.force_login(support)
    answer = client.get(path)
    directives = dict(part.strip().split(" ", 1) for part in answer["Content-Security-Policy"].split(";"))
    assert directives == POLICY
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Referrer-Policy"] == "same-origin"
    assert answer["Cross-Origin-Opener-Policy"] == "same-origin"
    assert "no-store" in answer["Cache-Control"]


def test_a_host_that_is_not_ours_gets_no_less(db, client):
    answer = client.get("/", headers={"host": "evil.example"})
    assert (answer.status_code, answer["X-Frame-Options"], answer["X-Content-Type-Options"]) == (400, "DENY", "nosniff")
    assert "frame-ancestors 'none'" in answer["Content-Security-Policy"]


@pytest.mark.parametrize("path", ["/sign-in/", "/nowhere/", "/v1/nowhere", "/healthz"])
def test_behind_https_every_answer_tells_browsers_to_stay_there(db, client, settings, path):
    assert "Strict-Transport-Security" not in client.get(path)
    settings.SECURE_HSTS_SECONDS = 31_536_000
    assert client.get(path)["Strict-Transport-Security"] == "max-age=31536000"


def test_the_token_of_forms_is_out_of_reach_for_scripts(db, client):
    client.get("/sign-in/")
    assert client.cookies["csrftoken"]["httponly"]


def test_the_session_cookie_is_out_of_reach_for_scripts_and_other_sites(support, client):
    client.post("/sign-in/", {"username": "ana", "password": PASSWORD})
    cookie = client.cookies["palimpsest_session"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"


def test_signing_in_changes_the_session_so_that_a_planted_one_is_useless(support, client):
    planted = client.session
    planted["planted"] = 1
    planted.save()
    client.cookies["palimpsest_session"] = planted.session_key
    client.post("/sign-in/", {"username": "ana", "password": PASSWORD})
    assert client.cookies["palimpsest_session"].value != planted.session_key


@pytest.mark.parametrize(
    "path", ["/sign-in/", "/sign-out/", "/imports/", f"/sessions/{uuid.uuid4()}/compact/", f"/sessions/{uuid.uuid4()}/revert/"]
)
def test_a_form_from_another_site_is_refused_in_words(support, path):
    client = Client(enforce_csrf_checks=True)
    client.force_login(support)
    answer = client.post(path, {"username": "ana", "password": PASSWORD})
    assert answer.status_code == 403
    assert "nothing was changed" in answer.content.decode()


@pytest.mark.parametrize(
    "target", ["//evil.example/", "https://evil.example/", "javascript:alert(1)", "/\\evil.example", "http:///evil.example"]
)
def test_signing_in_never_leads_to_another_site(support, client, target):
    answer = client.post("/sign-in/", {"username": "ana", "password": PASSWORD, "next": target})
    assert answer.headers["Location"] == "/"


def test_nobody_is_sent_to_the_sign_in_and_learns_nothing(client, db):
    for path in ("/", "/imports/", f"/sessions/{uuid.uuid4()}/"):
        answer = client.get(path)
        assert answer.status_code == 302
        assert answer.headers["Location"].startswith("/sign-in/?next=")


def test_signing_out_takes_a_form_not_a_link(support, client):
    client.force_login(support)
    assert client.get("/sign-out/").status_code == 405


def test_an_unknown_session_is_404_and_an_event(operator, client):
    client.force_login(operator)
    unknown = uuid.uuid4()
    answer = client.get(reverse("session-detail", args=[unknown]))
    assert answer.status_code == 404
    event = Event.objects.get(type="access.refused")
    assert (event.target_id, event.result, event.actor_name) == (str(unknown), "refused", "olga")
    assert event.request_id == answer["X-Request-Id"]


def test_who_is_in_no_group_finds_nothing_at_all(outsider, client):
    client.force_login(outsider)
    assert client.get("/").status_code == 404
    assert client.get(reverse("session-detail", args=[uuid.uuid4()])).status_code == 404
    assert set(Event.objects.values_list("type", "result")) == {("access.refused", "refused")}


def test_who_is_in_no_group_does_not_learn_which_sessions_exist(outsider, client):
    client.force_login(outsider)
    addresses = [reverse("session-detail", args=[pk]) for pk in (store_session().pk, uuid.uuid4())]
    answers = [client.get(address, headers={"HX-Request": "true"}) for address in addresses]  # without the token of a page
    there, nowhere = (answer.content.decode().replace(answer["X-Request-Id"], "") for answer in answers)
    assert there == nowhere


@pytest.mark.parametrize(
    "query", ["sort=../../etc", "pressure=many", "status=%00", "after=%7B%7D", "project=1%20OR%201=1", "view=" + "x" * 3000]
)
def test_a_forged_address_of_the_list_is_400_in_words(operator, client, query):
    client.force_login(operator)
    answer = client.get(f"/?{query}")
    assert answer.status_code == 400
    assert re.search("Clear it|Start again", answer.content.decode())


def test_a_gesture_that_no_database_holds_hides_no_wrong_password(db, client):
    client.post(reverse("sign-in"), {"username": "nobody", "password": "wrong"}, headers={"X-Gesture-Id": "click\0-1\u202e"})
    assert Event.objects.get(type="user.sign_in_failed").gesture_id == "click-1"


@pytest.mark.parametrize("stream", ["\0", "security\0", "x" * 200, ""])
def test_a_stream_that_can_not_be_is_400_in_words(admin, client, stream):
    client.force_login(admin)
    for answer in (
        client.post(reverse("audit-verify-stream"), {"stream": stream}),
        client.get(reverse("audit-verify"), {"after": stream or "\0"}),
    ):
        assert answer.status_code == 400
        assert "stream" in answer.content.decode()
    assert not Event.objects.filter(type="audit.verified").exists()


def test_a_wrong_host_is_refused(db):
    assert Client(headers={"host": "evil.example"}).get("/sign-in/").status_code == 400
