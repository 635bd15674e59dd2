"""Measures the search beside a peer: a page of hits over HTTP (d100), within a session of 100,000 records, and in ten times as much.

    python -m tests.bench.bench_search --generator make_sessions.py [--peers FOLDER] [--rounds 5] [--quick]

Both answer over HTTP on this machine, in turns, so that a busy minute hits both alike; only ratios mean something. Ours is
the whole page as HTML with snippets, for somebody who is signed in; the peer's is its JSON. Nothing here is asserted.
"""

import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

from tests.bench.product import Product, free_port, running
from tests.bench.rows import Options, Row, needs_generator, run_alone

QUERIES = ("error", "session file", "boundary", "the in is", '"error in"')
ONE = ("--sessions", "1", "--entries", "100000", "--entries-dist", "fixed", "--mean-bytes", "1200", "--seed", "3")


def make(generator: Path, folder: Path, name: str, *arguments: str) -> Path:
    subprocess.run([sys.executable, str(generator), "--out", str(folder / name), *arguments], check=True, stdout=subprocess.DEVNULL)
    return folder / name


class Client:
    """One kept connection, and what it must send along."""

    def __init__(self, url: str, cookie: str = "") -> None:
        self._to = urllib.parse.urlsplit(url).netloc
        self._connection = http.client.HTTPConnection(self._to, timeout=120)
        self._headers = {"Cookie": cookie} if cookie else {}

    def get(self, path: str) -> tuple[float, int, str]:
        """(milliseconds, status, text)."""
        started = time.perf_counter()
        self._connection.request("GET", path, headers=self._headers)
        response = self._connection.getresponse()
        text = response.read().decode(errors="replace")
        return (time.perf_counter() - started) * 1000, response.status, text


def signed_in(product: Product) -> Client:
    """A client with a session cookie, as a browser gets it."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(product.url).netloc)
    connection.request("GET", "/sign-in/")
    response = connection.getresponse()
    page = response.read().decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    cookie = response.getheader("Set-Cookie", "").partition(";")[0]
    assert token is not None
    body = urllib.parse.urlencode({"csrfmiddlewaretoken": token[1], "username": product.name, "password": product.password})
    connection.request("POST", "/sign-in/", body, {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"})
    response = connection.getresponse()
    response.read()
    cookies = [value.partition(";")[0] for name, value in response.getheaders() if name.lower() == "set-cookie"]
    return Client(product.url, "; ".join(cookies))


class Peer:
    """agentsview in a home of its own."""

    def __init__(self, binary: Path, folder: Path, data: Path) -> None:
        self.binary, self.port = binary, free_port()
        home = folder / "peer-home"
        home.mkdir()
        self.environment = {**os.environ, "HOME": str(home), "AGENTSVIEW_DATA_DIR": str(home / "data"), "CLAUDE_PROJECTS_DIR": str(data)}
        arguments = [str(binary), "serve", "--port", str(self.port), "--no-browser"]
        self.process = subprocess.Popen(arguments, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.client = self._ready()

    def _ready(self) -> Client:
        for _ in range(240):
            time.sleep(1)
            try:
                client = Client(f"http://127.0.0.1:{self.port}")
                _, status, text = client.get(self.address("error"))
                if status == 200 and json.loads(text).get("results"):
                    return client
            except (OSError, ValueError):
                continue
        raise RuntimeError("the peer did not answer")

    def address(self, query: str) -> str:
        return "/api/v1/search?" + urllib.parse.urlencode({"q": query, "limit": 50})

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)


def measure(ours: Client, peer: Peer | None, rounds: int, *, path: str = "/search/") -> tuple[float, float | None]:
    """Queries in turns. Returns our median in milliseconds, and the median of ours ÷ theirs."""
    mine: list[float] = []
    theirs: list[float] = []
    for number in range(rounds + 1):
        for query in QUERIES:
            taken, status, text = ours.get(f"{path}?{urllib.parse.urlencode({'q': query})}")
            assert status == 200, status
            assert number or "<mark>" in text, query
            other = peer.client.get(peer.address(query))[0] if peer else None
            if number:  # the first round warms both
                mine.append(taken)
                theirs += [other] if other is not None else []
    ratio = statistics.median(one / other for one, other in zip(mine, theirs, strict=True)) if theirs else None
    return statistics.median(mine), ratio


def over_all(options: Options, data: Path, rounds: int) -> Iterator[Row]:
    """Q1, a page of hits over all sessions."""
    binary = options.peer("agentsview")
    peer = Peer(binary, options.folder, data) if binary else None
    try:
        with running(options.folder / "ours", data) as product:
            took, ratio = measure(signed_in(product), peer, rounds)
    finally:
        if peer:
            peer.stop()
    is_met = None if ratio is None else ratio <= 1.5
    beside = "agentsview" if ratio is not None else ""
    yield Row("Q1", "search in 100 MB, a page of 50 hits, p50", took, "ms", ratio, beside, "≤ 1.5 x agentsview", is_met)


def within_one(options: Options, rounds: int) -> Iterator[Row]:
    """Q2, within a session of 100,000 records; and its deep link beside its first page."""
    assert options.generator is not None
    one = make(options.generator, options.folder, "e100000", *ONE)
    with running(options.folder / "long", one) as product:
        listed = signed_in(product).get("/?sort=entries")[2]  # the longest first
        session = re.search(r'href="/sessions/([0-9a-f-]{36})/" title', listed)
        assert session is not None
        path = f"/sessions/{session[1]}/"
        client = signed_in(product)
        plain = statistics.median(client.get(f"{path}?layout=canonical&at=1")[0] for _ in range(rounds))
        found, _ = measure(client, None, rounds, path=path)
        deep = statistics.median(client.get(f"{path}?layout=canonical&at=90000")[0] for _ in range(rounds))
    facts: dict[str, object] = {"opening_ms": round(plain, 1), "deep_link_of_opening": round(deep / plain, 2)}
    yield Row("Q2", "search within 100,000 records adds to its page", round(found - plain, 1), "ms", floor="aim 200 ms", facts=facts)


def ten_times(options: Options, rounds: int) -> Iterator[Row]:
    """Q3, ten times as much; each is measured by itself, in the same minutes."""
    assert options.generator is not None
    took = []
    for name, megabytes in (("d100", "100"), ("d1000", "1000")):
        data = options.folder / name
        if not data.exists():
            make(options.generator, options.folder, name, "--total-mb", megabytes, "--seed", "1")
        with running(options.folder / f"{name}-q3", data) as product:
            took.append(measure(signed_in(product), None, rounds)[0])
    ratio = round(took[1] / took[0], 2)
    yield Row("Q3", "search in ten times as much", took[1], "ms", ratio, "100 MB", "≤ 5 x", ratio <= 5)


def rows(options: Options) -> Iterator[Row]:
    if options.generator is None:
        yield from needs_generator(options, "Q1", "Q2", "Q3")
        return
    rounds = 2 if options.is_quick else 3 * options.rounds
    data = make(options.generator, options.folder, "d100", "--total-mb", "20" if options.is_quick else "100", "--seed", "1")
    yield from over_all(options, data, rounds)
    if not options.is_quick:
        yield from within_one(options, rounds)
        yield from ten_times(options, rounds)


if __name__ == "__main__":
    run_alone(rows, __doc__)
