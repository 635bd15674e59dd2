"""Steering with the keyboard: the focus survives what is told live, and every way back leads somewhere."""

import re

import pytest

from sessions_app.demo import stories
from sessions_app.models import Session
from tests.e2e.watching import comes_true

SCRIPTED = {"summarisers": ["scripted", "extractive"]}
FOCUSED = "document.activeElement.textContent.trim()"


@pytest.fixture
def slow(bring, summaries) -> Session:
    return bring(stories.slow_partials(), window=64_000, policy=SCRIPTED)


def test_the_focus_stays_on_cancel_while_the_run_is_told_and_is_on_the_button_after_it(open_as, support, slow, summaries):
    page = open_as(support)
    page.goto(f"/sessions/{slow.pk}/")
    page.keyboard.press("c")
    page.get_by_role("dialog").wait_for()
    comes_true(page, "document.activeElement.name === 'instructions'")
    page.get_by_role("dialog").get_by_role("button", name=re.compile("^Compact")).press("Enter")
    cancel = page.get_by_role("button", name="Cancel", exact=True)
    cancel.focus()
    summaries.let()
    page.locator("#compaction-panel").get_by_text(re.compile("2 of")).first.wait_for()
    assert page.evaluate(FOCUSED) == "Cancel"
    page.keyboard.press("Enter")
    page.get_by_role("region", name=re.compile("^Result of compaction")).wait_for()
    comes_true(page, "document.activeElement.matches('#gauge a.compact')")


def test_a_generation_is_restored_from_the_ledger_after_it_was_reverted(open_as, support, slow, summaries):
    summaries.let_all()
    page = open_as(support)
    page.goto(f"/sessions/{slow.pk}/")
    page.keyboard.press("c")
    page.get_by_role("dialog").get_by_role("button", name=re.compile("^Compact")).click()
    page.get_by_role("region", name=re.compile("^Result of compaction")).wait_for()
    page.locator(".split--split").wait_for()  # the address names no layout, so the two histories now stand side by side
    page.get_by_role("link", name="Revert").first.click()
    page.get_by_role("dialog").get_by_role("button", name="Show everything").click()
    page.get_by_text("not in force any more").wait_for()
    page.locator(".split--canonical").wait_for()
    page.goto(f"/sessions/{slow.pk}/compactions/")
    page.locator("summary.ledger__line").first.click()
    page.get_by_role("link", name="Restore #1").click()
    page.get_by_role("button", name="Show #1").click()
    page.get_by_text("The view is generation #1 now.").wait_for()
    page.locator(".split--split").wait_for()


def test_entries_are_walked_by_key_and_a_toast_is_seen_above_an_open_dialog(open_as, support, slow, watch):
    watch.expected += ["ERR_FAILED", "htmx:sendError", "htmx:afterRequest"]
    page = open_as(support)
    page.goto(f"/sessions/{slow.pk}/?layout=canonical&at=0")
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.className") == "entry__index"
    page.keyboard.press("c")
    page.get_by_role("dialog").wait_for()
    page.route("**/compact/", lambda route: route.abort())
    page.get_by_role("dialog").get_by_role("button", name=re.compile("^Compact")).click()
    page.get_by_role("dialog").get_by_text("could not be reached").wait_for()


def test_moving_the_boundary_by_key_keeps_the_focus_and_the_help_names_only_keys_that_do_something(open_as, support, slow):
    page = open_as(support)
    page.goto(f"/sessions/{slow.pk}/")
    page.keyboard.press("c")
    dialog = page.get_by_role("dialog")
    for _ in range(2):
        before = dialog.get_by_text(re.compile("^Boundary: keep from entry")).text_content()
        dialog.get_by_role("button", name="← cut").press("Enter")
        comes_true(page, "(before) => !document.querySelector('dialog[open]').textContent.includes(before)", before)
        comes_true(page, "document.activeElement.id === 'cut-back'")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert "canonical, model view, split" in page.locator("#key-help").text_content()
    page.goto(f"/sessions/{slow.pk}/events/")
    page.keyboard.press("?")
    help_text = page.locator("#key-help").text_content()
    assert "compact" in help_text
    assert "canonical, model view, split" not in help_text
