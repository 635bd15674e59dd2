"""The goal of a session on its pages: found or set, by whom, and set by a plain form."""

import pytest
from django.test import Client
from django.urls import reverse

from sessions_app.models import Event, Session
from tests.engine.histories import Story
from tests.stored import store_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def support_page(support) -> Client:
    client = Client()
    client.force_login(support)
    return client


@pytest.fixture
def session() -> Session:
    return store_session(Story().user("Make the importer stream.\nUnder 200 MB.").says("I will.").entries, title="Importer")


def goal_page(client: Client, session: Session) -> str:
    return client.get(reverse("session-goal", args=[session.pk])).content.decode()


def set_to(client: Client, session: Session, text: str):
    return client.post(reverse("session-goal", args=[session.pk]), {"goal": text})


def test_a_goal_that_nobody_set_is_shown_with_the_entry_that_says_it(operator_page: Client, session):
    page = goal_page(operator_page, session)
    assert "Make the importer stream." in page
    assert f'href="{reverse("entry-detail", args=[session.pk, 0])}"' in page
    assert "nobody set it" in page
    assert "as the user said" in operator_page.get(reverse("session-detail", args=[session.pk])).content.decode()


def test_support_sets_it_and_every_page_of_the_session_says_so(support_page: Client, session):
    answer = set_to(support_page, session, "Stream any archive.\r\nKeep offsets in <b>bytes</b>.")
    assert answer["Location"] == reverse("session-detail", args=[session.pk])
    page = goal_page(support_page, session)
    assert "Stream any archive.\nKeep offsets in &lt;b&gt;bytes&lt;/b&gt;." in page
    assert "Set by ana" in page
    head = support_page.get(reverse("session-events", args=[session.pk])).content.decode()
    assert "<bdi>Stream any archive." in head
    assert "<b>bytes" not in page + head
    event = Event.objects.get(type="session.goal_changed")
    assert (event.actor_name, event.before) == ("ana", {"goal": ""})


def test_an_empty_one_leaves_it_to_what_the_messages_tell(support_page: Client, session):
    set_to(support_page, session, "Another goal")
    set_to(support_page, session, "  ")
    assert "nobody set it" in goal_page(support_page, session)


@pytest.mark.parametrize("text", ["x" * 601, "a\x00b"])
def test_what_can_t_be_a_goal_is_told_in_its_place_and_what_was_typed_stays(support_page: Client, session, text):
    answer = set_to(support_page, session, text)
    assert answer.status_code == 422
    assert 'class="field__error"' in answer.content.decode()
    session.refresh_from_db()
    assert session.goal == ""


def test_line_ends_of_a_browser_count_as_one_character(support_page: Client, session):
    assert set_to(support_page, session, "\r\n".join(["x" * 99] * 6)).status_code == 302


def test_who_may_only_read_sees_it_without_a_form_and_is_refused(operator_page: Client, session):
    assert "<textarea" not in goal_page(operator_page, session)
    assert set_to(operator_page, session, "Mine").status_code == 403
    session.refresh_from_db()
    assert session.goal == ""
