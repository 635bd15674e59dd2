"""Pinning and excluding in a browser: by key, seen by others at once, and at any moment of the past."""

import re

import pytest

from sessions_app.demo import stories
from sessions_app.models import Session
from tests.e2e.watching import comes_true

FOCUSED = "document.activeElement.textContent.trim()"


@pytest.fixture
def session(bring) -> Session:
    return bring(stories.slow_partials(), window=64_000)


def test_a_decision_by_key_keeps_place_and_focus_and_others_see_it(open_as, support, operator, session, check_access):
    mine, theirs = open_as(support), open_as(operator, scheme="dark")
    for page in (mine, theirs):
        page.goto(f"/sessions/{session.pk}/?layout=canonical&at=0")
    entry = mine.locator("article.entry--user").first
    entry.locator(".entry__index").focus()
    for _ in range(20):
        mine.keyboard.press("Tab")
        if mine.evaluate(FOCUSED).startswith("Pin"):
            break
    mine.keyboard.press("Enter")
    mine.locator(".fate--pinned").first.wait_for()
    comes_true(mine, f"{FOCUSED}.startsWith('Unpin')")
    theirs.locator(".fate--pinned").first.wait_for()
    theirs.locator("article.entry--user").first.get_by_role("button", name=re.compile("^Unpin")).wait_for()
    assert theirs.locator("article.entry--user").first.get_by_role("button", name=re.compile("^Unpin")).is_disabled()
    check_access(mine)
    mine.keyboard.press("Enter")
    mine.locator(".fate--pinned").first.wait_for(state="detached")


def test_the_slider_goes_back_and_the_banner_leads_out(open_as, support, session, check_access):
    page = open_as(support)
    page.goto(f"/sessions/{session.pk}/?layout=canonical&at=0")
    page.locator("article.entry--user").first.hover()
    page.locator("article.entry--user").first.get_by_role("button", name=re.compile("^Pin")).click()
    page.locator(".fate--pinned").first.wait_for()
    page.goto(f"/sessions/{session.pk}/?layout=split")
    slider = page.get_by_role("slider")
    slider.press("PageDown")
    page.locator(".time__form").get_by_role("button", name="Show").click()
    page.get_by_text(re.compile("As it was when entry .* was the newest")).wait_for()
    assert page.locator(".fate--pinned").count() == 0
    check_access(page)
    page.get_by_role("link", name="Back to now").click()
    page.get_by_text(re.compile("As it was when entry")).wait_for(state="detached")
