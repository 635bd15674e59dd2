"""Times how a page opens in Chromium: when text can be read, how much was loaded, how many elements there are."""

import shutil
import statistics
import tempfile
import time
from typing import Any

ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
WATCH = r"""
(() => {
  const seen = window.timing = {text: null, paint: null, last: 0};
  const marker = /[a-z]+-[0-9a-f]{10}\b/;
  const look = () => {
    if (document.body) {
      const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      for (let node = walk.nextNode(); node && seen.text === null; node = walk.nextNode())
        if (node.data.length > 11 && marker.test(node.data.slice(0, 20000))) seen.text = performance.now();
    }
    if (seen.text === null) setTimeout(look, 20);
  };
  new MutationObserver(() => { seen.last = performance.now(); }).observe(document, {childList: true, subtree: true, characterData: true});
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (entry.name === "first-contentful-paint") seen.paint = entry.startTime;
  }).observe({type: "paint", buffered: true});
  look();
})();
"""
READ = """() => {
  const nav = performance.getEntriesByType("navigation")[0];
  return {ttfb: nav.responseStart, paint: timing.paint, text: timing.text, last: timing.last, now: performance.now(),
          nodes: document.getElementsByTagName("*").length, ready: document.readyState};
}"""
QUIET_MS, PATIENCE_S = 1_500, 90


def open_once(driver: Any, url: str, cookies: list[dict[str, Any]]) -> dict[str, float]:
    """Opens `url` in a fresh browser with an empty cache; milliseconds since navigation began, bytes decoded."""
    folder = tempfile.mkdtemp(prefix="bench-browser-")
    context = driver.chromium.launch_persistent_context(
        folder, executable_path="/usr/bin/chromium", args=ARGUMENTS, viewport={"width": 1400, "height": 900}
    )
    try:
        context.add_cookies(cookies)
        page = context.pages[0]
        page.add_init_script(WATCH)
        network = context.new_cdp_session(page)
        network.send("Network.enable")
        loaded = [0]
        network.on("Network.dataReceived", lambda event: loaded.__setitem__(0, loaded[0] + event["dataLength"]))
        page.goto(url, wait_until="commit")
        until = time.monotonic() + PATIENCE_S
        read = page.evaluate(READ)
        while time.monotonic() < until and not _is_settled(read):
            time.sleep(0.1)
            read = page.evaluate(READ)
        return {**{key: read[key] for key in ("ttfb", "paint", "text", "nodes")}, "kilobytes": loaded[0] / 1_000}
    finally:
        context.close()
        shutil.rmtree(folder, ignore_errors=True)


def _is_settled(read: dict[str, Any]) -> bool:
    return read["ready"] == "complete" and read["text"] is not None and read["now"] - read["last"] > QUIET_MS


def in_turns(driver: Any, targets: dict[str, tuple[str, list[dict[str, Any]]]], rounds: int) -> dict[str, list[dict[str, float]]]:
    """Opens each target once a round, so that a busy minute hits all of them alike."""
    results: dict[str, list[dict[str, float]]] = {name: [] for name in targets}
    for _ in range(rounds):
        for name, (url, cookies) in targets.items():
            results[name].append(open_once(driver, url, cookies))
    return results


def medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {key: round(statistics.median(run[key] for run in runs if run[key] is not None), 1) for key in runs[0]}


def paired_ratio(ours: list[dict[str, float]], theirs: list[dict[str, float]], key: str = "text") -> float:
    """Median of ours ÷ theirs, round by round."""
    return round(statistics.median(mine[key] / other[key] for mine, other in zip(ours, theirs, strict=True)), 3)
