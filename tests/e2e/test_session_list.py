"""The list of sessions in a real browser: keys, filters, theme, rows that change in place."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from sessions_app.events import log
from sessions_app.events.actors import system_actor
from sessions_app.events.types import EventType
from sessions_app.models import Session
from tests.e2e.watching import comes_true

TITLES = ("Newest of all", "In the middle", "Oldest of all")


@pytest.fixture
def sessions(transactional_db) -> list[Session]:
    now = datetime.now(UTC)
    return [
        Session.objects.create(
            title=title,
            agent="claude-code" if number else "codex",
            source_key=f"list:{number}",
            last_activity_at=now - timedelta(minutes=number + 1),
            pressure=0.5,
            signal_tokens=64_000,
        )
        for number, title in enumerate(TITLES)
    ]


@pytest.fixture
def page(open_as, operator, sessions):
    page = open_as(operator)
    page.goto("/")
    page.get_by_text("Live", exact=True).first.wait_for()
    return page


def rename(session: Session) -> None:
    """As a worker would: in a thread of its own, for the browser driver's loop runs in this one."""

    def write() -> None:
        Session.objects.filter(pk=session.pk).update(title="Renamed meanwhile", status="working")
        log.append(log.session_stream(session.pk), EventType.SESSION_STATUS_CHANGED, actor=system_actor("test"))
        connection.close()

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()


def focused(page) -> str:
    return page.evaluate("document.activeElement.textContent")


def rows_are(page, count: int) -> None:
    comes_true(page, "count => document.querySelectorAll('[data-row]').length === count", count)


def test_j_and_k_move_from_row_to_row_and_enter_opens(page, sessions):
    page.keyboard.press("j")
    assert focused(page) == "Newest of all"
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    assert focused(page) == "In the middle"
    assert page.locator("tr.is-cursor").count() == 1
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/sessions/{sessions[1].pk}/")


def test_slash_goes_to_the_filter_and_keys_are_letters_there(page):
    page.keyboard.press("/")
    page.keyboard.type("jk?")
    assert page.get_by_label("Filter by title").input_value() == "jk?"
    assert not page.get_by_role("dialog").is_visible()


def test_a_question_mark_shows_the_keys_and_escape_hides_them(page):
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keys").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog", name="Keys").wait_for(state="hidden")


def test_a_chosen_filter_applies_at_once_and_stands_in_the_address_alone(page):
    page.get_by_label("Agent", exact=True).select_option("codex")
    page.get_by_role("status").get_by_text("1 matches").wait_for()
    page.wait_for_url(lambda address: address.endswith("/?agent=codex"))
    rows_are(page, 1)
    page.go_back()
    page.get_by_text("3 match", exact=True).wait_for()


def test_a_row_changes_in_place_and_keeps_cursor_and_focus(page, sessions):
    page.keyboard.press("j")
    rename(sessions[0])
    page.get_by_role("link", name="Renamed meanwhile").wait_for()
    comes_true(page, "document.activeElement.textContent === 'Renamed meanwhile'")
    page.locator("tr.is-cursor .status--working").wait_for()
    rows_are(page, 3)


def test_sessions_that_the_page_does_not_show_are_counted_and_shown_on_request(page, sessions):
    page.get_by_label("Agent", exact=True).select_option("codex")
    page.get_by_role("status").get_by_text("1 matches").wait_for()
    rename(sessions[1])
    rename(sessions[2])
    page.get_by_role("link", name="2 others changed, show").wait_for()
    rows_are(page, 1)
    Session.objects.update(agent="codex")
    page.get_by_role("link", name="2 others changed, show").click()
    page.get_by_role("link", name="Renamed meanwhile").nth(1).wait_for()
    rows_are(page, 3)
    page.get_by_role("link", name="others changed").wait_for(state="hidden")


def test_the_theme_is_remembered(page):
    button = page.get_by_role("button", name="Theme: system")
    button.click()
    page.get_by_role("button", name="Theme: light").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    page.get_by_role("button", name="Theme: dark").wait_for()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_an_absolute_time_stands_on_hover_in_the_reader_s_zone(page):
    time = page.locator("[data-row] time").first
    time.hover()
    assert page.evaluate("document.querySelector('[data-row] time').dataset.local") == "1"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_the_list_has_no_accessibility_violation_and_never_scrolls_sideways(open_as, operator, sessions, check_access, scheme, width):
    page = open_as(operator, scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("/")
    check_access(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_list_works_without_javascript(browser, live_url, operator, sessions):
    from django.conf import settings
    from django.test import Client

    client = Client()
    client.force_login(operator)
    context = browser.new_context(base_url=live_url, java_script_enabled=False)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": live_url}])
    page = context.new_page()
    page.goto("/")
    page.get_by_label("Filter by title").fill("middle")
    page.get_by_role("button", name="Filter").click()
    assert page.locator("[data-row]").count() == 1
    page.get_by_role("link", name="Clear all").click()
    assert page.locator("[data-row]").count() == 3
    context.close()
