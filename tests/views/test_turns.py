"""Inline sessions on the page: begin one, write to it, take back, stop, try again; who may, and what is shown."""

import json
import re
import uuid

import pytest
from django.test import Client
from django.urls import reverse

from sessions_app.events.actors import system_actor
from sessions_app.live.fragments import session_frame
from sessions_app.models import Event, PolicyValue, Session, SessionKind, Turn, TurnStatus
from sessions_app.selectors.followed import session_cursor
from sessions_app.services.turns import claims
from sessions_app.services.turns.run import run_turn
from sessions_app.services.turns.send import send
from sessions_app.services.turns.sessions import begin
from tests.security.pages import pages_of
from tests.services.compaction_scenes import fresh, long_session

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody", "no_pauses")]

FRAGMENT = {"HX-Request": "true"}
HOSTILE = "<script>alert(1)</script>\u202egnp.exe {{ 7*7 }}"
SOMEBODY = system_actor("tests")


@pytest.fixture
def support_page(client: Client, support) -> Client:
    client.force_login(support)
    return client


@pytest.fixture
def session(db) -> Session:
    return begin(actor=SOMEBODY, model="scripted", title="Release")


def url(name: str, session: Session, *more: object) -> str:
    return reverse(name, args=[session.pk, *more])


def post(page: Client, session: Session, text: str, **more: object):
    return page.post(url("turn-create", session), {"text": text, **more})


def test_a_session_is_begun_from_the_list(support_page):
    assert reverse("session-create") in support_page.get(reverse("session-list")).content.decode()
    form = support_page.get(reverse("session-create")).content.decode()
    assert 'value="scripted"' in form
    wanted = {"title": "Release 4.2", "model": "scripted", "window": 8_000, "profile": "support", "system": "Be brief."}
    answer = support_page.post(reverse("session-create"), wanted)
    made = Session.objects.get()
    assert answer.url == url("session-detail", made)
    assert (made.kind, made.title, made.window, made.entry_count) == (SessionKind.INLINE, "Release 4.2", 8_000, 1)
    assert PolicyValue.objects.get().value == "support"
    assert Event.objects.get(type="session.created").actor_name == "ana"


@pytest.mark.parametrize(
    ("field", "value"), [("model", "nobody"), ("window", "10"), ("window", "many"), ("profile", "none"), ("title", "x" * 201)]
)
def test_a_wrong_value_is_told_beside_its_field_and_nothing_is_begun(support_page, field, value):
    answer = support_page.post(reverse("session-create"), {"model": "scripted", field: value})
    assert answer.status_code == 422
    assert "field__error" in answer.content.decode()
    assert not Session.objects.exists()


def test_a_message_is_sent_with_and_without_scripts(support_page, session):
    answer = post(support_page, session, "Without scripts")
    assert answer.url == f"{url('session-detail', session)}#turns"
    answer = support_page.post(url("turn-create", session), {"text": "With scripts"}, headers=FRAGMENT)
    html = answer.content.decode()
    assert "<html" not in html
    assert "With scripts" in html
    assert uuid.UUID(json.loads(answer["HX-Trigger"])["palimpsest:sent"]["key"])
    assert list(Turn.objects.order_by("number").values_list("text", "sent_by")) == [("Without scripts", "ana"), ("With scripts", "ana")]


def test_a_form_that_is_sent_twice_is_one_message(support_page, session):
    html = support_page.get(url("session-detail", session)).content.decode()
    key = re.search(r'name="key" value="([^"]+)"', html)[1]
    for _ in range(2):
        post(support_page, session, "Once", key=key)
    assert Turn.objects.count() == 1


def test_a_form_whose_text_was_changed_after_it_had_been_sent_is_a_conflict_that_sending_again_settles(support_page, session):
    key = str(uuid.uuid4())
    post(support_page, session, "Once", key=key)
    plain = post(support_page, session, "Once, please", key=key)
    html = plain.content.decode()
    assert plain.status_code == 409
    assert "Message 1 had this key" in html
    assert "Once, please</textarea>" in html
    new = re.search(r'name="key" value="([^"]+)"', html)[1]
    assert new != key
    fragment = support_page.post(url("turn-create", session), {"text": "Once, please", "key": key}, headers=FRAGMENT)
    assert (fragment.status_code, fragment["X-Fragment"], fragment["HX-Retarget"]) == (409, "form", "#composer")
    assert Turn.objects.count() == 1
    assert post(support_page, session, "Once, please", key=new).status_code == 302
    assert list(Turn.objects.order_by("number").values_list("text", flat=True)) == ["Once", "Once, please"]


def test_an_empty_message_is_refused_in_the_form(support_page, session):
    plain = post(support_page, session, "  ")
    assert (plain.status_code, "The message is empty" in plain.content.decode()) == (422, True)
    fragment = support_page.post(url("turn-create", session), {"text": ""}, headers=FRAGMENT)
    assert (fragment.status_code, fragment["X-Fragment"], fragment["HX-Retarget"]) == (422, "form", "#composer")


def test_the_page_shows_what_runs_what_waits_and_what_can_be_done(support_page, session):
    post(support_page, session, "The first")
    post(support_page, session, "The second")
    held = claims.claim(session.pk)
    claims.write_answer(held, "The beginning of an ans")
    html = support_page.get(url("session-detail", session)).content.decode()
    running, waiting = Turn.objects.order_by("number")
    assert "The beginning of an ans" in html
    assert url("turn-interrupt", session, running.pk) in html
    assert url("turn-withdraw", session, waiting.pk) in html
    assert "queued" in html


def test_followers_get_the_text_of_an_answer_although_no_event_tells_of_it(support_page, session):
    post(support_page, session, "The first")
    held = claims.claim(session.pk)
    cursor = session_cursor(session.pk)
    claims.write_answer(held, "The beginning")
    frame = session_frame(session.pk, cursor)
    assert frame.cursor == cursor
    assert "The beginning" in frame.messages[0]
    assert 'hx-swap-oob="true"' in frame.messages[0]


def test_nothing_is_told_where_no_answer_is_under_way(session):
    assert session_frame(session.pk, session_cursor(session.pk)).messages == ()
    imported = long_session(turns=2)
    assert session_frame(imported.pk, session_cursor(imported.pk)).messages == ()


def test_a_message_is_taken_back_and_a_turn_stopped_and_tried_again(support_page, session):
    for text in ("one", "two"):
        post(support_page, session, text)
    one, two = Turn.objects.order_by("number")
    claims.claim(session.pk)
    assert support_page.post(url("turn-withdraw", session, two.pk)).status_code == 302
    assert fresh(two).status == TurnStatus.WITHDRAWN
    html = support_page.post(url("turn-interrupt", session, one.pk), headers=FRAGMENT).content.decode()
    assert "stopping" in html
    late = support_page.post(url("turn-withdraw", session, one.pk), headers=FRAGMENT).content.decode()
    assert "delivered already" in late


@pytest.mark.parametrize("name", ["turn-withdraw", "turn-interrupt", "turn-retry"])
def test_an_operator_reads_and_may_not_write(client, operator, session, name):
    turn = send(actor=SOMEBODY, session=session, text="Hello")
    client.force_login(operator)
    html = client.get(url("session-detail", session)).content.decode()
    assert "<textarea" not in html
    assert reverse("session-create") not in client.get(reverse("session-list")).content.decode()
    assert client.post(url(name, session, turn.pk)).status_code == 403
    assert post(client, session, "Hello").status_code == 403
    assert client.get(reverse("session-create")).status_code == 403
    assert Turn.objects.get().status == TurnStatus.QUEUED


def test_who_is_in_no_group_finds_nothing(client, outsider, session):
    client.force_login(outsider)
    assert post(client, session, "Hello").status_code == 404
    assert client.get(reverse("session-create")).status_code == 404


def test_a_turn_of_another_session_is_not_found(support_page, session):
    other = begin(actor=SOMEBODY, model="scripted")
    turn = send(actor=SOMEBODY, session=other, text="Hello")
    for name in ("turn-withdraw", "turn-interrupt", "turn-retry"):
        assert support_page.post(url(name, session, turn.pk)).status_code == 404
    assert fresh(turn).status == TurnStatus.QUEUED


def test_a_session_of_an_agent_has_no_field_for_messages_and_takes_none(support_page):
    imported = long_session(turns=2)
    assert "composer" not in support_page.get(url("session-detail", imported)).content.decode()
    assert "held by its agent" in support_page.get(url("turn-create", imported)).content.decode()
    assert post(support_page, imported, "Hello").status_code == 422
    assert not Turn.objects.exists()


def test_every_page_of_an_inline_session_can_be_opened_and_shows_hostile_text_as_text(support_page, session):
    send(actor=SOMEBODY, session=session, text=HOSTILE)
    run_turn(session.pk)
    send(actor=SOMEBODY, session=session, text=HOSTILE)
    claims.write_answer(claims.claim(session.pk), HOSTILE)
    send(actor=SOMEBODY, session=session, text=HOSTILE)
    for address in (*pages_of(session), url("turn-create", session)):
        answer = support_page.get(address)
        assert answer.status_code in {200, 302, 422}, address
        html = answer.content.decode() if not answer.streaming else ""
        assert "<script>alert" not in html, address
    assert "\u202e" not in support_page.get(url("turn-create", session)).content.decode()


def test_what_can_be_exported_of_a_session_that_has_no_file(support_page, session):
    send(actor=SOMEBODY, session=session, text="Hello")
    run_turn(session.pk)
    answer = support_page.get(url("session-export", session))
    assert answer.status_code in {200, 302, 404, 422}


def test_the_history_of_an_inline_session_takes_one_query_more(support_page, session, django_assert_max_num_queries):
    send(actor=SOMEBODY, session=session, text="Hello")
    run_turn(session.pk)
    support_page.get(url("session-detail", session))  # noted as viewed
    with django_assert_max_num_queries(40) as queries:
        support_page.get(url("session-detail", session))
    assert sum('"sessions_app_turn"' in query["sql"] for query in queries.captured_queries) == 1
