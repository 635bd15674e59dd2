"""Decisions about entries on the page: with and without scripts, by whom, and what the page shows then."""

import pytest
from django.test import Client
from django.urls import reverse

from sessions_app.models import Event
from sessions_app.selectors import plans
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.overrides import exclude, pin
from tests.services.compaction_scenes import fresh, grow, long_session

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody")]


@pytest.fixture
def support_page(support) -> Client:
    client = Client()
    client.force_login(support)
    return client


@pytest.fixture
def folded(support_actor):
    session = long_session()
    run_compaction(request(actor=support_actor, session=session).compaction.pk)
    return fresh(session)


def address(session, index: int, decision: str) -> str:
    return reverse(f"entry-{decision}", args=[session.pk, index])


def page(client, session, query: str = "") -> str:
    response = client.get(reverse("session-detail", args=[session.pk]) + query)
    assert response.status_code == 200
    return response.content.decode()


def test_without_scripts_a_decision_leads_back_to_its_entry_and_says_what_was_done(support_page, folded):
    response = support_page.post(address(folded, 1, "pin"), {"query": "layout=split&detail=no-output"}, follow=True)
    assert response.redirect_chain[0][0].endswith("?layout=split&detail=no-output&at=1#e1")
    html = response.content.decode()
    assert "Entry 1 stays word for word in every view. The same goes for 2" in html
    assert html.count('class="fate fate--pinned"') >= 1
    assert plans.overrides_of(fresh(folded)).pinned == {1, 2}


def test_with_scripts_the_window_comes_back_as_it_is_now(support_page, folded):
    window = {"query": "layout=split", "first": "0", "last": "20"}
    response = support_page.post(address(folded, 4, "pin"), window, headers={"HX-Request": "true"})
    html = response.content.decode()
    assert html.count("data-window") == 1
    assert 'data-first="0"' in html
    assert 'id="e4"' in html
    assert 'formaction="/sessions/' in html
    assert "Unpin" in html
    assert "load-later" not in html
    assert 'id="decided"' in html
    again = support_page.post(address(folded, 4, "unpin"), window, headers={"HX-Request": "true"}).content.decode()
    assert "Unpin" not in again


def test_every_decision_has_its_address(support_page, folded):
    for decision in ("pin", "unpin", "exclude", "include"):
        assert support_page.post(address(folded, 4, decision)).status_code == 302
        assert support_page.get(address(folded, 4, decision)).status_code == 405
    assert Event.objects.filter(type__startswith="entry.").count() == 4


def test_an_operator_sees_what_is_decided_and_why_it_is_not_for_them(operator_page, support_actor, folded):
    pin(actor=support_actor, session=folded, index=4)
    html = page(operator_page, folded, "?layout=split&at=4")
    assert 'class="fate fate--pinned"' in html
    assert 'disabled title="Your role reads. Support and admins pin and exclude."' in html
    refused = operator_page.post(address(folded, 4, "unpin"))
    assert refused.status_code == 403
    assert plans.overrides_of(fresh(folded)).pinned == {4}


def test_what_can_not_be_decided_is_said_in_words(support_page, folded):
    divider = folded.active_console.divider_index
    for headers in ({}, {"HX-Request": "true"}):
        response = support_page.post(address(folded, divider, "pin"), {"first": "0", "last": "5"}, headers=headers)
        assert response.status_code == 409
        assert "is a notice, which no model ever sees" in response.content.decode()


@pytest.mark.parametrize("query", ["//evil.example/", "at=1&layout=<script>", "x" * 3000, "layout=split#frag"])
def test_a_strange_query_leads_nowhere_else(support_page, folded, query):
    response = support_page.post(address(folded, 4, "pin"), {"query": query})
    assert response.status_code == 302
    assert response["Location"].startswith(f"/sessions/{folded.pk}/?")
    assert "<script" not in response["Location"]


def test_the_view_shows_a_pin_behind_the_block_and_nothing_that_is_excluded(support_page, support_actor, folded):
    pin(actor=support_actor, session=folded, index=4)
    exclude(actor=support_actor, session=folded, index=folded.entry_count - 2)
    split = page(support_page, folded, "?layout=split&at=40")
    assert "pinned, from 4" in split
    assert "not sent: excluded" in split
    view = page(support_page, folded, "?layout=view")
    assert "what is shown is legal for a provider" in view
    assert ">Pinned and excluded" in view


def test_the_dialog_counts_what_is_pinned(support_page, support_actor):
    session = long_session()
    pin(actor=support_actor, session=session, index=1)
    html = support_page.get(reverse("compaction-create", args=[session.pk])).content.decode()
    assert "2 pinned before it" in html


def test_the_page_of_the_past_shows_the_view_of_then_and_leads_back(support_page, support_actor, folded):
    pin(actor=support_actor, session=folded, index=4)
    last = folded.entry_count - 1
    grow(folded, turns=2)
    then = page(support_page, folded, f"?layout=split&at_view={last - 1}")
    assert f"As it was when entry {last - 1} was the newest." in then
    assert "Back to now" in then
    assert 'class="fate fate--summarised"' not in then
    assert f'id="e{last}"' not in then
    assert "formaction" not in then
    with_checkpoint = page(support_page, folded, f"?layout=split&at_view={last}&at=0")
    assert 'class="fate fate--pinned"' in with_checkpoint
    assert 'class="fate fate--summarised"' in with_checkpoint
    assert support_page.get(reverse("session-detail", args=[folded.pk]) + "?at_view=99999").status_code == 400


def test_going_back_exactly_as_it_was_is_a_choice_of_the_dialog(support_page, support_actor, folded):
    pin(actor=support_actor, session=folded, index=4)
    where = reverse("compaction-revert", args=[folded.pk])
    assert "Exactly as it was" in support_page.get(where, {"generation": 1}).content.decode()
    support_page.post(where, {"generation": 1, "as_it_was": "on"})
    assert plans.overrides_of(fresh(folded)).is_empty
