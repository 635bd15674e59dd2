"""A session on paper, and with colours that the system chooses."""

import pytest
from django.urls import reverse

from sessions_app.demo import stories

STICKING = """[...document.querySelectorAll("main *")].filter(
  (one) => one.checkVisibility() && getComputedStyle(one).position === "sticky").length"""


@pytest.fixture
def page(open_as, support, bring):
    session = bring(stories.two_checkpoints(), window=36_000)
    page = open_as(support)
    page.goto(f"{reverse('session-detail', args=[session.pk])}?layout=canonical&start=0")
    page.locator("#history article.entry").first.wait_for()
    return page


def test_on_paper_there_is_what_was_said_also_what_is_folded_and_nothing_to_press(page):
    folded = page.locator("details.fold:not([open]) > .text").first
    assert not folded.is_visible()
    page.emulate_media(media="print")
    assert folded.is_visible()
    assert page.locator("#session-title").is_visible()
    assert page.locator("#count-entries").is_visible()
    for gone in (".topbar", "#session-tabs", "#gauge a.compact", ".outline", ".minimap", ".find"):
        assert not page.locator(gone).first.is_visible(), gone
    assert page.evaluate(STICKING) == 0


def test_with_forced_colours_what_is_chosen_is_outlined_and_ribbons_keep_their_colour(page):
    page.emulate_media(forced_colors="active")
    chosen = page.locator(".segments__item[aria-current]").first
    assert chosen.evaluate("(one) => getComputedStyle(one).outlineStyle") == "solid"
    ribbon = "(one) => getComputedStyle(one, '::after').forcedColorAdjust"
    assert page.locator(".entry .fate").first.evaluate(ribbon) == "none"
