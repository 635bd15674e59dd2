"""Measures how soon an appended line can be read in an open page.

    python -m tests.bench.bench_watch --generator make_sessions.py [--peers FOLDER] [--rounds 5]

W1: a session of 1,000 entries is followed by `up --watch` and open in Chromium; a line is appended to its file; the clock stops when
its text stands in the page. The peer shows the same file in turns. W1 long: the same for 100,000 entries. W2: the same while
another process imports other sessions.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench.agentsview import AgentsView
from tests.bench.page_timing import ARGUMENTS
from tests.bench.pages import session_url, sign_in
from tests.bench.product import Product, running
from tests.bench.rows import ROOT, Options, Row, needs_generator, quantile, run_alone

COMMAND = "python -m tests.bench.bench_watch --generator make_sessions.py"
FOUND = """(word) => { const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) if (node.data.includes(word)) return true; return false; }"""
PATIENCE_S, REST_S = 30, 1.2


class Appender:
    """Writes prompts behind the last row of a session file, as its agent would."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._last = ""
        self._model: dict[str, Any] = {}
        for line in file.open(encoding="utf-8"):
            row = json.loads(line)
            if row.get("uuid") and not row.get("isSidechain"):
                self._last = row["uuid"]
                if row.get("type") == "user" and isinstance(row["message"]["content"], str):
                    self._model = row
        for name in ("isCompactSummary", "isVisibleInTranscriptOnly"):
            self._model.pop(name, None)

    def append(self) -> str:
        """Appends one prompt; answers a word that only it holds."""
        word, own = f"watchmark{uuid.uuid4().hex[:10]}", str(uuid.uuid4())
        told = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        message = {"role": "user", "content": f"{word} please look at this line"}
        row = {**self._model, "uuid": own, "parentUuid": self._last, "timestamp": told, "message": message}
        self._last = own
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        return word


def generate(options: Options, name: str, entries: int) -> Path:
    """A folder with one session of so many entries; the same for the same name."""
    folder = options.folder / name
    if not folder.exists():
        size = ("--sessions", "1", "--entries", str(entries), "--entries-dist", "fixed", "--mean-bytes", "1200", "--seed", "3")
        subprocess.run([sys.executable, str(options.generator), "--out", str(folder), *size], check=True, stdout=subprocess.DEVNULL)
    return folder


def latency(page: Any, appender: Appender, *, to_end: bool = False) -> float:
    """Milliseconds from an append until its text stands in the page."""
    if to_end:
        page.mouse.move(800, 500)
        for _ in range(12):
            page.mouse.wheel(0, 200_000)
            page.wait_for_timeout(60)
    word, begun = appender.append(), time.perf_counter()
    while not page.evaluate(FOUND, word):
        if time.perf_counter() - begun > PATIENCE_S:
            return PATIENCE_S * 1_000.0
        if to_end:  # the peer makes what it fetched visible when its list moves; at its end a wheel downwards moves nothing
            page.mouse.wheel(0, -400)
            page.wait_for_timeout(10)
            page.mouse.wheel(0, 50_000)
            page.wait_for_timeout(10)
        time.sleep(0.005)
    return (time.perf_counter() - begun) * 1_000


@contextmanager
def open_page(driver: Any, url: str, cookies: list[dict[str, Any]]) -> Iterator[Any]:
    browser = driver.chromium.launch(executable_path="/usr/bin/chromium", args=ARGUMENTS)
    try:
        context = browser.new_context(viewport={"width": 1400, "height": 900})
        context.add_cookies(cookies)
        page = context.new_page()
        page.goto(url)
        page.wait_for_timeout(3_000)
        yield page
    finally:
        browser.close()


def _wait_until_imported(product: Product, folder: Path) -> str:
    for _ in range(120):
        try:
            return session_url(product, folder)
        except RuntimeError:
            time.sleep(1)
    raise RuntimeError("the session was not taken in")


def _watched(driver: Any, options: Options, stack: ExitStack, name: str, entries: int) -> tuple[Product, Any, Appender]:
    """A product that follows a session of so many entries, the page that shows it, and who appends to its file."""
    folder = options.folder / f"watched-{name}"
    shutil.copytree(generate(options, name, entries), folder)
    product = stack.enter_context(running(options.folder / f"data-{name}", watch=folder))
    url = _wait_until_imported(product, folder)
    page = stack.enter_context(open_page(driver, url, sign_in(driver, product)))
    return product, page, Appender(next(folder.rglob("*.jsonl")))


def _pairs(driver: Any, options: Options, stack: ExitStack, page: Any, appender: Appender, count: int) -> tuple[list[float], list[float]]:
    """Latencies of the product and, in turns, of the peer."""
    ours, theirs = [], []
    peer, other = None, None
    if (program := options.peer("agentsview")) is not None:
        folder = options.folder / "watched-peer"
        shutil.copytree(generate(options, "e1000", 1_000), folder)
        peer = stack.enter_context(AgentsView(program, options.folder / "peer").serving(folder))
        other = stack.enter_context(open_page(driver, peer.session_url(), []))
        their_appender = Appender(next(folder.rglob("*.jsonl")))
    for _ in range(count):
        ours.append(latency(page, appender))
        time.sleep(REST_S)
        if other is not None:
            theirs.append(latency(other, their_appender, to_end=True))
            time.sleep(REST_S)
    return ours, theirs


def rows(options: Options) -> Iterator[Row]:
    yield from needs_generator(options, "W1", "W2")
    if options.generator is None:
        return
    from playwright.sync_api import sync_playwright

    count = 5 if options.is_quick else max(20, options.rounds * 4)
    with sync_playwright() as driver, ExitStack() as stack:
        product, page, appender = _watched(driver, options, stack, "e1000", 1_000)
        for _ in range(2):
            latency(page, appender)
            time.sleep(REST_S)
        ours, theirs = _pairs(driver, options, stack, page, appender, count)
        yield _row("W1", "append a line → its text in the open page", ours, theirs)
        yield _w2(options, product, page, appender, count)
    if not options.is_quick:
        with sync_playwright() as driver, ExitStack() as stack:
            _, page, appender = _watched(driver, options, stack, "e100000", 100_000)
            first = latency(page, appender)
            time.sleep(REST_S)
            ours = []
            for _ in range(10):
                ours.append(latency(page, appender))
                time.sleep(REST_S)
            row = _row("W1 long", "the same for a session of 100,000 entries", ours, [])
            yield Row(**{**row.__dict__, "facts": {**row.facts, "first_ms": round(first)}})


def _row(identifier: str, what: str, ours: list[float], theirs: list[float]) -> Row:
    p50, p95 = statistics.median(ours), quantile(ours, 0.95)
    # A peer that does not show the line at all is no measure.
    pairs = [(one, other) for one, other in zip(ours, theirs, strict=False) if other < PATIENCE_S * 1_000]
    ratio = statistics.median(one / other for one, other in pairs) if len(pairs) > len(ours) / 2 else None
    facts: dict[str, object] = {"p95_ms": round(p95), "count": len(ours)}
    if theirs:
        facts |= {"peer_shown": len(pairs), "peer_p50_ms": round(statistics.median(theirs)), "peer_p95_ms": round(quantile(theirs, 0.95))}
    is_met = ratio <= 0.5 if ratio is not None else p50 <= 655
    return Row(
        id=identifier,
        what=what,
        value=round(p50),
        unit="ms p50",
        ratio=None if ratio is None else round(ratio, 2),
        beside="agentsview" if theirs else "",
        floor="≤ 0.5 x agentsview (655 ms); aim 130 / 300 ms",
        is_met=is_met,
        command=COMMAND,
        facts=facts,
    )


def _w2(options: Options, product: Product, page: Any, appender: Appender, count: int) -> Row:
    """Appends while a command of another process imports other sessions."""
    others = options.folder / "others"
    megabytes = "10" if options.is_quick else "100"
    subprocess.run(
        [sys.executable, str(options.generator), "--out", str(others), "--total-mb", megabytes, "--seed", "1"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    command = [sys.executable, "manage.py", "import_sessions", "--quiet", str(others)]
    importing = subprocess.Popen(command, cwd=ROOT, env=product.environment, stdout=subprocess.DEVNULL)
    time.sleep(1)
    ours = []
    while importing.poll() is None and len(ours) < count:
        ours.append(latency(page, appender))
        time.sleep(0.3)
    importing.terminate()
    importing.wait(30)
    worst = max(ours, default=0.0)
    return Row(
        id="W2",
        what="the same while another process imports",
        value=round(worst),
        unit="ms, the worst",
        floor="≤ 2,000 ms; aim 400",
        is_met=bool(ours) and worst <= 2_000,
        command=COMMAND,
        facts={"p50_ms": round(statistics.median(ours)) if ours else None, "count": len(ours), "cores": os.cpu_count()},
    )


if __name__ == "__main__":
    run_alone(rows, __doc__)
