"""Measures live progress in a real browser: how soon after the click, and how many messages a job sends.

    python -m tests.bench.bench_live [--rounds 10]

R1: from the click on the dialog's button to the first message of the socket, and to the first that shows a phase.
R4: messages of a job per second, on the demo's slow session, and the last one shows the result.
"""

import re
import statistics
from collections.abc import Iterator
from typing import Any

from tests.bench.product import Product, running
from tests.bench.rows import Options, Row, quantile, run_alone

COMMAND = "python -m tests.bench.bench_live"

COMPACT = re.compile(r"^Compact\b")
WATCH = """
addEventListener("click", (event) => {
  if (event.target.closest("dialog button[type=submit]")) { window.clickedAt = performance.now(); window.told = []; }
}, true);
addEventListener("htmx:wsAfterMessage", () => {
  const panel = document.getElementById("compaction-panel");
  const shows = (part) => panel.querySelector(part) !== null;
  (window.told ??= []).push([performance.now() - window.clickedAt, shows(".is-now"), shows(".job--over")]);
}, true);
"""
SESSIONS = """
from sessions_app.models import PolicyValue, Session
slow = set(PolicyValue.objects.filter(field="scripted_delay_s").values_list("scope_id", flat=True))
ready = [str(pk) for pk in Session.objects.listed().filter(foldable_to__isnull=False, status="idle").values_list("pk", flat=True)]
print("found", *[next((pk for pk in ready if (pk in slow) is wanted), "none") for wanted in (False, True)])
"""

GO_BACK = """
from sessions_app.events.actors import system_actor
from sessions_app.models import Session
from sessions_app.services.compactions.revert import revert
revert(actor=system_actor("bench"), session=Session.objects.get(pk="{session_id}"), generation=None)
"""


def support(product: Product) -> tuple[str, str]:
    """An account that may compact."""
    return "bench", product.command("create_user", "bench", "--role", "support").split()[-1]


def compact(page: Any, url: str) -> list[list[Any]]:
    """One compaction through the page: [milliseconds, shows a phase, shows the end] per message."""
    page.goto(url)
    page.get_by_text("Live", exact=True).wait_for()
    page.get_by_role("link", name=COMPACT).click()
    page.get_by_role("dialog").get_by_role("button", name=COMPACT).click()
    page.locator(".job--over").wait_for(timeout=120_000)
    told: list[list[Any]] = []
    while not told or not told[-1][2]:  # the page may have fetched the result itself, before it was told
        page.wait_for_timeout(50)
        told = page.evaluate("window.told")
    return told


def rows_of(product: Product, session_id: str, page: Any, rounds: int, name: str) -> Iterator[Row]:
    url = f"{product.url}/sessions/{session_id}/"
    runs = []
    for _ in range(rounds):
        runs.append(compact(page, url))
        product.command("shell", "-c", GO_BACK.format(session_id=session_id))
    first = [told[0][0] for told in runs]
    phase = [next((at for at, shows, _ in told if shows), told[-1][0]) for told in runs]
    rate = max(len(told) / max(1.0, told[-1][0] / 1000) for told in runs)
    facts: dict[str, object] = {
        "rounds": rounds,
        "median_ms": round(statistics.median(first)),
        "first_phase_ms": round(statistics.median(phase)),
        "job_s": round(statistics.median(told[-1][0] for told in runs) / 1000, 1),
    }
    p95 = quantile(first, 0.95)
    what = f"click → first progress message in the browser, {name} session"
    yield Row(f"R1 {name}", what, round(p95), "ms p95", floor="≤ 500 ms", is_met=p95 <= 500, command=COMMAND, facts=facts)
    messages: dict[str, object] = {
        "messages": statistics.median(len(told) for told in runs),
        "last_shows_result": all(told[-1][2] for told in runs),
    }
    what = f"messages of a job, {name} session"
    yield Row(f"R4 {name}", what, round(rate, 1), "a second", floor="≤ 10", is_met=rate <= 10, command=COMMAND, facts=messages)


def rows(options: Options) -> Iterator[Row]:
    from playwright.sync_api import sync_playwright

    with running(options.folder / "live") as product, sync_playwright() as driver:
        name, password = support(product)
        page = driver.chromium.launch(executable_path="/usr/bin/chromium", args=["--headless", "--no-sandbox"]).new_page()
        page.add_init_script(WATCH)
        page.goto(f"{product.url}/sign-in/")
        page.get_by_label("User name").fill(name)
        page.get_by_label("Password").fill(password)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{product.url}/")
        found = next(line for line in product.command("shell", "-c", SESSIONS).splitlines() if line.startswith("found"))
        quick, slow = found.split()[1:]
        rounds = 2 if options.is_quick else 2 * options.rounds
        yield from rows_of(product, quick, page, rounds, "quick")
        yield from rows_of(product, slow, page, max(1, rounds // 4), "slow")


if __name__ == "__main__":
    run_alone(rows, __doc__)
