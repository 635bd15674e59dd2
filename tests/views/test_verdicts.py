"""Why automatic compaction did or did not fire, and whether it rests: on a session's page, in the list, in its ledger, and set back."""

import uuid

import pytest
from django.test import Client
from django.urls import reverse

from sessions_app.engine.breaker import OPENS_AT
from sessions_app.models import Event, Session, SessionKind, SessionStatus
from sessions_app.selectors.session_filters import VIEWS
from sessions_app.services.compactions.automatic import before_turn
from sessions_app.services.compactions.lease import database_time
from tests.services.compaction_scenes import fresh, grow, long_session, set_policy

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody")]
WARNING = "3 compactions within 10 turns make no headway. What fills the window: tool results 900 (90%)."


@pytest.fixture
def support_page(client: Client, support) -> Client:
    client.force_login(support)
    return client


@pytest.fixture
def resting() -> Session:
    session = long_session(40, kind=SessionKind.INLINE)
    failed = {"breaker_failures": OPENS_AT, "breaker_failed_at": database_time(), "refill_warning": WARNING}
    Session.objects.filter(pk=session.pk).update(**failed)
    return fresh(session)


def page(client: Client, session: Session, name: str = "session-detail", *more: object) -> str:
    return client.get(reverse(name, args=[session.pk, *more])).content.decode()


def test_a_session_of_an_agent_is_evaluated_whenever_it_grows_and_nothing_fires(support_page):
    session = long_session(5)
    assert "are under the trigger of 6,400" in page(support_page, session)
    grow(session, 40)
    from sessions_app.services import signals

    signals.refresh(session.pk)
    html = page(support_page, session)
    assert "Why did it not fire?" in html
    assert "nothing here compacts it by itself" in html
    assert not session.compactions.exists()


def test_an_inline_session_tells_its_last_verdict_and_before_the_first_when_it_will(support_page, support_actor):
    session = long_session(40, kind=SessionKind.INLINE, status=SessionStatus.WORKING)
    assert "that happens before each turn" in page(support_page, session)
    before_turn(session=session, actor=support_actor, turn_id=uuid.uuid4())
    html = page(support_page, session)
    assert "Why did it fire?" in html
    assert "have reached the trigger of 6,400" in html


def test_an_attempt_that_is_opened_tells_its_rungs_and_what_was_refused(support_page, support_actor, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    session = long_session(40, kind=SessionKind.INLINE, status=SessionStatus.WORKING, model="a-model")
    set_policy(session, summarisers=["openai:gpt-4o", "extractive"])
    attempt = before_turn(session=session, actor=support_actor, turn_id=uuid.uuid4()).compaction
    html = page(support_page, session, "compaction-detail", attempt.pk)
    assert "How it was done" in html
    assert "It fired:" in html
    assert "Summarise</strong>" in html
    assert "no key is set (OPENAI_API_KEY)" in html.lower().replace("openai_api_key", "OPENAI_API_KEY")
    assert "not used" in html


def test_a_session_whose_compactions_fail_needs_attention_in_the_list_and_on_its_page(support_page, resting):
    assert "automatic compactions failed, so they rest until" in page(support_page, resting)
    assert WARNING in page(support_page, resting)
    html = support_page.get(reverse("session-list")).content.decode()
    assert "needs attention" in html
    assert Session.objects.filter(VIEWS["attention"][1], pk=resting.pk).exists()


def test_support_lets_it_start_again_after_being_asked_and_an_operator_may_not(support_page, resting, operator):
    address = reverse("breaker-reset", args=[resting.pk])
    assert "Let automatic compaction start again" in support_page.get(address).content.decode()
    assert fresh(resting).breaker_failures == OPENS_AT
    assert support_page.post(address, follow=True).status_code == 200
    assert (fresh(resting).breaker_failures, resting.refill_warning) == (0, "")
    assert Event.objects.get(type="breaker.reset").actor_role == "support"
    assert "needs attention" not in support_page.get(reverse("session-list")).content.decode()
    other = Client()
    other.force_login(operator)
    assert other.post(address).status_code == 403
