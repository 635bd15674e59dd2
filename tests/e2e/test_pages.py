"""Every page, in both themes: no accessibility violation, no error, and no more elements than a page should have."""

import pytest
from django.urls import reverse

from sessions_app.demo import other_stories, stories
from sessions_app.models import Compaction, Entry
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.turns.sessions import begin
from tests.e2e.watching import comes_true, resized
from tests.importing import ACTOR

MOST_ELEMENTS = {"list": 2_500, "session": 6_000, "other": 4_000}


@pytest.fixture
def furnished(bring, in_thread):
    """A store with something of everything, and the session that is looked at."""
    for story in (other_stories.vat_ticket(), stories.damaged_file(), other_stories.pricing_pictures(), other_stories.release_notes()):
        bring(story)
    session, children = other_stories.permissions_review()
    bring(session, children)
    looked_at = bring(stories.two_checkpoints(), window=36_000)
    in_thread(lambda: run_compaction(request(actor=ACTOR, session=looked_at).compaction.pk))
    return looked_at


@pytest.fixture
def held(in_thread):
    """A session that this console holds itself."""
    return in_thread(lambda: begin(actor=ACTOR, model="scripted", title="Planning the move"))


def addresses(session) -> dict[str, str]:
    detail = reverse("session-detail", args=[session.pk])
    compaction = Compaction.objects.get(session=session, lineage="console")
    entry = Entry.objects.filter(session=session, kind="result").first()
    assert entry is not None
    return {
        "list": "/",
        "list, nothing found": "/?q=nothing+like+this",
        "session, canonical": f"{detail}?layout=canonical",
        "session, view": f"{detail}?layout=view",
        "session, split": f"{detail}?layout=split",
        "entry": reverse("entry-detail", args=[session.pk, entry.index]),
        "raw entry": reverse("entry-raw", args=[session.pk, entry.index]),
        "compactions": reverse("compaction-list", args=[session.pk]),
        "compaction": reverse("compaction-detail", args=[session.pk, compaction.pk]),
        "compare": reverse("compaction-compare", args=[session.pk]),
        "session, then": f"{detail}?at_view={entry.index}",
        "compact": reverse("compaction-create", args=[session.pk]),
        "revert": reverse("compaction-revert", args=[session.pk]),
        "events": reverse("session-events", args=[session.pk]),
        "raw": reverse("session-raw", args=[session.pk]),
        "memory": reverse("memory-project", args=[session.project_id]),
        "fork": reverse("session-fork", args=[session.pk]),
        "goal": reverse("session-goal", args=[session.pk]),
        "model": reverse("session-model", args=[session.pk]),
        "exports": reverse("session-exports", args=[session.pk]),
        "policy of a session": reverse("policy-session", args=[session.pk]),
        "policy of a project": reverse("policy-project", args=[session.project_id]),
        "new session": reverse("session-create"),
        "drafts": reverse("draft-list"),
        "imports": "/imports/",
        "search": "/search/",
        "search, hits": "/search/?q=the",
        "search, parts of words": "/search/?q=ompac&role=assistant",
        "search, nothing found": "/search/?q=nothing+like+this",
        "session, searched": f"{detail}?q=the",
        "session, at a hit": f"{detail}?q=the&layout=canonical&at={entry.index}",
        "nowhere": "/nowhere/",
    }


@pytest.mark.timeout(600)  # thirty pages, each of them looked at by rule after rule
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_an_accessibility_violation_or_too_many_elements(open_as, support, furnished, scheme, check_access, watch):
    watch.expected.append("status of 404")
    page = open_as(support, scheme=scheme)
    found = {}
    for name, path in addresses(furnished).items():
        page.goto(path)
        page.get_by_role("main").wait_for()
        try:
            check_access(page)
        except AssertionError as error:
            found[name] = str(error)[:600]
        count = page.evaluate("document.getElementsByTagName('*').length")
        most = MOST_ELEMENTS.get(name.split(",")[0], MOST_ELEMENTS["other"])
        if count > most:
            found[f"{name}: elements"] = count
    assert found == {}


def test_the_open_dialog_has_no_accessibility_violation_and_takes_and_gives_back_the_focus(open_as, support, furnished, check_access):
    page = open_as(support)
    page.goto(reverse("session-detail", args=[furnished.pk]))
    page.keyboard.press("c")
    page.get_by_role("dialog").wait_for()
    assert page.evaluate("document.querySelector('dialog[open]').contains(document.activeElement)")
    check_access(page)
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")


def test_a_list_can_be_walked_and_a_session_opened_by_keys_alone(open_as, operator, furnished):
    page = open_as(operator)
    page.goto("/")
    page.get_by_role("table").wait_for()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sessions/**")
    page.keyboard.press("1")
    page.wait_for_url("**layout=canonical**")
    page.keyboard.press("3")
    page.wait_for_url("**layout=split**")


def test_filters_change_the_address_so_that_what_is_seen_can_be_shared(open_as, operator, furnished):
    page = open_as(operator)
    page.goto("/")
    page.get_by_label("Filter by title").fill("pricing")
    page.get_by_label("Filter by title").press("Enter")
    page.wait_for_url("**q=pricing**")
    shared = open_as(operator)
    shared.goto(page.url)
    rows = shared.get_by_role("table").get_by_role("link", name="Screenshots of the new pricing page")
    rows.wait_for()
    assert shared.locator("tbody tr").count() == 1


FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth + 1"


def test_no_page_is_wider_than_its_screen(open_as, admin, furnished):
    page = open_as(admin)
    for path in (
        "/",
        reverse("session-detail", args=[furnished.pk]),
        "/search/?q=the",
        f"{reverse('session-detail', args=[furnished.pk])}?q=the&at=3",
    ):
        page.goto(path)
        page.get_by_role("main").wait_for()
        for width in (320, 390, 768, 1024):
            resized(page, {"width": width, "height": 844}, FITS, expected=True)


NARROW = {"width": 390, "height": 844}
COVERS = """([one, other]) => {
  const [a, b] = [one, other].map((selector) => document.querySelector(selector).getBoundingClientRect());
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}"""


@pytest.mark.parametrize("size", [NARROW, {"width": 1400, "height": 900}])
def test_what_can_be_done_with_an_entry_covers_neither_its_size_nor_its_fate(open_as, support, furnished, size):
    page = open_as(support)
    page.set_viewport_size(size)
    page.goto(f"{reverse('session-detail', args=[furnished.pk])}?layout=canonical&at=3")
    entry = "article.entry:has(#e3)"
    page.locator(entry).hover()
    comes_true(page, f"getComputedStyle(document.querySelector('{entry} > .entry__tools')).opacity === '1'")
    assert page.evaluate(COVERS, [f"{entry} > .entry__tools", f"{entry} .entry__head > .push"]) is False
    assert page.evaluate(COVERS, [f"{entry} > .entry__tools", f"{entry} > .fate"]) is False if size is not NARROW else True
    box = page.locator(entry).get_by_role("button", name="Pin entry 3", exact=True).bounding_box()
    assert size is not NARROW or min(box["width"], box["height"]) >= 24


def test_the_field_for_a_message_leaves_a_narrow_screen_to_the_history_and_grows_with_what_is_written(open_as, support, held):
    page = open_as(support)
    page.set_viewport_size(NARROW)
    page.goto(reverse("session-detail", args=[held.pk]))
    composer = page.locator("#composer")
    assert composer.bounding_box()["height"] < NARROW["height"] / 15
    message = page.get_by_role("textbox", name="Message")
    before = message.bounding_box()["height"]
    message.fill("One\ntwo\nthree\nfour")
    assert message.bounding_box()["height"] > 2 * before
    assert page.get_by_role("link", name="Another model").is_visible()


def test_what_a_dialog_does_is_in_sight_however_long_it_is(open_as, support, furnished):
    page = open_as(support)
    page.set_viewport_size({"width": 1400, "height": 600})
    page.goto(reverse("session-detail", args=[furnished.pk]))
    page.keyboard.press("c")
    button = page.get_by_role("dialog").get_by_role("button", name="Preview", exact=True).last
    button.wait_for()
    box = button.bounding_box()
    assert box["y"] + box["height"] <= 600


def test_a_toast_that_came_beside_something_else_can_be_dismissed(open_as, support, furnished):
    page = open_as(support)
    page.goto(f"{reverse('session-detail', args=[furnished.pk])}?layout=canonical&at=3")
    page.locator("article.entry:has(#e3)").hover()
    page.get_by_role("button", name="Pin entry 3", exact=True).click()
    page.locator(".toast").get_by_role("button", name="Dismiss").click()
    page.locator(".toast").wait_for(state="detached")
