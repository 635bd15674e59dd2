"""One row of what was measured: the same form for every driver, for `python -m tests.bench` and by hand.

A driver offers `rows(options: Options) -> Iterator[Row]`. Ratios are medians of pairs that were run in turns; where a row
has a floor, `is_met` says whether it holds. Nothing is asserted: machines are shared.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Row:
    """One measurement. `ratio` is what it is beside `beside`; `floor` is a sentence, and `is_met` whether it holds."""

    id: str
    what: str
    value: float
    unit: str
    ratio: float | None = None
    beside: str = ""
    floor: str = ""
    is_met: bool | None = None
    command: str = ""
    facts: dict[str, object] = field(default_factory=dict)

    def as_json(self) -> str:
        return json.dumps({key: value for key, value in asdict(self).items() if value not in (None, "", {})})


@dataclass(frozen=True)
class Options:
    """What every driver is given. `peers`: folder with the programs to compare with; a row whose peer is missing is told without ratio."""

    folder: Path
    generator: Path | None = None
    peers: Path | None = None
    is_quick: bool = False
    rounds: int = 5

    def peer(self, name: str) -> Path | None:
        """A peer's program, if it is there."""
        found = [self.peers / "bin" / name, self.peers / "node_modules" / ".bin" / name] if self.peers else []
        return next((path for path in found if os.access(path, os.X_OK)), None)


def run_alone(rows: Callable[[Options], Iterable[Row]], description: str | None) -> None:
    """The command line of one driver: prints a JSON line per row."""
    import tempfile

    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="palimpsest-bench-") as folder:
        for row in rows(options_of(given, Path(folder))):
            sys.stdout.write(row.as_json() + "\n")
            sys.stdout.flush()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--generator", type=Path, help="the program that writes the sessions to measure with (make_sessions.py)")
    parser.add_argument("--peers", type=Path, help="a folder made by `python -m tests.bench --make-peers FOLDER`")
    parser.add_argument("--rounds", type=int, default=5, help="pairs or repetitions of each measurement (default: 5)")
    parser.add_argument("--quick", action="store_true", help="small data and two rounds: to see that it runs, not to compare")


def options_of(given: argparse.Namespace, folder: Path) -> Options:
    rounds = 2 if given.quick else given.rounds
    return Options(folder=folder, generator=given.generator, peers=given.peers, is_quick=given.quick, rounds=rounds)


def quantile(values: Iterable[float], share: float) -> float:
    """The smallest value that at least this share of all does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def needs_generator(options: Options, *ids: str) -> Iterator[Row]:
    """Says which rows were not measured, for want of sessions."""
    if options.generator is None:
        for identifier in ids:
            yield Row(identifier, "not measured: give --generator", 0.0, "")
