"""Reviewing a draft, moving a boundary, comparing two compactions and forking, from their pages."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from sessions_app.engine.terms import Status
from sessions_app.models import Compaction, Event, Session
from sessions_app.selectors.compact_preview import BESIDE_FORCE, PreviewOptions, beside, compact_preview, strip
from sessions_app.services.compactions import drafts
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from tests.engine.histories import Story
from tests.services.compaction_scenes import fresh, grow, long_session, view_hash
from tests.stored import store_session

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("queue_of_nobody")]

FRAGMENT = {"HX-Request": "true"}


@pytest.fixture
def support_page(client: Client, support) -> Client:
    client.force_login(support)
    return client


def url(name: str, session: Session, *more: object) -> str:
    return reverse(name, args=[session.pk, *more])


def done(actor, session: Session, **options) -> Compaction:
    compaction = request(actor=actor, session=fresh(session), **options).compaction
    run_compaction(compaction.pk)
    return fresh(compaction)


def drafted(actor, session: Session) -> Compaction:
    return done(actor, session, changes={"review_before_commit": True})


def text_of(answer) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def test_a_review_that_was_asked_for_in_the_dialog_leads_to_a_draft_in_the_panel_and_the_ledger(support_page):
    session = long_session()
    support_page.post(url("compaction-create", session), {"review": "on"})
    attempt = Compaction.objects.get()
    run_compaction(attempt.pk)
    assert fresh(attempt).status == Status.DRAFTED
    assert "waits for a review" in support_page.get(url("session-detail", session)).content.decode()
    ledger = support_page.get(url("compaction-list", session)).content.decode()
    assert url("draft-detail", session, attempt.pk) in ledger


def test_a_person_words_the_summary_otherwise_sees_what_that_changes_and_commits_it(support_page, support_actor):
    session = long_session()
    draft = drafted(support_actor, session)
    page = url("draft-detail", session, draft.pk)
    answer = support_page.post(page, {"text": "## Next step\nWorded by ana.", "base_version": 1}, follow=True)
    text = text_of(answer)
    assert "Saved as version 2" in text
    assert "Version 2 against 1" in text
    assert "The summary lacks these sections" in text
    assert "if version 2 is committed now" in text
    answer = support_page.post(url("draft-commit", session, draft.pk), {"version": 2}, follow=True)
    assert "is committed as generation #1" in text_of(answer)
    assert fresh(draft).summary == "## Next step\nWorded by ana."


def test_an_earlier_version_can_be_read_and_one_that_there_is_not_is_not_found(support_page, support_actor):
    session = long_session()
    draft = drafted(support_actor, session)
    drafts.edit(actor=support_actor, session=session, compaction_id=draft.pk, text="Shorter.")
    page = url("draft-detail", session, draft.pk)
    assert "version 1 of 2" in text_of(support_page.get(f"{page}?version=1"))
    assert support_page.get(f"{page}?version=9").status_code == 404
    assert support_page.get(f"{page}?version=x").status_code == 400


def test_who_was_overtaken_keeps_the_text_and_is_told(support_page, support_actor):
    session = long_session()
    draft = drafted(support_actor, session)
    page = url("draft-detail", session, draft.pk)
    drafts.edit(actor=support_actor, session=session, compaction_id=draft.pk, text="From elsewhere.")
    answer = support_page.post(page, {"text": "Mine, unsaved.", "base_version": 1})
    assert answer.status_code == 422
    assert "saved version 2 while you edited version 1" in text_of(answer)
    assert "Mine, unsaved." in answer.content.decode()
    told = support_page.get(f"{page}?base=1", headers=FRAGMENT).content.decode()
    assert "<html" not in told
    assert "saved version 2 meanwhile" in told
    assert "Nothing was committed" in text_of(support_page.post(url("draft-commit", session, draft.pk), {"version": 1}, follow=True))


def test_a_stale_draft_says_why_and_offers_to_run_again_with_what_was_asked(support_page, support_actor):
    session = long_session()
    draft = done(support_actor, session, changes={"review_before_commit": True}, instructions="Keep the names.", profile="coding")
    session.entries.filter(index=2).update(off_branch=True)
    html = support_page.get(url("draft-detail", session, draft.pk)).content.decode()
    again = f"{url('compaction-create', session)}?attempt={draft.pk}"
    assert "changed after this draft was made" in html
    assert again in html
    assert "Commit version" not in html
    dialog = support_page.get(again).content.decode()
    assert "Keep the names." in dialog
    assert '<option value="coding" selected>coding</option>' in dialog


def test_discarding_leads_to_the_attempt_and_says_that_nothing_was_changed(support_page, support_actor):
    session = long_session()
    before = view_hash(session)
    draft = drafted(support_actor, session)
    answer = support_page.post(url("draft-discard", session, draft.pk), follow=True)
    assert "The draft was discarded. Nothing was changed." in text_of(answer)
    assert view_hash(session) == before
    assert "was discarded" in text_of(support_page.get(url("draft-detail", session, draft.pk)))
    assert "it is cancelled" in text_of(support_page.post(url("draft-commit", session, draft.pk), follow=True))


def test_an_operator_reads_a_draft_and_decides_nothing(client, operator, support_actor):
    session = long_session()
    draft = drafted(support_actor, session)
    client.force_login(operator)
    assert client.get(url("draft-detail", session, draft.pk)).status_code == 200
    assert client.get(reverse("draft-list")).status_code == 200
    assert client.post(url("draft-detail", session, draft.pk), {"text": "Mine."}).status_code == 403
    for name in ("draft-commit", "draft-discard"):
        assert client.post(url(name, session, draft.pk)).status_code == 403
    assert client.post(url("session-fork", session)).status_code == 403
    assert fresh(draft).status == Status.DRAFTED
    assert {event.payload["action"] for event in Event.objects.filter(type="access.refused")} == {"draft", "fork"}


def test_the_list_of_drafts_names_each_with_its_state(support_page, support_actor):
    assert "No draft waits" in text_of(support_page.get(reverse("draft-list")))
    fits, stale = long_session(title="One that fits"), long_session(title="One that does not")
    for session in (fits, stale):
        drafted(support_actor, session)
    stale.entries.filter(index=2).update(off_branch=True)
    text = text_of(support_page.get(reverse("draft-list")))
    assert "One that fits" in text
    assert "can be committed" in text
    assert "stale" in text


def test_a_hostile_summary_stays_text_on_its_page(support_page, support_actor):
    session = long_session()
    draft = drafted(support_actor, session)
    drafts.edit(actor=support_actor, session=session, compaction_id=draft.pk, text="## Next step\n<script>alert(1)</script></textarea><b>x")
    html = support_page.get(url("draft-detail", session, draft.pk)).content.decode()
    assert "<script>alert" not in html
    assert "</textarea><b>" not in html


# The dialog.


def test_moving_the_boundary_keeps_what_was_written_and_starts_nothing(support_page):
    session = long_session()
    suggested = compact_preview(session)
    answer = support_page.post(url("compaction-create", session), {"instructions": "Keep the names.", "move": suggested.cuts.earlier_turn})
    html = answer.content.decode()
    assert answer.status_code == 200
    assert f"keep from entry {suggested.cuts.earlier_turn}" in html
    assert "Keep the names." in html
    assert not Compaction.objects.exists()


def test_the_address_of_the_dialog_names_its_boundary(support_page):
    session = long_session()
    wanted = compact_preview(session).cuts.earlier_turn
    assert f"keep from entry {wanted}" in support_page.get(f"{url('compaction-create', session)}?boundary={wanted}").content.decode()


@pytest.mark.parametrize("place", ["earlier", "later", "earlier_turn", "suggested"])
def test_every_cut_that_is_offered_is_what_the_run_then_does(support_actor, place):
    session = long_session()
    suggested = compact_preview(session)
    wanted = None if place == "suggested" else getattr(suggested.cuts, place)
    said = compact_preview(session, PreviewOptions(boundary=wanted))
    made = done(support_actor, session, boundary=wanted, force=True) if wanted else done(support_actor, session)
    assert made.status == Status.COMPLETED, made.explanation
    assert (made.boundary_index, made.entries_folded, made.entries_kept) == (said.boundary_index, said.folded, said.kept)


def test_a_second_compaction_moves_its_boundary_as_well(support_actor):
    session = long_session()
    done(support_actor, session)
    grow(session, 8)
    suggested = compact_preview(fresh(session))
    said = compact_preview(fresh(session), PreviewOptions(boundary=suggested.cuts.earlier))
    made = done(support_actor, session, boundary=suggested.cuts.earlier, force=True)
    assert (made.boundary_index, made.entries_folded, made.entries_kept) == (said.boundary_index, said.folded, said.kept)


def test_a_cut_that_would_split_a_call_names_it_and_the_nearest_legal_ones(support_page):
    session = long_session()
    result = session.entries.filter(kind="result").order_by("index")[5].index
    text = text_of(support_page.post(url("compaction-create", session), {"boundary": result, "preview": "1"}))
    assert re.search(rf"A cut at entry {result} would split the call call-5 \(entry {result - 1}\)", text)
    assert f"The nearest legal cuts are {result - 1} and {result + 1}." in text
    assert not Compaction.objects.exists()


def test_two_policies_stand_side_by_side_and_the_protected_messages_tell_them_apart(support_page):
    session = long_session()
    now, coding = compact_preview(session), compact_preview(session, beside(PreviewOptions(), "coding"))
    assert (now.protected, coding.protected) == (0, 12)
    assert coding.boundary_index < now.boundary_index
    forced = compact_preview(session, beside(PreviewOptions(), BESIDE_FORCE))
    assert forced.boundary_index >= now.boundary_index
    html = support_page.post(url("compaction-create", session), {"preview": "1", "beside": "coding"}).content.decode()
    assert "last 12 messages protected" in html


def test_a_preview_asks_no_summariser_and_writes_no_row(support_page, monkeypatch):
    session = long_session()
    monkeypatch.setattr("sessions_app.engine.extractive.ExtractiveSummariser.summarise", lambda *_: pytest.fail("a summariser was asked"))
    support_page.post(url("compaction-create", session), {"preview": "1", "force": "on", "beside": BESIDE_FORCE})
    assert not Compaction.objects.exists()
    assert not Event.objects.filter(type__startswith="compaction").exists()


def test_the_strip_is_as_long_as_its_history_and_never_longer_than_its_bars():
    assert strip(store_session([]), 0) == ()
    assert len(strip(store_session(Story().user().says().entries), 1)) == 2
    bars = strip(long_session(100), 200)
    assert len(bars) == 200
    assert {bar.is_folded for bar in bars} == {True, False}
    assert all(0 < bar.height <= 48 for bar in bars)


# Comparing and forking.


def test_two_attempts_are_compared_by_numbers_policy_and_summary(support_page, support_actor):
    session = long_session()
    done(support_actor, session, profile="coding", boundary=compact_preview(session).cuts.earlier_turn)
    grow(session, 8)
    second = done(support_actor, session, instructions="Keep the names.")
    assert second.generation == 2, second.explanation
    text = text_of(support_page.get(url("compaction-compare", session)))
    assert "kept from entry" in text
    assert "policy: profile coding conversation" in text
    assert "Keep the names." in text
    detail = text_of(support_page.get(url("compaction-detail", session, second.pk)))
    assert "Against #1" in detail
    assert support_page.get(f"{url('compaction-compare', session)}?one=x").status_code == 400
    assert "There are no two to compare" in text_of(support_page.get(f"{url('compaction-compare', session)}?one=7&other=9"))


def test_forking_from_its_page_leads_to_the_copy_which_names_its_origin(support_page, support_actor):
    session = long_session(title="The origin")
    done(support_actor, session)
    assert "Fork at #1" in text_of(support_page.get(f"{url('session-fork', session)}?generation=1"))
    answer = support_page.post(url("session-fork", session), {"generation": 1, "title": "Another way"}, follow=True)
    copy = Session.objects.get(title="Another way")
    assert answer.redirect_chain[-1][0] == url("session-detail", copy)
    assert "fork of The origin" in text_of(answer)
    assert view_hash(copy) == view_hash(session)
    refused = support_page.post(url("session-fork", session), {"generation": 9})
    assert refused.status_code == 422
    assert "no checkpoint #9" in text_of(refused)


def test_the_first_version_of_a_draft_is_compared_with_none(support_page, support_actor):
    session = long_session()
    draft = drafted(support_actor, session)
    page = url("draft-detail", session, draft.pk)
    assert "against" not in text_of(support_page.get(page))
    support_page.post(page, {"text": "## Next step\nWorded by ana.", "base_version": 1})
    assert "Version 2 against 1" in text_of(support_page.get(page))
    assert "against" not in text_of(support_page.get(f"{page}?version=1"))


def test_a_version_names_its_summariser_as_everywhere_and_a_person_by_the_name(support_page, support_actor):
    session = long_session()
    draft = done(support_actor, session, changes={"review_before_commit": True, "summarisers": ("scripted",)})
    for page in (url("draft-detail", session, draft.pk), reverse("draft-list")):
        assert "by extractive, paced" in text_of(support_page.get(page))
    support_page.post(url("draft-detail", session, draft.pk), {"text": "## Next step\nWorded by ana.", "base_version": 1})
    assert "version 2 of 2, by ana" in text_of(support_page.get(url("draft-detail", session, draft.pk)))
