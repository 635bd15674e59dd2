"""Hostile transcripts in a real browser: nothing runs, nothing is asked for elsewhere, nothing is put into the page."""

import pytest

from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from tests.e2e.watching import resized
from tests.importing import ACTOR
from tests.security import hostile
from tests.security.pages import pages_of

WIDE, NARROW = {"width": 1400, "height": 900}, {"width": 390, "height": 844}
INJECTED = """() => {
  const bad = [];
  if (window.owned !== undefined) bad.push("a script of the transcript ran");
  for (const element of document.querySelectorAll("*")) {
    for (const {name, value} of element.attributes) {
      if (name.startsWith("on")) bad.push(`${element.tagName} has ${name}`);
      if (name === "style") bad.push(`${element.tagName} has a style`);
      const isAddress = ["href", "src", "action", "formaction"].includes(name);
      if (isAddress && /^\\s*(javascript|data|vbscript):/i.test(value)) bad.push(`${name}: ${value}`);
    }
  }
  for (const script of document.scripts) if (!script.src.startsWith(`${location.origin}/static/`)) bad.push(`script ${script.src}`);
  if (document.querySelector("iframe, object, embed, base, style")) bad.push("an element that no page of ours has");
  for (const link of document.links) if (link.origin !== location.origin) bad.push(`link to ${link.href}`);
  return bad;
}"""

UNRULY = """() => {
  const bad = [];
  if (document.documentElement.scrollWidth > document.documentElement.clientWidth + 1) bad.push("wider than its screen");
  for (const text of document.querySelectorAll(".split pre")) {
    if (text.getBoundingClientRect().height > 700) bad.push(`a text of ${text.getBoundingClientRect().height} px`);
  }
  return bad;
}"""


@pytest.mark.parametrize("names", hostile.groups(10), ids=lambda names: names[0])
def test_nothing_of_a_transcript_runs_or_leaves_the_page(open_as, admin, bring, in_thread, names, watch):
    session = bring(hostile.session_with(names, key=names[0]), window=12_000)
    in_thread(lambda: run_compaction(request(actor=ACTOR, session=session, force=True).compaction.pk))
    page = open_as(admin)
    for path in pages_of(session):
        page.goto(path)
        page.get_by_role("main").wait_for()
        for fold in page.locator("details:not([open]) > summary").all()[:12]:
            if fold.is_visible():
                fold.click()
        assert page.evaluate(INJECTED) == [], path
        assert page.evaluate(UNRULY) == [], path
        resized(page, NARROW, UNRULY, expected=[])
        page.set_viewport_size(WIDE)
    assert not [url for url in watch.requests if hostile.MARK in url]


def test_hostile_titles_are_inert_in_the_list(open_as, admin, bring):
    for name in list(hostile.PAYLOADS)[:20]:
        bring(hostile.session_named(name))
    page = open_as(admin)
    page.goto("/")
    page.get_by_role("table").wait_for()
    assert page.evaluate(INJECTED) == []
