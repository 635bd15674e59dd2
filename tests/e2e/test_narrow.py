"""On a phone: the history in the first screen, the compact button always in reach, and tables that need no scrolling sideways."""

import re

import pytest
from django.urls import reverse

from sessions_app.demo import stories
from sessions_app.models import ImportRun
from tests.e2e.watching import comes_true, resized

PHONE = {"width": 390, "height": 844}
SCROLLS_SIDEWAYS = """() => [...document.querySelectorAll(".scroller")]
  .filter((region) => region.scrollWidth > region.clientWidth + 1).map((region) => region.getAttribute("aria-label"))"""


@pytest.fixture
def compacted(bring):
    """A session with checkpoints, so that its page has everything that stands above a history."""
    return bring(stories.two_checkpoints(), window=36_000)


@pytest.fixture
def phone(open_as, support):
    page = open_as(support)
    page.set_viewport_size(PHONE)
    return page


def test_the_history_begins_in_the_upper_half_of_the_first_screen(phone, compacted):
    phone.goto(f"{reverse('session-detail', args=[compacted.pk])}?layout=canonical")
    first = phone.locator("#history article.entry").first
    first.wait_for()
    assert first.bounding_box()["y"] < PHONE["height"] * 0.65
    assert phone.locator(".split__head").bounding_box()["y"] < PHONE["height"] / 2 + 60


def test_the_compact_button_stays_in_sight_however_far_somebody_reads(phone, compacted):
    phone.goto(f"{reverse('session-detail', args=[compacted.pk])}?layout=canonical")
    button = phone.locator("#gauge a.compact")
    phone.evaluate("scrollTo({ top: document.documentElement.scrollHeight, behavior: 'instant' })")
    comes_true(phone, "scrollY > 900")
    assert 0 <= button.bounding_box()["y"] < 120
    button.click()
    phone.get_by_role("dialog").get_by_role("heading", name=re.compile("^Compact")).wait_for()


def test_what_is_folded_of_the_head_opens_by_key_and_a_wide_screen_shows_it_at_once(phone, compacted):
    phone.goto(reverse("session-detail", args=[compacted.pk]))
    facts, trigger = phone.locator("#count-entries"), phone.get_by_role("link", name=re.compile("^trigger "))
    assert not facts.is_visible()
    assert not trigger.is_visible()
    phone.locator(".session__more > summary").press("Enter")
    facts.wait_for(state="visible")
    assert trigger.is_visible()
    phone.reload()
    assert not facts.is_visible()
    phone.set_viewport_size({"width": 1400, "height": 900})
    facts.wait_for(state="visible")
    trigger.wait_for(state="visible")
    phone.locator(".session__more > summary").wait_for(state="hidden")


def test_no_table_has_to_be_scrolled_sideways(open_as, admin, compacted, in_thread):
    page = open_as(admin)
    page.set_viewport_size(PHONE)
    run = in_thread(ImportRun.objects.get)
    for path in (
        "/",
        "/imports/",
        f"/imports/{run.pk}/",
        reverse("session-events", args=[compacted.pk]),
        reverse("session-raw", args=[compacted.pk]),
        reverse("compaction-create", args=[compacted.pk]),
        "/users/",
        "/audit/",
        "/audit/verify/",
    ):
        page.goto(path)
        page.get_by_role("main").wait_for()
        assert page.evaluate(SCROLLS_SIDEWAYS) == [], path
    page.goto("/")
    resized(page, {"width": 1024, "height": 768}, SCROLLS_SIDEWAYS, expected=[])
