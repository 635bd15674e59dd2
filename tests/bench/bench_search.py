"""Measures the search beside a peer: a page of hits over HTTP (d100), within a session of 100,000 records, and in ten times as much.

    python -m tests.bench.bench_search --generator make_sessions.py [--peer …/bin/agentsview] [--rounds 15] [--ten-times]

Both answer over HTTP on this machine, in turns, so that a busy minute hits both alike; only ratios mean something. Ours is
the whole page as HTML with snippets, for somebody who is signed in; the peer's is its JSON. Nothing here is asserted.
"""

import argparse
import http.client
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path

from tests.bench.product import Product, free_port, running

QUERIES = ("error", "session file", "boundary", "the in is", '"error in"')
ONE = ("--sessions", "1", "--entries", "100000", "--entries-dist", "fixed", "--mean-bytes", "1200", "--seed", "3")


def say(name: str, **numbers: object) -> None:
    sys.stdout.write(json.dumps({"name": name, **numbers}) + "\n")
    sys.stdout.flush()


def make(generator: str, folder: Path, name: str, *arguments: str) -> Path:
    subprocess.run([sys.executable, generator, "--out", str(folder / name), *arguments], check=True, stdout=subprocess.DEVNULL)
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


def measure(name: str, ours: Client, peer: Peer | None, rounds: int, *, path: str = "/search/") -> float:
    """Queries in turns; medians, and the median of ours ÷ theirs. Returns our median in milliseconds."""
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
    told: dict[str, object] = {"p50_ms": round(statistics.median(mine), 1)}
    if theirs:
        told |= {
            "peer_p50_ms": round(statistics.median(theirs), 1),
            "of_the_peers": round(statistics.median(one / other for one, other in zip(mine, theirs, strict=True)), 2),
        }
    say(name, **told)
    return statistics.median(mine)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generator", required=True)
    parser.add_argument("--peer", type=Path, default=None)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--ten-times", action="store_true", help="also ten times as much, which takes minutes to import")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-search-"))
    try:
        data = make(options.generator, folder, "d100", "--total-mb", "100", "--seed", "1")
        peer = Peer(options.peer, folder, data) if options.peer else None
        with running(folder / "ours", data) as product:
            small = measure("Q1 d100, top 50", signed_in(product), peer, options.rounds)
        if peer:
            peer.stop()
        one = make(options.generator, folder, "e100000", *ONE)
        with running(folder / "long", one) as product:
            listed = signed_in(product).get("/?sort=-entries")[2] + signed_in(product).get("/?sort=entries")[2]
            session = re.search(r'href="/sessions/([0-9a-f-]{36})/" title', listed)
            assert session is not None
            path = f"/sessions/{session[1]}/"
            client = signed_in(product)
            plain = statistics.median(client.get(f"{path}?layout=canonical&at=1")[0] for _ in range(options.rounds))
            found = measure("Q2 within e100000, the whole page", client, None, options.rounds, path=path)
            deep = statistics.median(client.get(f"{path}?layout=canonical&at=90000")[0] for _ in range(options.rounds))
            say("Q2, S5", opening_ms=round(plain, 1), search_adds_ms=round(found - plain, 1), deep_link_of_opening=round(deep / plain, 2))
        if options.ten_times:
            large = make(options.generator, folder, "d1000", "--total-mb", "1000", "--seed", "1")
            with running(folder / "large", large) as product:
                say("Q3 d1000 / d100", ratio=round(measure("Q3 d1000", signed_in(product), None, options.rounds) / small, 2))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
