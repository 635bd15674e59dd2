"""Another model for a session that is held here, another window for any other: on the page and on the command line."""

import json

import pytest
from django.test import Client
from django.urls import reverse

from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.models import Compaction, Event, Session, SessionKind, SessionStatus
from tests.management.commands import run
from tests.services.compaction_scenes import fresh, long_session, set_policy

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody")]

HELD = {"kind": SessionKind.INLINE, "model": "claude-sonnet-4", "provider": "anthropic", "window_override": None}


@pytest.fixture(autouse=True)
def _one_key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)


@pytest.fixture
def support_page(client: Client, support) -> Client:
    client.force_login(support)
    return client


@pytest.fixture
def held() -> Session:
    return long_session(40, **HELD)


def url(session: Session) -> str:
    return reverse("session-model", args=[session.pk])


def test_the_page_says_of_each_model_what_going_over_comes_to(support_page, held):
    page = support_page.get(url(held)).content.decode()
    assert "openai:gpt-5-mini" in page
    assert "the view fits" in page
    assert 'value="anthropic:claude-sonnet-4"' in page
    assert url(held) in support_page.get(reverse("session-detail", args=[held.pk])).content.decode()


def test_a_view_that_fits_goes_over_at_once(support_page, held):
    answer = support_page.post(url(held), {"model": "openai:gpt-4o", "window": ""}, follow=True)
    assert "openai:gpt-4o answers from the next message on, with a window of 128,000 tokens." in answer.content.decode()
    assert (fresh(held).provider, held.model, held.window) == ("openai", "gpt-4o", 128_000)


def test_a_view_that_does_not_fit_is_compacted_first(support_page, held):
    answer = support_page.post(url(held), {"model": "scripted", "window": "8000"}, follow=True)
    assert "It was compacted first." in answer.content.decode()
    assert (fresh(held).model, held.window, Compaction.objects.get().trigger) == ("scripted", 8_000, "model_switch")


def test_a_page_does_not_wait_for_a_model_that_writes_a_summary(support_page, held):
    set_policy(held, summarisers=["openai:gpt-4o", "extractive"])
    answer = support_page.post(url(held), {"model": "scripted", "window": "8000"})
    assert answer.status_code == 409
    assert "longer than a page waits. Nothing was changed" in answer.content.decode()
    assert (fresh(held).model, Compaction.objects.count()) == ("claude-sonnet-4", 0)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"model": "anthropic:claude-opus-4-5"}, "No key of anthropic is set here"),
        ({"model": "<script>alert(1)</script>"}, "There is no model"),
        ({"model": ""}, "There is no model"),
        ({"model": "openai:gpt-4o", "window": "12"}, "A window has 2,000 to 2,000,000 tokens, not 12."),
        ({"model": "openai:gpt-4o", "window": "many"}, "Enter a whole number"),
    ],
)
def test_what_cannot_be_is_said_beside_its_field_and_changes_nothing(support_page, held, data, said):
    answer = support_page.post(url(held), data)
    page = answer.content.decode()
    assert (answer.status_code, said in page, "<script>alert" in page) == (422, True, False)
    assert (fresh(held).model, Event.objects.filter(type="session.model_changed").count()) == ("claude-sonnet-4", 0)


def test_while_a_turn_is_open_nothing_is_switched(support_page, held):
    Session.objects.filter(pk=held.pk).update(status=SessionStatus.WORKING)
    answer = support_page.post(url(held), {"model": "openai:gpt-4o"})
    assert (answer.status_code, "A turn of this session is open. Nothing was changed." in answer.content.decode()) == (409, True)


def test_where_a_compaction_is_not_to_be_had_the_page_says_so(support_page, held):
    Session.objects.filter(pk=held.pk).update(model="", provider="")
    set_policy(held, require_model=True)
    answer = support_page.post(url(held), {"model": "scripted", "window": "8000"})
    assert (answer.status_code, "compact is unavailable" in answer.content.decode()) == (409, True)
    assert fresh(held).model == ""


def test_the_window_of_a_session_that_an_agent_holds_can_be_set_and_given_back(support_page):
    session = long_session(40, model="claude-sonnet-4", window_override=None, window_reported=200_000)
    assert "Models to choose from" not in support_page.get(url(session)).content.decode()
    answer = support_page.post(url(session), {"window": "1000000", "model": "openai:gpt-4o"}, follow=True)
    assert "The window is 1,000,000 tokens now." in answer.content.decode()
    assert (fresh(session).window, session.trigger_tokens, session.model) == (1_000_000, 250_000, "claude-sonnet-4")
    assert "Nothing was changed" in support_page.post(url(session), {"window": "1000000"}, follow=True).content.decode()
    support_page.post(url(session), {"window": ""})
    assert (fresh(session).window, session.trigger_tokens) == (200_000, 160_000)
    events = Event.objects.filter(type="session.model_changed").order_by("pk").values_list("before", "after")
    assert list(events) == [
        ({"window_override": None}, {"window_override": 1_000_000}),
        ({"window_override": 1_000_000}, {"window_override": None}),
    ]


def test_who_only_reads_is_refused(client, operator, held):
    client.force_login(operator)
    assert client.get(url(held)).status_code == 403
    assert client.post(url(held), {"model": "openai:gpt-4o"}).status_code == 403
    assert fresh(held).model == "claude-sonnet-4"


def test_the_command_tells_switches_and_refuses_as_the_page_does(held, operator):
    out, _, end = run("model", held.pk)
    assert (end, out) == (Exit.OK, "anthropic:claude-sonnet-4, window 200,000 tokens (as the model has it), trigger 160,000\n")
    told = json.loads(run("model", held.pk, "scripted", "--window", 8_000, as_json=True)[0])
    assert (told["model"], told["window"], told["window_source"], told["compacted_first"]) == ("scripted", 8_000, "somebody set it", "a1")
    with pytest.raises(CommandFailure, match="may not choose model") as failure:
        run("model", held.pk, "openai:gpt-4o", acting_as=operator.username)
    assert failure.value.end == Exit.REFUSED
    set_policy(held, enabled=False)
    with pytest.raises(CommandFailure, match="The session stays with scripted") as failure:
        run("model", held.pk, "openai:gpt-4o", "--window", 2_000)
    assert failure.value.end == Exit.FAILED
    with pytest.raises(CommandFailure, match="chosen together with its model"):
        run("model", held.pk, "--window", 9_000)
    imported = long_session(10)
    assert run("model", imported.pk, "--window", 100_000)[2] == Exit.OK
    assert run("model", imported.pk, "--window", 100_000)[2] == Exit.NOTHING_TO_DO
    assert run("model", imported.pk, "--window", 0)[2] == Exit.OK
