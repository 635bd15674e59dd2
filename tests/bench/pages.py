"""Measures pages: how soon a session of 1,000 and of 100,000 records can be read, and the list of 10,000 sessions.

    python -m tests.bench.pages --generator make_sessions.py [--rounds 5] [--peer NAME=URL]

The generator writes the same files for the same seed. A peer is started by hand on the same files;
its page is then opened in turns with ours. Prints one JSON line per measurement. Nothing here
is asserted: the machine is shared, so only ratios of runs in the same minutes mean something.
"""

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench.page_timing import in_turns, medians, paired_ratio
from tests.bench.product import Product, running

SETS = {
    "e1000": ("--sessions", "1", "--entries", "1000", "--entries-dist", "fixed", "--mean-bytes", "1200", "--seed", "3"),
    "e100000": ("--sessions", "1", "--entries", "100000", "--entries-dist", "fixed", "--mean-bytes", "1200", "--seed", "3"),
    "l10k": ("--sessions", "10000", "--entries", "12", "--entries-dist", "fixed", "--mean-bytes", "900", "--seed", "2"),
}


def say(name: str, **numbers: Any) -> None:
    sys.stdout.write(json.dumps({"name": name, **numbers}) + "\n")
    sys.stdout.flush()


def make(generator: str, folder: Path, name: str) -> Path:
    subprocess.run([sys.executable, generator, "--out", str(folder / name), *SETS[name]], check=True, stdout=subprocess.DEVNULL)
    return folder / name


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


def measure_sessions(driver: Any, product: Product, small: Path, large: Path, rounds: int, peer: dict[str, str]) -> None:
    cookies = sign_in(driver, product)
    targets = {"small": (session_url(product, small), cookies), "large": (session_url(product, large), cookies)}
    targets |= {name: (url, []) for name, url in peer.items()}
    runs = in_turns(driver, targets, rounds)
    for name, measured in runs.items():
        say(f"open {name}", **medians(measured))
    say("S2 text large / small", ratio=paired_ratio(runs["large"], runs["small"]))
    for name in peer:
        say(f"S1 text ours / {name}", ratio=paired_ratio(runs["large"], runs[name]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--generator", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--peer", action="append", default=[], metavar="NAME=URL", help="a page of a running peer that shows the large session"
    )
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory(prefix="palimpsest-bench-") as folder, sync_playwright() as driver:
        root = Path(folder)
        small, large = make(options.generator, root, "e1000"), make(options.generator, root, "e100000")
        with running(root / "sessions", small, large) as product:
            measure_sessions(driver, product, small, large, options.rounds, dict(peer.split("=", 1) for peer in options.peer))
        many = make(options.generator, root, "l10k")
        with running(root / "list", many) as product:
            cookies = sign_in(driver, product)
            say("L3 list of 10,000", **server_time(product, "/", cookies))
            say("L3 list in the browser", **medians(in_turns(driver, {"list": (f"{product.url}/", cookies)}, options.rounds)["list"]))


if __name__ == "__main__":
    main()
