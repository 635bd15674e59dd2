"""The main job, in real browsers: find a session, read it, compact it live, cancel, reload, go back."""

import re

import pytest

from sessions_app.demo import stories, work
from sessions_app.demo.material import SHOP
from sessions_app.models import Compaction, Session

SCRIPTED = {"summarisers": ["scripted", "extractive"]}
COMPACT = re.compile(r"^Compact\b")
TITLE = "Split the checkout page into partials"


@pytest.fixture
def slow(bring, summaries) -> Session:
    """A session with much to fold, and a summariser that waits until it is let."""
    return bring(stories.slow_partials(), window=64_000, policy=SCRIPTED)


@pytest.fixture
def quick(bring) -> Session:
    session, rng = stories.started("quick", SHOP, seed=5)
    session.title("A quick one")
    while session.context_tokens < 14_000:
        work.turn(session, rng, SHOP, size=8)
    return bring(session, window=20_000)


def address(session: Session, tab: str = "") -> str:
    return f"/sessions/{session.pk}/{tab}"


def start(page) -> None:
    """Opens the dialog from the meter and starts."""
    page.get_by_role("link", name=COMPACT).click()
    page.get_by_role("dialog").get_by_role("button", name=COMPACT).click()


def job(page):
    return page.get_by_role("region", name=re.compile("^Compaction a1"))


def result(page):
    return page.get_by_role("region", name=re.compile("^Result of compaction a1"))


def test_a_session_is_found_by_its_title_opened_and_read_on_both_sides(open_as, operator, slow, quick):
    page = open_as(operator)
    page.goto("/")
    page.get_by_role("link", name="A quick one").wait_for()
    page.keyboard.press("/")
    page.keyboard.type("checkout")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="A quick one").wait_for(state="detached")
    page.get_by_role("link", name=TITLE).click()
    page.get_by_role("heading", name=TITLE, level=1).wait_for()
    page.get_by_role("group", name="Layout").get_by_role("link", name="Split").click()
    page.get_by_role("heading", name="Canonical history").wait_for()
    page.get_by_role("heading", name="Model view").wait_for()
    page.get_by_role("log").get_by_text("verbatim").first.wait_for()


def test_everybody_on_the_session_and_in_the_list_sees_a_compaction_live_until_its_result(open_as, support, operator, slow, summaries):
    ana, olga, listed = open_as(support), open_as(operator), open_as(operator)
    olga.goto(address(slow))
    listed.goto("/")
    ana.goto(address(slow))
    start(ana)
    for page in (ana, olga):
        job(page).wait_for()
        job(page).get_by_text(re.compile(r"^1 of \d+$")).wait_for()
    summaries.let()
    for page in (ana, olga):
        job(page).get_by_text(re.compile(r"^2 of \d+$")).wait_for()
    listed.get_by_role("row").filter(has_text=TITLE).get_by_text(re.compile(r"chunk \d+ of \d+")).wait_for()
    summaries.let_all()
    for page in (ana, olga):
        result(page).wait_for()
        result(page).get_by_text("committed").wait_for()
        page.get_by_role("log").get_by_text(re.compile("summarised|compacted", re.IGNORECASE)).first.wait_for()
    compaction = Compaction.objects.get(session=slow, lineage="console")
    assert compaction.outcome == "committed"
    assert compaction.tokens_after < compaction.tokens_before


def test_a_second_press_joins_the_run_that_is_under_way(open_as, support, admin, slow):
    ana, ada = open_as(support), open_as(admin)
    for page in (ana, ada):
        page.goto(address(slow))
        page.get_by_role("link", name=COMPACT).click()
        page.get_by_role("dialog").wait_for()
    ana.get_by_role("dialog").get_by_role("button", name=COMPACT).click()
    job(ana).wait_for()
    ada.get_by_role("dialog").get_by_role("button", name=COMPACT).click()
    job(ada).get_by_text("started by ana").wait_for()
    assert Compaction.objects.filter(session=slow).count() == 1
    job(ana).get_by_role("button", name="Cancel").click()
    result(ada).get_by_text("cancelled").first.wait_for()


def test_cancelling_ends_the_run_for_everybody_and_changes_nothing(open_as, support, operator, slow):
    ana, olga = open_as(support), open_as(operator)
    olga.goto(address(slow))
    ana.goto(address(slow))
    start(ana)
    job(olga).get_by_text(re.compile(r"^\d of \d+$")).wait_for()
    assert job(olga).get_by_role("button", name="Cancel").count() == 0 or not job(olga).get_by_role("button", name="Cancel").is_visible()
    job(ana).get_by_role("button", name="Cancel").click()
    for page in (ana, olga):
        result(page).get_by_text("cancelled").first.wait_for()
    slow.refresh_from_db()
    assert slow.active_console is None
    assert slow.running is None


def test_a_reload_in_mid_run_shows_where_it_stands_and_what_follows(open_as, support, slow, summaries):
    page = open_as(support)
    page.goto(address(slow))
    start(page)
    summaries.let()
    job(page).get_by_text(re.compile(r"^2 of \d+$")).wait_for()
    page.reload()
    job(page).get_by_text(re.compile(r"^2 of \d+$")).wait_for()
    summaries.let_all()
    result(page).get_by_text("committed").wait_for()


def test_after_a_lost_connection_the_page_catches_up_by_itself(open_as, support, operator, slow, summaries, watch):
    watch.expected += ["ERR_INTERNET_DISCONNECTED", "WebSocket connection to"]
    ana, olga = open_as(support), open_as(operator)
    olga.goto(address(slow))
    ana.goto(address(slow))
    start(ana)
    job(olga).wait_for()
    olga.context.set_offline(True)
    summaries.let_all()
    result(ana).get_by_text("committed").wait_for()
    olga.context.set_offline(False)
    result(olga).get_by_text("committed").wait_for()


def test_the_view_can_be_set_back_to_what_it_was(open_as, support, quick):
    page = open_as(support)
    page.goto(address(quick))
    start(page)
    result(page).get_by_text("committed").wait_for()
    result(page).get_by_role("link", name="Revert").click()
    page.get_by_role("dialog").get_by_role("button", name=re.compile("^Show ")).click()
    page.get_by_role("dialog").wait_for(state="hidden")
    page.goto(address(quick, "compactions/"))
    page.get_by_role("main").get_by_text("#1").first.wait_for()
    quick.refresh_from_db()
    assert quick.active_console is None


def test_who_may_not_compact_sees_why_and_the_server_refuses_all_the_same(open_as, operator, quick):
    page = open_as(operator)
    page.goto(address(quick))
    page.get_by_text("your role may not").wait_for()
    assert not page.get_by_role("link", name=COMPACT).is_visible()


def test_a_compaction_works_without_javascript(browser, live_url, worker, support, quick):
    context = browser.new_context(base_url=live_url, java_script_enabled=False)
    page = context.new_page()
    from tests.e2e.test_sign_in import sign_in

    page.goto(address(quick))
    sign_in(page, "ana")
    page.get_by_role("link", name=COMPACT).click()
    page.get_by_role("button", name=COMPACT).click()
    page.wait_for_url(f"**{address(quick)}**")
    for _ in range(200):  # without a script nothing comes by itself
        if result(page).count():
            break
        page.wait_for_timeout(250)
        page.reload()
    result(page).get_by_text("committed").wait_for()
    context.close()
