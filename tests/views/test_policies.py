"""The pages of policies: who sees and who changes them, what a field says of itself, and what happens to a wrong one."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from sessions_app.engine.policy_fields import FIELDS
from sessions_app.events.actors import system_actor
from sessions_app.events.types import EventType
from sessions_app.models import Event, PolicyValue, Project
from sessions_app.services.policies import change
from tests.stored import store_session

pytestmark = pytest.mark.django_db
BEN = system_actor("ben")
PAGE = "/policies/"


@pytest.fixture
def page(client: Client, admin) -> Client:
    client.force_login(admin)
    return client


def body(response) -> str:
    return " ".join(response.content.decode().split())


def saved() -> dict[str, object]:
    return dict(PolicyValue.objects.values_list("field", "value"))


def test_every_field_stands_there_with_its_label_value_and_source(page):
    html = body(page.get(PAGE))
    for field in FIELDS.values():
        assert f'for="input-{field.name}">{field.label}</label>' in html
    assert 'policy__source--default">default' in html


def test_a_session_shows_what_holds_where_it_comes_from_and_what_would_hold_without_it(page):
    project = Project.objects.create(key="p", name="Payments")
    session = store_session(project=project, title="Night shift")
    change(actor=BEN, scope="installation", values={"cap_tokens": 120_000})
    change(actor=BEN, scope="project", scope_id=project.pk, values={"cap_tokens": 90_000, "profile": "coding"})
    change(actor=BEN, scope="session", scope_id=session.pk, values={"cap_tokens": 30_000})
    html = body(page.get(reverse("policy-session", args=[session.pk])))
    assert "30,000" in html
    assert "set here" in html
    assert "without it: 90,000, from the project" in html
    assert "12, as the profile says" in html
    assert "from the profile" in html
    assert "Payments" in html
    html = body(page.get(reverse("policy-project", args=[project.pk])))
    assert "without it: 120,000, from the installation" in html
    assert "Night shift" in html
    assert "1 place below sets another" in html
    html = body(page.get(PAGE))
    assert "2 places below set another" in html
    assert "Night shift" in html


def test_a_save_is_told_stored_and_one_event(page):
    response = page.post(PAGE, {"threshold_pct": "72,5", "cap_tokens": "160k", "enabled": "off"}, follow=True)
    assert saved() == {"threshold_pct": 0.725, "cap_tokens": 160_000, "enabled": False}
    assert "Saved: " in body(response)
    event = Event.objects.get(type=EventType.POLICY_CHANGED)
    assert event.after == {"threshold_pct": 0.725, "cap_tokens": 160_000, "enabled": False}


def test_an_empty_field_is_not_set_any_more_and_a_button_resets_one_alone(page):
    change(actor=BEN, scope="installation", values={"cap_tokens": 120_000, "heartbeat_s": 5, "call_timeout_s": 60})
    was = {"was-cap_tokens": "120000", "was-heartbeat_s": "5", "was-call_timeout_s": "60"}
    page.post(PAGE, {**was, "cap_tokens": "", "heartbeat_s": "5", "call_timeout_s": "60"})
    assert saved() == {"heartbeat_s": 5, "call_timeout_s": 60}
    page.post(
        PAGE, {"was-heartbeat_s": "5", "was-call_timeout_s": "60", "heartbeat_s": "7", "call_timeout_s": "60", "reset": "call_timeout_s"}
    )
    assert saved() == {"heartbeat_s": 5}


def test_a_wrong_value_stands_beside_its_field_and_nothing_is_stored(page):
    response = page.post(PAGE, {"threshold_pct": "99", "cap_tokens": "many", "heartbeat_s": "5"})
    html = body(response)
    assert response.status_code == 422
    assert "Trigger must lie between 10 % and 95 %, not at 99 %." in html
    assert 'aria-invalid="true"' in html
    assert 'value="many"' in html
    assert 'name="heartbeat_s" value="5"' in html
    assert saved() == {}


def test_a_contradiction_stands_beside_both_fields(page):
    response = page.post(PAGE, {"keep_recent_fraction": "70"})
    html = body(response)
    assert response.status_code == 422
    assert html.count("“Keep word for word” must be smaller than “View after a compaction”") == 2
    assert 'id="wrong-keep_recent_fraction"' in html
    assert 'id="wrong-target_fraction"' in html
    assert saved() == {}


def test_who_comes_later_is_told_and_may_save_again_without_undoing_the_rest(page):
    change(actor=BEN, scope="installation", values={"cap_tokens": 120_000, "heartbeat_s": 5})
    response = page.post(PAGE, {"cap_tokens": "100k"})
    html = body(response)
    assert response.status_code == 409
    assert "ben changed “Trigger at most” while you were at it. Nothing of yours was stored." in html
    assert 'name="cap_tokens" value="100k"' in html
    assert 'name="was-cap_tokens" value="120000"' in html
    assert 'name="heartbeat_s" value="5"' in html  # theirs, not the empty one that was read before
    page.post(PAGE, {"cap_tokens": "100k", "was-cap_tokens": "120000", "heartbeat_s": "5", "was-heartbeat_s": "5"})
    assert saved() == {"cap_tokens": 100_000, "heartbeat_s": 5}


def test_hostile_values_are_text(page):
    html = body(page.post(PAGE, {"cap_tokens": "<script>alert(1)</script>", "summarisers": '"><img src=x>'}))
    assert "<script>alert" not in html
    assert "<img src=x" not in html


def test_a_key_is_never_shown_only_whether_it_is_there(page, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    change(actor=BEN, scope="installation", values={"summarisers": ["anthropic:claude-haiku-4-5", "openai:own", "extractive"]})
    html = body(page.get(PAGE))
    assert "sk-very-secret" not in html
    assert "ANTHROPIC_API_KEY is set" in html
    assert "OPENAI_API_KEY is not set on this server, so it is skipped; its window is not known here" in html


@pytest.mark.parametrize("who", ["operator", "support"])
def test_others_see_and_do_not_change(client, request, who):
    client.force_login(request.getfixturevalue(who))
    session = store_session()
    for address in (PAGE, reverse("policy-session", args=[session.pk])):
        html = body(client.get(address))
        assert "admins change them" in html
        assert "<textarea" not in html
        assert client.post(address, {"cap_tokens": "90000"}).status_code == 403
    assert saved() == {}
    assert Event.objects.filter(type=EventType.ACCESS_REFUSED).exists()


def test_without_a_group_there_is_nothing(client, outsider):
    client.force_login(outsider)
    session = store_session()
    for address in (PAGE, reverse("policy-session", args=[session.pk])):
        assert client.get(address).status_code == 404


def test_what_does_not_exist_has_no_policy(page):
    nobody = "01a22e97-1780-7297-96ea-9dac3be9ac9d"
    assert page.get(reverse("policy-project", args=[nobody])).status_code == 404
    assert page.get(reverse("policy-session", args=[nobody])).status_code == 404


def test_many_sessions_and_places_cost_no_more_queries(page):
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            page.get(PAGE)
        return len(captured)

    project = Project.objects.create(key="p", name="P")
    change(actor=BEN, scope="project", scope_id=project.pk, values={"cap_tokens": 90_000})
    change(actor=BEN, scope="session", scope_id=store_session().pk, values={"cap_tokens": 90_000})
    queries()  # the drafts that wait are counted only every few seconds
    before = queries()
    for _ in range(12):
        change(actor=BEN, scope="session", scope_id=store_session(project=project).pk, values={"cap_tokens": 80_000})
    assert queries() == before


def test_the_meter_leads_to_the_policy_that_sets_its_trigger(page):
    session = store_session(model="claude-sonnet-4-5")
    change(actor=BEN, scope="installation", values={"threshold_pct": 0.8})
    html = body(page.get(reverse("session-detail", args=[session.pk])))
    assert f'href="{reverse("policy-session", args=[session.pk])}"' in html
    assert "trigger 160k, 80 % · installation</a>" in html


def test_the_page_says_how_many_meters_are_still_to_be_renewed(page):
    for _ in range(25):
        store_session()
    html = body(page.post(PAGE, {"cap_tokens": "90000"}, follow=True))
    assert "The meters of 25 sessions follow within minutes" in html
    assert "The meters of 25 sessions still show the trigger from before it" in html


def test_projects_of_the_same_name_are_told_apart(client: Client, admin):
    client.force_login(admin)
    for key in ("/home/a/cli", "/home/b/cli", "/home/b/web"):
        Project.objects.create(name=key.rsplit("/", 1)[1], key=key)
    html = client.get(reverse("policy-installation")).content.decode()
    assert "/home/a/cli" in html
    assert "/home/b/cli" in html
    assert "/home/b/web" not in html
