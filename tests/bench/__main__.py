"""Measures everything by one command, and writes a table.

    python -m tests.bench --generator make_sessions.py [--peers FOLDER] [--only W1,R1] [--quick] [--out FILE.md]
    python -m tests.bench --make-peers FOLDER

The generator is any program that takes `--out DIR --sessions N --entries N --entries-dist fixed --mean-bytes N --seed N` or `--total-mb N`
and writes Claude Code's session files. `--make-peers` installs what is compared with: `python -m venv FOLDER`,
`FOLDER/bin/pip install agentsview==0.46.1` and `npm install --prefix FOLDER claude-run@0.3.0`, by hand just as well. Without peers the
rows that need them are told without ratio.
Each driver runs in a process of its own and can be run alone; one that fails is named, and the others go on.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.rows import ROOT, Row, add_arguments

AGENTSVIEW, CLAUDE_RUN = "agentsview==0.46.1", "claude-run@0.3.0"
Line = dict[str, Any]


@dataclass(frozen=True)
class Driver:
    """A module of this folder. `rows` makes rows of a line that it printed, where that is none already."""

    module: str
    ids: tuple[str, ...]
    arguments: Callable[[argparse.Namespace], list[str] | None]
    rows: Callable[[Line], Iterable[Row]] = lambda _line: ()


def common(given: argparse.Namespace) -> list[str]:
    told = ["--rounds", str(given.rounds)]
    told += ["--generator", str(given.generator)] if given.generator else []
    told += ["--peers", str(given.peers)] if given.peers else []
    return told + (["--quick"] if given.quick else [])


def rounds_only(given: argparse.Namespace) -> list[str]:
    return ["--rounds", "2" if given.quick else str(given.rounds)]


def for_compaction(given: argparse.Namespace) -> list[str] | None:
    return [*rounds_only(given), "--generator", str(given.generator)] if given.generator else None


def for_planning(given: argparse.Namespace) -> list[str]:
    told = [*rounds_only(given), *(["--generator", str(given.generator)] if given.generator else [])]
    return told + (["--entries", "9000"] if given.quick else [])


def for_events(given: argparse.Namespace) -> list[str]:
    return [*rounds_only(given), "--events", "50000" if given.quick else "1000000"]


def for_import(given: argparse.Namespace) -> list[str] | None:
    if not given.generator:
        return None
    peer = given.peers / "bin" / "agentsview" if given.peers else None
    told = ["--generator", str(given.generator), "--pairs", "1" if given.quick else str(given.rounds)]
    return told + (["--peer", str(peer)] if peer is not None and peer.exists() else [])


def _row(identifier: str, what: str, value: float, unit: str, floor: str, is_met: bool | None, **more: Any) -> Row:
    return Row(identifier, what, value, unit, floor=floor, is_met=is_met, **more)


def compaction_rows(line: Line) -> Iterator[Row]:
    if line.get("name") == "stored":
        took = line["job_overhead_ms"]
        yield _row("C6", "compaction of 9,000 messages besides the model", took, "ms", "≤ 1,000 ms", took <= 1_000, facts=line)


def planning_rows(line: Line) -> Iterator[Row]:
    if "plan/json.dumps" in line:
        passes = line["plan/json.dumps"]
        yield _row("C1", "plan of 90,214 messages, cold / one json.dumps", passes, "x", "≤ 3 x", passes <= 3, facts=line)
    if line.get("what") == "preview_from_store_long":
        yield _row("C1 stored", "the same with stored sizes", line["cpu_ms"], "ms", "aim 15 ms", None, facts=line)
    if "plain/engine_cold" in line:
        faster = line["plain/engine_cold"]
        yield _row("C2", "boundary beside the plain rule, cold", faster, "x as fast", "≥ 100 x", faster >= 100, facts=line)
    if "10 x messages / time" in line:
        growth = line["10 x messages / time"]
        yield _row("C2 growth", "ten times the messages / time", growth, "x", "≤ 11 x", growth <= 11)
    if line.get("what") == "view_in_memory":
        took = line["cpu_ms"]
        yield _row("C3", "view after a compaction, in memory", took, "ms", "≤ 5 ms", took <= 5, facts=line)
    if line.get("what") == "view_from_store_long":
        yield _row("C3 store", "the same from the store", line["cpu_ms"], "ms", "aim 30 ms", None, facts=line)
    if line.get("what") == "tokens_of_session":
        took = line["cpu_ms"]
        yield _row("C4", f"tokens of a session of {line['entries']:,} entries, warm", took, "ms", "≤ 20 ms", took <= 20, facts=line)


def import_rows(line: Line) -> Iterator[Row]:
    ratio, data = line.get("times_as_fast_as_peer"), line.get("data", "")
    beside = "agentsview" if ratio is not None else ""
    told: dict[str, Any] = {"ratio": ratio, "beside": beside, "facts": line}
    if data == "d100":
        is_met = None if ratio is None else ratio >= 0.5
        yield _row("I1", "import of 100 MB", line["mb_per_s"], "MB/s", "≥ 0.5 x agentsview", is_met, **told)
        stored = line["stored_per_source_byte"]
        yield _row("I5", "bytes stored / source bytes", stored, "x", "≤ 1.5", stored <= 1.5)
    elif data == "l1k":
        is_met = None if ratio is None else ratio >= 1
        yield _row("I2", "import of 1,000 small sessions", line["mb_per_s"], "MB/s", "≥ 1 x agentsview", is_met, **told)
    elif data == "e100000":
        yield _row("I4", "memory of the import of one long file", line["rss_mb"], "MB", "≤ 655", line["rss_mb"] <= 655, facts=line)


DRIVERS = (
    Driver("bench_watch", ("W1", "W2"), common),
    Driver("bench_live", ("R1", "R4"), common),
    Driver("bench_fan", ("R3",), common),
    Driver("pages", ("S1", "S2", "S3", "S5", "S6", "L1", "L2", "L3"), common),
    Driver("bench_compaction", ("C6",), for_compaction, compaction_rows),
    Driver("bench_fleet", ("C7",), common),
    Driver("bench_planning", ("C1", "C2", "C3"), for_planning, planning_rows),
    Driver("bench_events", ("A1", "A2", "A3"), for_events),
    Driver("bench_import", ("I1", "I2", "I3", "I4", "I5", "I6", "I7"), for_import, import_rows),
    Driver("bench_search", ("Q1", "Q2", "Q3"), common),
)


def run(driver: Driver, given: argparse.Namespace) -> Iterator[Row]:
    """Rows of one driver as it prints them; what went wrong is a row as well."""
    ids = ", ".join(driver.ids)
    if not (ROOT / "tests" / "bench" / f"{driver.module}.py").exists():
        yield Row(ids, f"not measured: there is no {driver.module} yet", 0.0, "")
        return
    arguments = driver.arguments(given)
    if arguments is None:
        yield Row(ids, "not measured: give --generator", 0.0, "")
        return
    command = [sys.executable, "-m", f"tests.bench.{driver.module}", *arguments]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = f"python -m tests.bench.{driver.module} {' '.join(arguments)}"
    for text in process.stdout:
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if not isinstance(line, dict):
            continue
        found = [Row(**line)] if {"id", "what", "value", "unit"} <= line.keys() else driver.rows(line)
        yield from (Row(**{**row.__dict__, "command": row.command or said}) for row in found)
    _, trouble = process.communicate()
    if process.returncode:
        last = trouble.strip().splitlines()[-1:] or ["no word"]
        yield Row(ids, f"FAILED with {process.returncode}: {last[0][:200]}", 0.0, "", command=said)


def table(rows: Iterable[Row]) -> str:
    """The rows as Markdown."""
    lines = ["| row | what | value | beside | floor | holds |", "| --- | --- | --- | --- | --- | --- |"]
    for row in rows:
        beside = f"{row.ratio:g} x {row.beside}".strip() if row.ratio is not None else ""
        holds = {True: "yes", False: "**no**", None: "–"}[row.is_met]
        value = f"{row.value:g} {row.unit}" if row.unit else ""
        lines.append(f"| {row.id} | {row.what} | {value} | {beside} | {row.floor} | {holds} |")
    return "\n".join(lines) + "\n"


def make_peers(folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run([str(folder / "bin" / "pip"), "install", "--quiet", AGENTSVIEW], check=True)
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), CLAUDE_RUN], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_arguments(parser)
    parser.add_argument("--only", default="", help="rows to measure, separated by commas: W1,R1; their driver's other rows come along")
    parser.add_argument("--out", type=Path, help="writes the table there, and the rows beside it as JSON")
    parser.add_argument("--make-peers", type=Path, metavar="FOLDER", help="installs the programs to compare with, and ends")
    given = parser.parse_args()
    if given.make_peers:
        make_peers(given.make_peers)
        return
    given.generator = given.generator and given.generator.resolve()
    given.peers = given.peers and given.peers.resolve()
    wanted = set(filter(None, given.only.upper().replace(" ", "").split(",")))
    rows: list[Row] = []
    for driver in DRIVERS:
        if wanted and not wanted & set(driver.ids):
            continue
        for row in run(driver, given):
            sys.stderr.write(row.as_json() + "\n")
            rows.append(row)
    sys.stdout.write(table(rows))
    if given.out:
        given.out.write_text(table(rows))
        given.out.with_suffix(".json").write_text(json.dumps([json.loads(row.as_json()) for row in rows], indent=1))


if __name__ == "__main__":
    main()
