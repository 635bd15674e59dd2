"""Reviewing a draft in real browsers: asked for in the dialog, worded by two people, committed, discarded."""

import re

import pytest

from sessions_app.demo import stories, work
from sessions_app.demo.material import SHOP
from sessions_app.models import Compaction, Session
from tests.conftest import make_user


@pytest.fixture
def session(bring) -> Session:
    story, rng = stories.started("drafted", SHOP, seed=7)
    story.title("To be reviewed")
    while story.context_tokens < 14_000:
        work.turn(story, rng, SHOP, size=8)
    return bring(story, window=20_000)


@pytest.fixture
def second(transactional_db):
    return make_user("bea", "support")


def draft_of(page, session: Session) -> None:
    """Asks for a review in the dialog, and opens the draft."""
    page.goto(f"/sessions/{session.pk}/")
    page.keyboard.press("c")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Review before commit").check()
    dialog.get_by_role("button", name=re.compile(r"^Compact\b")).click()
    page.get_by_role("link", name="Review it").click()
    page.get_by_role("heading", name="Draft of a1").wait_for()


def word(page, text: str) -> None:
    """Adds a sentence to the summary and saves."""
    field = page.get_by_label("Summary", exact=True)
    field.fill(f"{field.input_value()}\n{text}")
    page.get_by_role("button", name="Save a new version").click()


def test_a_draft_is_worded_committed_and_then_what_the_model_sees(open_as, support, session, check_access):
    page = open_as(support)
    draft_of(page, session)
    page.get_by_role("navigation", name="Main").get_by_role("link", name=re.compile("^Drafts")).get_by_text("1").wait_for()
    check_access(page)
    word(page, "The café stays closed on Mondays.")
    page.get_by_text("Saved as version 2. Nothing is committed yet.").wait_for()
    assert Compaction.objects.get().generation is None
    page.get_by_role("button", name="Commit version 2").click()
    page.get_by_text("Result of compaction").or_(page.get_by_text("committed")).first.wait_for()
    page.goto(f"/sessions/{session.pk}/?layout=view")
    page.get_by_text("The café stays closed on Mondays.").first.wait_for()
    page.goto("/drafts/")
    page.get_by_role("heading", name="No draft waits").wait_for()


def test_of_two_people_who_word_it_the_second_is_told_and_loses_nothing(open_as, support, second, session, watch):
    watch.expected.append("status of 422")
    one = open_as(support)
    draft_of(one, session)
    other = open_as(second)
    other.goto(one.url)
    other.get_by_label("Summary", exact=True).wait_for()
    word(one, "From the first.")
    one.get_by_text("Saved as version 2").wait_for()
    other.get_by_text("saved version 2 meanwhile").wait_for()
    word(other, "From the second.")
    other.get_by_text("Your text was not saved; compare the two and save again.").wait_for()
    assert "From the second." in other.get_by_label("Summary", exact=True).input_value()
    assert Compaction.objects.get().summary_versions.count() == 2


def test_a_draft_is_found_in_the_list_and_discarded(open_as, support, session):
    page = open_as(support)
    draft_of(page, session)
    page.goto("/drafts/")
    page.get_by_role("link", name="a1").click()
    page.get_by_role("button", name="Discard").click()
    page.goto(f"/sessions/{session.pk}/compactions/")
    page.get_by_text("cancelled").first.wait_for()
    assert Compaction.objects.get().outcome == "cancelled"
