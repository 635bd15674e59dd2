"""The audit log in a real browser: filters, rows that open in place, notices of new events, verification, accessibility."""

import pytest

from sessions_app.events import deferred, log
from sessions_app.events.actors import Actor, system_actor
from sessions_app.events.types import EventType
from sessions_app.models import ActorKind, Event, EventResult
from tests.e2e.watching import comes_true

SWEEPER = system_actor("sweeper")
ANA = Actor(kind=ActorKind.USER, id="1", name="ana", role="support", request_id="request-1", gesture_id="gesture-1", address="10.0.0.1")


@pytest.fixture
def events(transactional_db, in_thread) -> None:
    def write() -> None:
        for number in range(150):
            log.append("imports", EventType.IMPORT_FINISHED, actor=SWEEPER, target=("import", f"i{number}"))
        log.append(log.SECURITY, EventType.POLICY_CHANGED, actor=ANA, before={"keep": 1, "a": [1]}, after={"keep": 2}, reason="too long")
        log.append(log.SECURITY, EventType.ACCESS_REFUSED, actor=ANA, result=EventResult.REFUSED, target=("session", "s1"))

    in_thread(write)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_of_the_audit_log_has_an_accessibility_violation(open_as, admin, events, scheme, check_access):
    page = open_as(admin, scheme=scheme)
    opened = Event.objects.get(type="policy.changed").pk
    for address in (
        "/audit/",
        f"/audit/?opened={opened}",
        "/audit/?q=nothing+like+this",
        f"/audit/{opened}/",
        "/audit/verify/",
        "/audit/?actor=ana",
    ):
        page.goto(address)
        page.get_by_role("main").wait_for()
        check_access(page)
    page.goto("/audit/verify/")
    page.get_by_role("button", name="Verify now").click()
    page.get_by_text("All chains whole").wait_for()
    check_access(page)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"/audit/?opened={opened}")
    check_access(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_row_opens_in_place_and_its_address_can_be_shared(open_as, admin, events):
    page = open_as(admin)
    page.goto("/audit/")
    page.get_by_role("link", name="Policy changed").click()
    page.get_by_text("matches the content").wait_for()
    page.wait_for_url("**opened=**")
    comes_true(page, "document.activeElement.textContent === 'Policy changed'")
    page.reload()
    page.get_by_text("“too long”").wait_for()
    page.get_by_role("link", name="Policy changed").click()
    page.get_by_text("matches the content").wait_for(state="hidden")


def test_a_choice_filters_at_once_and_pages_lead_on(open_as, admin, events):
    page = open_as(admin)
    page.goto("/audit/")
    page.get_by_role("link", name="older").click()
    page.get_by_role("link", name="newer").wait_for()
    page.get_by_label("Action", exact=True).select_option("access.refused")
    page.locator("[data-matching]", has_text="1 matches").wait_for()
    page.wait_for_url(lambda address: address.endswith("/audit/?action=access.refused"))
    page.get_by_role("link", name="failed", exact=True).click()
    page.get_by_text("No event matches").wait_for()


def test_new_events_are_announced_and_shown_on_request(open_as, admin, events, in_thread):
    page = open_as(admin)
    page.clock.install()
    page.goto("/audit/")
    page.get_by_role("link", name="Policy changed").wait_for()
    in_thread(lambda: log.append(log.SECURITY, EventType.USER_CREATED, actor=SWEEPER))
    page.clock.fast_forward(16_000)
    page.get_by_role("link", name="1 new event, show").click()
    page.get_by_role("link", name="User created").wait_for()


def test_it_reads_and_filters_without_a_script(browser, live_url, open_as, admin, events):
    cookies = open_as(admin).context.cookies()
    context = browser.new_context(base_url=live_url, java_script_enabled=False)
    context.add_cookies(cookies)
    page = context.new_page()
    page.goto("/audit/")
    page.get_by_label("Filter by text").fill("too long")
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("link", name="Policy changed").click()
    page.get_by_text("matches the content").wait_for()
    page.goto("/audit/verify/")
    page.get_by_role("button", name="Verify now").click()
    page.get_by_text("All chains whole").wait_for()
    context.close()
    deferred.flush()
