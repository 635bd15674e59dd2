"""The pages about runners, and what a session's page says of its own."""

from html import unescape

import pytest
from django.test import Client
from django.urls import reverse

from sessions_app.models import Compaction, Event, Runner
from sessions_app.services.compactions import unknown
from tests.fakes.runner_server import Reply, RunnerServer, closed_port, reply
from tests.runners.scenes import bound_session, compacted, runner_at
from tests.services.compaction_scenes import fresh, long_session

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def queued(monkeypatch):
    """Nobody takes the queue here."""
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *_: None)


@pytest.fixture
def page(client: Client, admin) -> Client:
    client.force_login(admin)
    return client


@pytest.fixture
def support_page(client: Client, support) -> Client:
    client.force_login(support)
    return client


def text_of(answer) -> str:
    return " ".join(unescape(answer.content.decode()).split())


def test_a_runner_is_added_tested_changed_and_removed(page):
    with RunnerServer() as server:
        told = {"name": "box", "base_url": server.url, "credential_variable": ""}
        answer = page.post(reverse("runner-list"), told, follow=True)
        assert "box answers." in text_of(answer)
        runner = Runner.objects.get()
        assert (runner.health, runner.created_by) == ("up", "ada")
        assert "box" in text_of(page.get(reverse("runner-list")))
        page.post(reverse("runner-detail", args=[runner.pk]), told | {"name": "box2"})
        assert fresh(runner).name == "box2"
        assert "box2 answers." in text_of(page.post(reverse("runner-test", args=[runner.pk]), follow=True))
    answer = page.post(reverse("runner-test", args=[runner.pk]), follow=True)
    assert "does not answer as it should" in text_of(answer)
    assert "could not be reached" in text_of(page.get(reverse("runner-list")))
    page.post(reverse("runner-remove", args=[runner.pk]))
    assert not Runner.objects.exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"name": ""}, "The name is missing"),
        ({"name": "a b"}, "A name has"),
        ({"base_url": "http://user:pw@127.0.0.1"}, "must hold no name or password"),
        ({"base_url": "http://169.254.169.254"}, "PALIMPSEST_RUNNER_HOSTS"),
        ({"base_url": "<script>"}, "a character that no address has"),
        ({"credential_variable": "PATH"}, "RUNNER_TOKEN_"),
    ],
)
def test_what_can_t_be_is_said_beside_the_form_and_nothing_is_stored(page, change, says):
    answer = page.post(reverse("runner-list"), {"name": "box", "base_url": "http://127.0.0.1:1", "credential_variable": ""} | change)
    assert (answer.status_code, says in text_of(answer)) == (422, True)
    assert not Runner.objects.exists()


def test_only_admins_have_these_pages(support_page):
    runner = runner_at("http://127.0.0.1:1")
    assert support_page.get(reverse("runner-list")).status_code == 403
    assert support_page.get(reverse("runner-detail", args=[runner.pk])).status_code == 403
    for name in ("runner-test", "runner-remove"):
        assert support_page.post(reverse(name, args=[runner.pk])).status_code == 403
    assert Event.objects.filter(type="access.refused").exists()


def test_a_runner_that_is_not_there_is_not_found(page):
    from uuid import uuid4

    assert page.get(reverse("runner-detail", args=[uuid4()])).status_code == 404


def test_a_removal_under_a_compaction_says_why_not(page):
    from sessions_app.services.compactions.request import request
    from tests.runners.scenes import TESTS

    session = bound_session("http://127.0.0.1:1")
    request(actor=TESTS, session=session)
    answer = page.post(reverse("runner-remove", args=[session.runner_id]), follow=True)
    assert "A compaction of this session is under way" in text_of(answer)
    assert Runner.objects.exists()


def test_a_session_is_bound_and_unbound(support_page):
    session = long_session()
    runner_at("http://127.0.0.1:1")
    support_page.post(reverse("session-bind", args=[session.pk]), {"runner": "box", "external_id": "conv-7"})
    assert (fresh(session).runner.name, session.external_id) == ("box", "conv-7")
    form = text_of(support_page.get(reverse("session-bind", args=[session.pk])))
    assert ('value="box" selected' in form, 'value="conv-7"' in form) == (True, True)
    for told, says in [({"runner": "nobody"}, "no such runner"), ({"runner": "box", "external_id": ".."}, "A runner's id")]:
        answer = support_page.post(reverse("session-bind", args=[session.pk]), told)
        assert (answer.status_code, says in text_of(answer)) == (422, True)
    assert fresh(session).external_id == "conv-7"
    support_page.post(reverse("session-bind", args=[session.pk]), {"runner": ""})
    assert fresh(session).runner is None


@pytest.fixture
def undecided():
    with RunnerServer(Reply(breaks=True)) as server:
        return compacted(bound_session(server)).session


@pytest.mark.parametrize("through", ["runner", "console"])
def test_an_unknown_outcome_is_decided_by_who_may_compact(support_page, undecided, through):
    support_page.post(reverse("session-decide", args=[undecided.pk]), {"through": through})
    newest = Compaction.objects.order_by("-attempt").first()
    assert (newest.through, newest.status, unknown.undecided(undecided.pk).exists()) == (through, "requested", False)


def test_or_left_as_it_is(support_page, undecided):
    support_page.post(reverse("session-decide", args=[undecided.pk]), {"through": "none"})
    assert (unknown.undecided(undecided.pk).exists(), Compaction.objects.count()) == (False, 1)
    assert Event.objects.get(type="compaction.decided").payload["decision"] == "dismissed"


def test_but_not_by_an_operator_and_not_otherwise(client, operator, support, undecided):
    client.force_login(operator)
    assert client.post(reverse("session-decide", args=[undecided.pk]), {"through": "console"}).status_code == 403
    client.force_login(support)
    assert client.post(reverse("session-decide", args=[undecided.pk]), {"through": "tunnel"}).status_code == 400
    assert unknown.undecided(undecided.pk).exists()


def test_every_page_of_a_session_shows_attempts_that_its_runner_made_or_lost(support_page):
    with RunnerServer(Reply(200), Reply(503), Reply(breaks=True)) as server:
        session = bound_session(server)
        attempts = [compacted(session) for _ in range(3)]
    for name in ("session-detail", "compaction-list", "session-events"):
        assert support_page.get(reverse(name, args=[session.pk])).status_code == 200
    for attempt in attempts:
        answer = support_page.get(reverse("compaction-detail", args=[session.pk, attempt.pk]))
        assert answer.status_code == 200
        assert not attempt.explanation or attempt.explanation.split(":")[0] in text_of(answer)
    closed = f"http://127.0.0.1:{closed_port()}"
    assert closed not in text_of(answer)


def test_the_session_s_page_tells_of_its_runner_and_asks_what_is_to_follow(support_page, undecided):
    detail = text_of(support_page.get(reverse("session-detail", args=[undecided.pk])))
    assert "Runner <strong>box</strong>" in detail
    assert "carried out compaction a1 is not known" in detail
    assert "its outcome is not known" in detail
    dialog = support_page.get(reverse("compaction-create", args=[undecided.pk]), headers={"HX-Request": "true"})
    assert "nothing begins here" in text_of(dialog)
    answer = support_page.post(reverse("compaction-create", args=[undecided.pk]), {})
    assert (answer.status_code, "is not known. Nothing was started" in text_of(answer)) == (422, True)
    moved = support_page.post(reverse("session-decide", args=[undecided.pk]), {"through": "none"}, headers={"HX-Request": "true"})
    assert moved["HX-Redirect"] == reverse("session-detail", args=[undecided.pk])
    assert "carried out compaction" not in text_of(support_page.get(reverse("session-detail", args=[undecided.pk])))


def test_the_panel_and_the_button_say_who_is_asked(support_page):
    with RunnerServer(reply(202, {"operation_id": "op-1"})) as server:
        session = bound_session(server)
        before = text_of(support_page.get(reverse("session-detail", args=[session.pk])))
        assert "the runner box is asked first" in before
        assert "The runner box is asked first" in text_of(support_page.get(reverse("compaction-create", args=[session.pk])))
        compacted(session)
    under_way = text_of(support_page.get(reverse("session-detail", args=[session.pk])))
    assert "it is at it, and will report" in under_way
    assert "no sign of its worker" not in under_way
    from sessions_app.services import external
    from tests.runners.scenes import TESTS

    external.report_compaction(actor=TESTS, session=session, status="completed", operation_id="op-1")
    over = text_of(support_page.get(reverse("session-detail", args=[session.pk])))
    assert "compacted the agent's own context" in over


def test_a_session_with_nothing_to_fold_here_may_still_be_compacted_there(support_page):
    session = bound_session("http://127.0.0.1:1", turns=1)
    assert "asks box" in text_of(support_page.get(reverse("session-detail", args=[session.pk])))


def test_without_a_runner_nothing_of_it_stands_on_the_page(support_page):
    page = support_page.get(reverse("session-detail", args=[long_session().pk])).content.decode()
    assert '<div id="session-runner" class="panel-slot session__runner"></div>' in page
