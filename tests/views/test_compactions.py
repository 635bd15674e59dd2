"""Compacting from the page: preview, request, cancel, revert, ledger, events, raw records."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse

from sessions_app.engine.terms import Status
from sessions_app.models import Compaction, Event, Session
from sessions_app.selectors.compact_preview import PreviewOptions, compact_preview
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from sessions_app.templatetags.console import tokens
from tests.engine.histories import Story
from tests.services.compaction_scenes import fresh, history_digest, long_session
from tests.stored import store_session

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("queue_of_nobody")]

FRAGMENT = {"HX-Request": "true"}


@pytest.fixture
def support_page(client: Client, support) -> Client:
    client.force_login(support)
    return client


def url(name: str, session: Session, *more: object) -> str:
    return reverse(name, args=[session.pk, *more])


def compacted(actor, session: Session) -> Compaction:
    compaction = request(actor=actor, session=session, instructions="Keep the names.").compaction
    run_compaction(compaction.pk)
    return fresh(compaction)


def test_the_preview_says_where_the_cut_is_and_what_it_changes_and_changes_nothing(support_page):
    session = long_session()
    html = support_page.get(url("compaction-create", session)).content.decode()
    assert "Boundary: keep from entry" in html
    assert "changes this console&#x27;s view only" in html
    assert not Compaction.objects.exists()


def test_the_preview_is_a_dialog_for_htmx_and_a_page_without(support_page):
    session = long_session()
    assert "<html" not in support_page.get(url("compaction-create", session), headers=FRAGMENT).content.decode()
    assert "<html" in support_page.get(url("compaction-create", session)).content.decode()


def test_the_preview_promises_what_the_run_then_does(support_page, support_actor):
    session = long_session()
    html = support_page.get(url("compaction-create", session)).content.decode()
    done = compacted(support_actor, session)
    assert f"keep from entry {done.boundary_index}" in html
    assert f"{done.entries_folded} entries" in html


def test_a_session_with_nothing_to_fold_says_why(support_page):
    html = support_page.get(url("compaction-create", store_session(Story().user().says().entries))).content.decode()
    assert "fewer than three rounds" in html


def test_posting_starts_one_attempt_and_leads_to_its_panel(support_page):
    session = long_session()
    answer = support_page.post(url("compaction-create", session), {"instructions": "Keep the names."})
    assert answer.status_code == 302
    assert answer["Location"] == f"{url('session-detail', session)}#compaction-panel"
    attempt = Compaction.objects.get()
    assert (attempt.requested_by, attempt.instructions, attempt.status) == ("ana", "Keep the names.", "requested")


def test_posting_by_htmx_answers_with_the_panel_and_the_gauge_and_closes_the_dialog(support_page):
    answer = support_page.post(url("compaction-create", long_session()), {}, headers=FRAGMENT)
    html = answer.content.decode()
    assert 'aria-label="Compaction a1"' in html
    assert 'id="gauge"' in html
    assert "hx-swap-oob" in html
    assert answer["HX-Retarget"] == "#compaction-panel"
    assert answer["HX-Trigger"] == "palimpsest:dialog-done"


def test_a_second_request_joins_the_first_and_says_so(support_page):
    session = long_session()
    support_page.post(url("compaction-create", session))
    html = support_page.post(url("compaction-create", session), headers=FRAGMENT).content.decode()
    assert Compaction.objects.count() == 1
    assert "was under way already" in html


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"instructions": "x" * 2001}, "this has 2001. Nothing was started."),
        ({"profile": "poetry"}, "poetry"),
        ({"boundary": "abc"}, "whole number"),
        ({"boundary": "2"}, "split"),
    ],
)
def test_an_option_that_cannot_be_met_is_refused_at_its_field_and_nothing_starts(support_page, data, said):
    html = support_page.post(url("compaction-create", long_session()), data, headers=FRAGMENT).content.decode()
    assert "field__error" in html
    assert said in html
    assert not Compaction.objects.exists()


def test_cancel_ends_the_attempt_and_leaves_the_history_as_it_was(support_page):
    session = long_session()
    before = history_digest(session)
    support_page.post(url("compaction-create", session))
    attempt = Compaction.objects.get()
    html = support_page.post(url("compaction-cancel", session, attempt.pk), headers=FRAGMENT).content.decode()
    assert fresh(attempt).status == "cancelled"
    assert "cancelled" in html
    assert history_digest(session) == before


def test_revert_asks_first_and_then_shows_the_whole_history(support_page, support_actor):
    session = long_session()
    compacted(support_actor, session)
    assert "Show the whole history again" in support_page.get(f"{url('compaction-revert', session)}?generation=0").content.decode()
    assert fresh(session).active_console is not None
    support_page.post(url("compaction-revert", session), {"generation": "0"})
    assert fresh(session).active_console is None
    support_page.post(url("compaction-revert", session), {"generation": "1"})
    assert fresh(session).active_console is not None


def test_a_generation_that_is_not_there_is_refused_in_words(support_page, support_actor):
    session = long_session()
    compacted(support_actor, session)
    response = support_page.post(url("compaction-revert", session), {"generation": "9"}, headers=FRAGMENT)
    assert response.status_code == 422
    assert "no checkpoint #9" in response.content.decode()
    assert fresh(session).active_console.generation == 1


def test_an_operator_may_look_but_not_steer(operator_page, support_actor):
    session = long_session()
    attempt = compacted(support_actor, session)
    assert operator_page.get(url("compaction-list", session)).status_code == 200
    for name, more in (("compaction-create", ()), ("compaction-revert", ()), ("compaction-cancel", (attempt.pk,))):
        assert operator_page.post(url(name, session, *more)).status_code == 403
    assert Compaction.objects.count() == 1
    assert Event.objects.filter(type="access.refused").count() == 3


def test_the_ledger_has_a_line_per_attempt_and_opens_each(support_page, support_actor):
    session = long_session()
    attempt = compacted(support_actor, session)
    html = support_page.get(url("compaction-list", session)).content.decode()
    assert "manual by ana" in html
    assert "committed" in html
    body = support_page.get(url("compaction-detail", session, attempt.pk), headers=FRAGMENT).content.decode()
    assert "<html" not in body
    for said in ("Primary request and intent", "Keep the names.", "compaction.persisted", "Mechanical state", "Policy as it was"):
        assert said in body


def test_an_attempt_of_another_session_is_404(support_page, support_actor):
    attempt = compacted(support_actor, long_session())
    assert support_page.get(url("compaction-detail", store_session(), attempt.pk)).status_code == 404


def test_the_events_of_a_session_stand_newest_first_with_who_and_what(support_page, support_actor):
    session = long_session()
    compacted(support_actor, session)
    html = support_page.get(url("session-events", session)).content.decode()
    assert html.index("compaction.persisted") < html.index("compaction.requested")
    assert "session.viewed" not in html


def test_a_session_without_a_source_says_that_it_has_no_records(support_page):
    session = store_session(Story().user().entries)
    assert "not read from a file" in support_page.get(url("session-raw", session)).content.decode()
    assert support_page.get(url("entry-raw", session, 0)).status_code == 404
    assert support_page.get(url("session-export", session)).status_code == 404


@pytest.mark.parametrize("name", ["compaction-create", "compaction-revert"])
def test_a_form_that_stands_on_a_page_of_its_own_is_sent_as_a_form(support_page, name):
    address = url(name, long_session())
    assert "hx-post" not in support_page.get(address).content.decode().partition("<main")[2]
    assert f'hx-post="{address}"' in support_page.get(address, headers=FRAGMENT).content.decode()


@pytest.mark.parametrize(("silent_s", "is_told"), [(3, False), (30, False), (45, True)])
def test_a_worker_that_gives_no_sign_is_told_in_the_panel(support_page, support_actor, silent_s, is_told):
    session = long_session()
    attempt = request(actor=support_actor, session=session).compaction
    last_sign = datetime.now(UTC) - timedelta(seconds=silent_s)
    Compaction.objects.filter(pk=attempt.pk).update(status=Status.RUNNING, phase="summarise", heartbeat_at=last_sign)
    html = support_page.get(url("session-detail", session)).content.decode()
    told = re.search(r'<span class="warn" data-silent-after="37.5"( hidden)?', html)
    assert told is not None
    assert (told[1] is None) is is_told


def test_an_attempt_that_waits_has_no_worker_to_hear_of(support_page, support_actor):
    session = long_session()
    attempt = request(actor=support_actor, session=session).compaction
    Compaction.objects.filter(pk=attempt.pk).update(status=Status.WAITING_FOR_IDLE)
    assert "data-silent-after" not in support_page.get(url("session-detail", session)).content.decode()


def test_a_changed_preview_says_what_the_next_request_would_measure_where_that_is_known(support_page):
    session = long_session()
    asked = {"profile": "coding", "preview": "1"}
    assert "As its provider counts" not in support_page.post(url("compaction-create", session), asked).content.decode()
    Session.objects.filter(pk=session.pk).update(
        calibration_prompts=3, calibration_factor=2.0, calibration_overhead=1_000, signal_tokens=90_000
    )
    html = support_page.post(url("compaction-create", session), asked).content.decode()
    preview = compact_preview(fresh(session), PreviewOptions(profile="coding"))
    assert preview.request_after == max(1_000 + 2 * preview.view_after, 90_000 - 2 * (preview.view_tokens - preview.view_after))
    assert f"the next request goes from about 90k to about {tokens(preview.request_after)}" in html
