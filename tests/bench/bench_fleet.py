"""Measures fifty sessions that compact at once on the two workers of `up`, and how long pages take meanwhile.

    python -m tests.bench.bench_fleet [--quick]

C7: each compaction waits two seconds for its summariser. Ideal is what the summarisers alone would take, two at a time.
Pages are fetched one after the other, before and meanwhile: the list, and one of the sessions.
"""

import http.cookiejar
import json
import re
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator

from tests.bench.product import Product, running
from tests.bench.rows import Options, Row, quantile, run_alone

COMMAND = "python -m tests.bench.bench_fleet"
DELAY_S, WORKERS = 2.0, 2
IDLE_FETCHES = 200
PATIENCE_S = 600
PREPARE = """
from tests.services.compaction_scenes import long_session, set_policy
from sessions_app.models import Session
for number in range({count}):
    session = long_session(12, title=f"fleet {{number}}")
    set_policy(session, summarisers=["scripted"], scripted_delay_s={delay})
print("made", session.pk)
"""
REQUEST = """
from sessions_app.events.actors import system_actor
from sessions_app.models import Session
from sessions_app.services.compactions.request import request
for session in Session.objects.filter(title__startswith="fleet "):
    request(actor=system_actor("bench"), session=session)
"""
RESULT = """
import json
from django.db.models import Max, Min
from sessions_app.events.log import session_stream
from sessions_app.events.verify import verify_stream
from sessions_app.models import Compaction, Event
mine = Compaction.objects.filter(session__title__startswith="fleet ")
times = mine.aggregate(first=Min("started_at"), last=Max("finished_at"))
terminal = [Event.objects.filter(compaction_id=one.pk, type="compaction.persisted").count() for one in mine]
broken = [one.pk for one in mine if verify_stream(session_stream(one.session_id)).broken_at is not None]
over = not mine.exclude(status="completed").exists()
wall_s = (times["last"] - times["first"]).total_seconds() if over else None
completed = mine.filter(status="completed").count()
print("told", json.dumps({"wall_s": wall_s, "completed": completed, "once": terminal.count(1), "broken": len(broken)}))
"""


def browser(product: Product) -> Callable[[str], float]:
    """Somebody who is signed in: fetches a page, and says in how many milliseconds."""
    jar = http.cookiejar.CookieJar()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    form = opener.open(f"{product.url}/sign-in/").read().decode()
    found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)
    assert found is not None
    told = {"csrfmiddlewaretoken": found.group(1), "username": product.name, "password": product.password}
    opener.open(f"{product.url}/sign-in/", urllib.parse.urlencode(told).encode()).read()

    def fetch(path: str) -> float:
        begun = time.perf_counter()
        with opener.open(f"{product.url}{path}") as answer:
            answer.read()
        return (time.perf_counter() - begun) * 1_000

    return fetch


def printed(product: Product, code: str, mark: str) -> str:
    return next(line for line in product.command("shell", "-c", code).splitlines() if line.startswith(mark)).removeprefix(mark).strip()


def rows(options: Options) -> Iterator[Row]:
    count = 10 if options.is_quick else 50
    with running(options.folder / "fleet") as product:
        session_id = printed(product, PREPARE.format(count=count, delay=DELAY_S), "made")
        fetch, pages = browser(product), ("/", f"/sessions/{session_id}/")
        idle = [fetch(pages[number % 2]) for number in range(IDLE_FETCHES)]
        product.command("shell", "-c", REQUEST)
        meanwhile: list[float] = []
        told: dict[str, float | None] = {"wall_s": None}
        ideal_s = DELAY_S * count / WORKERS
        until, look_at = time.monotonic() + PATIENCE_S, time.monotonic() + ideal_s
        while time.monotonic() < until:
            meanwhile.append(fetch(pages[len(meanwhile) % 2]))
            if time.monotonic() >= look_at:
                told = json.loads(printed(product, RESULT, "told"))
                if told["wall_s"] is not None:
                    break
                look_at = time.monotonic() + 2
    wall_s = told["wall_s"] or float("inf")
    ratio = wall_s / ideal_s
    facts: dict[str, object] = {"sessions": count, "workers": WORKERS, "ideal_s": ideal_s, **told}
    what = f"{count} compactions at once, {DELAY_S:g} s each, {WORKERS} workers"
    yield Row("C7 wall", what, round(wall_s, 1), "s", round(ratio, 3), "ideal", "≤ 1.3", ratio <= 1.3, COMMAND, facts)
    p99, p99_idle = quantile(meanwhile, 0.99), quantile(idle, 0.99)
    facts = {"p99_idle_ms": round(p99_idle, 1), "p50_ms": round(quantile(meanwhile, 0.5), 1), "p50_idle_ms": round(quantile(idle, 0.5), 1)}
    facts["pages"] = len(meanwhile)
    yield Row(
        "C7 pages", "pages meanwhile", round(p99, 1), "ms p99", round(p99 / p99_idle, 2), "idle", "≤ 3", p99 <= 3 * p99_idle, COMMAND, facts
    )


if __name__ == "__main__":
    run_alone(rows, __doc__)
