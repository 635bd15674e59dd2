"""Imports beside a peer: speed, memory, bytes stored, and the price of importing again.

Run it by hand, on a machine that does nothing else:

    python -m tests.bench.bench_import --generator …/make_sessions.py --peer …/bin/agentsview

Without `--peer` it measures this product alone; with more than one pair also ten times as much, which takes minutes. The
peer runs in a folder and home of its own. Pairs are measured in turn (A-B-A-B), the median of their ratios counts.
"""

import argparse
import contextlib
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.bench.rows import Row

SMALL = ("--sessions", "1000", "--entries", "12", "--entries-dist", "fixed", "--mean-bytes", "900", "--seed", "2")
ONE = ("--sessions", "1", "--entries", "100000", "--entries-dist", "fixed", "--mean-bytes", "1200", "--seed", "3")
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Run:
    """One run of a command: seconds by the clock, seconds of processor, and the largest process in megabytes."""

    wall: float
    cpu: float
    rss_mb: float


def timed(command: list[str], environment: dict[str, str], meanwhile: Callable[[], None] = lambda: None) -> Run:
    started = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    meanwhile()
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{command} ended with {os.waitstatus_to_exitcode(status)}")
    return Run(time.perf_counter() - started, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


class Ours:
    """This product on a fresh database."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "ours"
        self.environment = {**os.environ, "PALIMPSEST_DATA_DIR": str(self.folder), "PALIMPSEST_LOG_LEVEL": "WARNING"}
        self.environment.pop("DJANGO_SETTINGS_MODULE", None)

    def fresh(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, env=self.environment, check=True)

    def run(self, data: Path, meanwhile: Callable[[], None] = lambda: None) -> Run:
        return timed([sys.executable, "manage.py", "import_sessions", "--quiet", str(data)], self.environment, meanwhile)

    def wait_for_a_session(self) -> float:
        """Looks until a session can be opened; returns the seconds that it took."""
        started = time.perf_counter()
        with contextlib.closing(sqlite3.connect(f"file:{self.folder}/palimpsest.sqlite3?mode=ro", uri=True)) as database:
            while not database.execute("SELECT 1 FROM sessions_app_session WHERE is_complete LIMIT 1").fetchone():
                time.sleep(0.02)
        return time.perf_counter() - started

    def stored(self) -> int:
        return sum(file.stat().st_size for file in self.folder.glob("palimpsest.sqlite3*"))


class Peer:
    """agentsview in a home of its own."""

    def __init__(self, folder: Path, binary: Path) -> None:
        self.folder = folder / "peer"
        self.binary = binary

    def environment(self, data: Path) -> dict[str, str]:
        home = str(self.folder)
        return {**os.environ, "HOME": home, "AGENTSVIEW_DATA_DIR": f"{home}/data", "CLAUDE_PROJECTS_DIR": str(data)}

    def fresh(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def run(self, data: Path) -> Run:
        environment = self.environment(data)
        try:
            return timed([str(self.binary), "sync"], environment)
        finally:
            subprocess.run([str(self.binary), "daemon", "stop"], env=environment, capture_output=True, check=False)


def generate(generator: Path, folder: Path, name: str, *arguments: str) -> Path:
    target = folder / name
    subprocess.run([sys.executable, str(generator), "--out", str(target), *arguments], check=True, stdout=subprocess.DEVNULL)
    return target


def size(data: Path) -> int:
    return sum(file.stat().st_size for file in data.rglob("*.jsonl"))


def compare(name: str, data: Path, ours: Ours, peer: Peer | None, pairs: int) -> dict[str, object]:
    """Pairs in turn; the ratio is the peer's time through ours: above 1 this product is faster."""
    mine, theirs = [], []
    for _ in range(pairs):
        ours.fresh()
        mine.append(ours.run(data))
        if peer is not None:
            peer.fresh()
            theirs.append(peer.run(data))
    megabytes = size(data) / 1e6
    told: dict[str, object] = {
        "data": name,
        "mb": round(megabytes, 1),
        "mb_per_s": round(megabytes / statistics.median(run.wall for run in mine), 1),
        "cpu_s": round(statistics.median(run.cpu for run in mine), 1),
        "rss_mb": round(max(run.rss_mb for run in mine)),
        "stored_per_source_byte": round(ours.stored() / size(data), 2),
    }
    if theirs:
        ratios = [other.wall / own.wall for own, other in zip(mine, theirs, strict=True)]
        told["times_as_fast_as_peer"] = round(statistics.median(ratios), 2)
        told["ratios"] = [round(ratio, 2) for ratio in ratios]
    return told


def ten_times(data: Path, ours: Ours, of_d100: float) -> Iterator[Row]:
    """Ten times as much, beside the megabytes a second of d100; then once more, unchanged."""
    ours.fresh()
    opened: list[float] = []
    run = ours.run(data, lambda: opened.append(ours.wait_for_a_session()))
    speed = size(data) / 1e6 / run.wall
    ratio = speed / of_d100
    yield Row("I3", "import of ten times as much", round(speed, 1), "MB/s", round(ratio, 2), "100 MB", "≥ 0.8 x", ratio >= 0.8)
    yield Row("I4 d1000", "memory of its largest process", round(run.rss_mb), "MB", floor="≤ 400", is_met=run.rss_mb <= 400)
    yield Row("I7", "time until its first session can be opened", round(opened[0], 2), "s", floor="≤ 3 s", is_met=opened[0] <= 3)
    told = again(data, ours)
    ratio = told["again_s"] / told["reading_all_s"]
    yield Row("I6", "import of it, unchanged", told["again_s"], "s", round(ratio, 2), "reading it", "≤ 3 x", ratio <= 3, facts=dict(told))


def again(data: Path, ours: Ours) -> dict[str, float]:
    """Importing what is unchanged, against reading all of it once; the start of the process is told apart."""
    one = next(data.rglob("*.jsonl"))
    start, unchanged = ours.run(one), ours.run(data)
    started = time.perf_counter()
    for file in data.rglob("*.jsonl"):
        file.read_bytes()
    read = time.perf_counter() - started
    return {"again_s": round(unchanged.wall, 2), "of_which_start_s": round(start.wall, 2), "reading_all_s": round(read, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generator", type=Path, required=True)
    parser.add_argument("--peer", type=Path, default=None)
    parser.add_argument("--pairs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="palimpsest-bench-") as name:
        folder = Path(name)
        ours, peer = Ours(folder), Peer(folder, options.peer) if options.peer else None
        many = generate(options.generator, folder, "d100", "--total-mb", "100", "--seed", "1")
        told = compare("d100", many, ours, peer, options.pairs)
        print(json.dumps(told))
        print(json.dumps(again(many, ours)))
        small = generate(options.generator, folder, "l1k", *SMALL)
        print(json.dumps(compare("l1k", small, ours, peer, 1)))
        one = generate(options.generator, folder, "e100000", *ONE)
        print(json.dumps(compare("e100000", one, ours, peer, 1)))
        if options.pairs > 1:
            shutil.rmtree(many)
            shutil.rmtree(one)
            large = generate(options.generator, folder, "d1000", "--total-mb", "1000", "--seed", "1")
            for row in ten_times(large, ours, float(str(told["mb_per_s"]))):
                print(row.as_json(), flush=True)


if __name__ == "__main__":
    main()
