"""Searching in a browser: from any page, by keys alone, into an entry and from hit to hit."""

from django.urls import reverse

from sessions_app.demo import stories
from sessions_app.services import search_index
from tests.e2e.watching import comes_true


def test_from_any_page_to_a_hit_and_on_to_the_next_by_keys(open_as, operator, bring, in_thread):
    session = bring(stories.two_checkpoints())
    in_thread(search_index.index_lagging)
    page = open_as(operator)
    page.goto("/imports/")
    page.keyboard.press("s")
    page.keyboard.type("the")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search/?q=the")
    page.locator(".hit mark").first.wait_for()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/sessions/{session.pk}/**at=**")
    here = page.url
    page.keyboard.press("/")
    comes_true(page, "document.activeElement.id === 'find-text'")
    page.keyboard.press("Escape")
    comes_true(page, "CSS.highlights.get('search')?.size > 0")
    pressed = "n" if page.locator("[data-key=n]").count() else "N"
    page.keyboard.press(pressed)
    comes_true(page, "here => location.href !== here", here)
    assert "q=the" in page.url


def test_a_filter_applies_at_once_and_stands_in_the_address(open_as, operator, bring, in_thread):
    bring(stories.two_checkpoints())
    in_thread(search_index.index_lagging)
    page = open_as(operator)
    page.goto("/search/?q=the")
    page.get_by_label("Role").select_option("user")
    page.wait_for_url("**role=user**")
    page.locator(".hit mark").first.wait_for()
    assert "agent=" not in page.url
    comes_true(page, "[...document.querySelectorAll('ol .hit__who')].every(who => who.innerText === 'user')")
    assert page.locator("ol .hit__who").count() > 0


def test_without_a_script_the_search_and_its_pages_work(open_as, operator, bring, in_thread, watch):
    watch.expected.append("ERR_FAILED")
    session = bring(stories.two_checkpoints())
    in_thread(search_index.index_lagging)
    page = open_as(operator)
    page.context.route("**/*.js", lambda route: route.abort())
    page.goto(reverse("session-detail", args=[session.pk]))
    page.get_by_label("Find in this session").fill("the")
    page.get_by_label("Find in this session").press("Enter")
    page.wait_for_url("**q=the**")
    assert page.locator(".find .hit").count() > 1
