"""Measures pages: how soon a session of 1,000 and of 100,000 records can be read, and the list of 10,000 sessions.

    python -m tests.bench.pages --generator make_sessions.py [--peers FOLDER] [--rounds 5]

The generator writes the same files for the same seed. Where a peer is there, its page is opened in turns with ours.
"""

import http.client
import http.cookiejar
import re
import statistics
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.bench.agentsview import AgentsView
from tests.bench.claude_run import ClaudeRun
from tests.bench.page_timing import in_turns, medians, paired_ratio
from tests.bench.product import Product, running
from tests.bench.rows import Options, Row, needs_generator, run_alone

SETS = {
    **{
        f"e{size}": ("--sessions", "1", "--entries", str(size), "--entries-dist", "fixed", "--mean-bytes", "1200", "--seed", "3")
        for size in (1_000, 10_000, 100_000)
    },
    **{
        name: ("--sessions", str(size), "--entries", "12", "--entries-dist", "fixed", "--mean-bytes", "900", "--seed", "2")
        for name, size in (("l100", 100), ("l1k", 1_000), ("l10k", 10_000))
    },
}
LIST_PEERS = {"claude-run": 1.0, "agentsview": 1.0}
"""The most that our list may take, as a multiple of each peer's."""
COMMAND = "python -m tests.bench.pages --generator make_sessions.py --peers FOLDER"


def make(options: Options, name: str) -> Path:
    """The sessions of one of the sets; written once."""
    folder = options.folder / name
    if not folder.exists():
        subprocess.run([sys.executable, str(options.generator), "--out", str(folder), *SETS[name]], check=True, stdout=subprocess.DEVNULL)
    return folder


def sign_in(driver: Any, product: Product) -> list[dict[str, Any]]:
    browser = driver.chromium.launch(executable_path="/usr/bin/chromium", args=["--headless", "--no-sandbox"])
    page = browser.new_page()
    page.goto(f"{product.url}/sign-in/")
    page.get_by_label("User name").fill(product.name)
    page.get_by_label("Password").fill(product.password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{product.url}/")
    cookies = [{key: cookie[key] for key in ("name", "value", "domain", "path")} for cookie in page.context.cookies()]
    browser.close()
    return cookies


def signed_in_cookie(product: Product) -> str:
    """The cookie header of somebody who has signed in, without a browser."""
    jar = http.cookiejar.CookieJar()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    address = f"{product.url}/sign-in/"
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', opener.open(address).read().decode())
    assert token is not None
    form = {"username": product.name, "password": product.password, "csrfmiddlewaretoken": token.group(1)}
    opener.open(urllib.request.Request(address, urllib.parse.urlencode(form).encode(), {"Referer": address}))
    return "; ".join(f"{cookie.name}={cookie.value}" for cookie in jar)


def session_url(product: Product, projects: Path) -> str:
    """The page of the one session in `projects`, found by its source id."""
    source_id = next(projects.rglob("*.jsonl")).stem
    code = f"from sessions_app.models import Session; print(Session.objects.get(source_key__endswith='{source_id}', parent=None).pk)"
    return f"{product.url}/sessions/{product.command('shell', '-c', code).strip().splitlines()[-1]}/"


def server_time(product: Product, path: str, cookies: list[dict[str, Any]], count: int = 200) -> dict[str, float]:
    """Milliseconds per answer over one connection that stays open."""
    connection = http.client.HTTPConnection(product.url.removeprefix("http://"))
    cookie = "; ".join(f"{item['name']}={item['value']}" for item in cookies)
    times, size = [], 0
    for _ in range(count):
        began = time.perf_counter()
        connection.request("GET", path, headers={"Cookie": cookie})
        answer = connection.getresponse()
        size = len(answer.read())
        assert answer.status == 200, answer.status
        times.append((time.perf_counter() - began) * 1_000)
    times.sort()
    return {"p50_ms": round(statistics.median(times), 1), "p99_ms": round(times[int(count * 0.99) - 1], 1), "kilobytes": size / 1_000}


def _ratio(identifier: str, what: str, ratio: float, most: float, *, beside: str = "", **facts: object) -> Row:
    floor = f"≤ {most:g} x"
    return Row(
        identifier,
        what,
        round(ratio, 2),
        "x",
        ratio=round(ratio, 2),
        beside=beside,
        floor=floor,
        is_met=ratio <= most,
        command=COMMAND,
        facts=facts,
    )


def session_rows(driver: Any, options: Options) -> Iterator[Row]:
    """S1, S2, S3, S5, S6: a session of 100,000 records (of 10,000, quickly) and one of 1,000."""
    large_name = "e10000" if options.is_quick else "e100000"
    small, large = make(options, "e1000"), make(options, large_name)
    with running(options.folder / "sessions-data", small, large) as product, ExitStack() as stack:
        cookies = sign_in(driver, product)
        url = session_url(product, large)
        last = int(large_name[1:])
        targets = {
            "small": (session_url(product, small), cookies),
            "large": (f"{url}?layout=canonical", cookies),
            "split": (f"{url}?layout=split", cookies),
            "first": (f"{url}?layout=canonical&at=1", cookies),
            "deep": (f"{url}?layout=canonical&at={last * 9 // 10}", cookies),
        }
        if (program := options.peer("agentsview")) is not None:
            peer = stack.enter_context(AgentsView(program, options.folder / "peer-sessions").serving(large))
            targets["agentsview"] = (peer.session_url(), [])
        runs = in_turns(driver, targets, options.rounds)
    told = {name: medians(measured) for name, measured in runs.items()}
    if "agentsview" in runs:
        ratio = paired_ratio(runs["large"], runs["agentsview"])
        yield _ratio(
            "S1", "open a long session: text visible", ratio, 1.0, beside="agentsview", ours=told["large"], peer=told["agentsview"]
        )
    else:
        what = "open a long session: text visible"
        yield Row("S1", what, told["large"]["text"], "ms", floor="≤ 1 x agentsview", command=COMMAND, facts={"ours": told["large"]})
    yield _ratio("S2", "text, long / short session", paired_ratio(runs["large"], runs["small"]), 1.3)
    yield _ratio("S3", "both panes / one pane", paired_ratio(runs["split"], runs["large"]), 1.5)
    yield _ratio("S5", "deep link / first record", paired_ratio(runs["deep"], runs["first"]), 2.0)
    weight = told["large"]["kilobytes"]
    yield Row("S6", "page weight, decoded", weight, "kB", floor="≤ 600 kB", is_met=weight <= 600, command=COMMAND)


def list_rows(driver: Any, options: Options) -> Iterator[Row]:
    """L1–L3: the list of 10,000 sessions and of 1,000 (quickly: of 1,000 and 100)."""
    many, few = ("l1k", "l100") if options.is_quick else ("l10k", "l1k")
    large, small = make(options, many), make(options, few)
    with ExitStack() as stack:
        products = {
            name: stack.enter_context(running(options.folder / f"data-{name}", path)) for name, path in ((many, large), (few, small))
        }
        targets = {name: (f"{product.url}/", sign_in(driver, product)) for name, product in products.items()}
        if (program := options.peer("agentsview")) is not None:
            peer = stack.enter_context(AgentsView(program, options.folder / "peer-list").serving(large))
            targets["agentsview"] = (peer.url, [])
        if (program := options.peer("claude-run")) is not None:
            targets["claude-run"] = (stack.enter_context(ClaudeRun(program, options.folder / "peer-prompts").serving(large)).url, [])
        runs = in_turns(driver, targets, options.rounds)
        served = server_time(products[many], "/", targets[many][1])
    told = {name: medians(measured) for name, measured in runs.items()}
    what = "list of many sessions: text visible"
    yield Row("L1", what, told[many]["text"], "ms", command=COMMAND, facts={"ours": told[many]})
    for peer_name, most in LIST_PEERS.items():
        if peer_name in runs:
            yield _ratio("L1", what, paired_ratio(runs[many], runs[peer_name]), most, beside=peer_name, peer=told[peer_name])
    yield _ratio("L2", "text, list of many / of a tenth", paired_ratio(runs[many], runs[few]), 1.3)
    is_met = served["p50_ms"] <= 40 and served["p99_ms"] <= 100 and served["kilobytes"] <= 300 and told[many]["nodes"] <= 5_000
    facts: dict[str, object] = {**served, "nodes": told[many]["nodes"]}
    floor = "≤ 40 / 100 ms p50 / p99, 5,000 nodes, 300 kB"
    yield Row("L3", "list: time of the server", served["p50_ms"], "ms p50", floor=floor, is_met=is_met, command=COMMAND, facts=facts)


def rows(options: Options) -> Iterator[Row]:
    yield from needs_generator(options, "S1", "S2", "S3", "S5", "S6", "L1", "L2", "L3")
    if options.generator is None:
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        yield from session_rows(driver, options)
        yield from list_rows(driver, options)


if __name__ == "__main__":
    run_alone(rows, __doc__)
