"""Measures what one compaction costs besides the model's calls, on a session of 9,000 messages.

    python -m tests.bench.bench_compaction --generator make_sessions.py [--rounds 5] [--mean-bytes 1200]

`pure`: the engine alone, on entries in memory. `stored`: from the start of the job to the stored checkpoint, on
SQLite in a folder of its own. Both are given with and without the summariser's own time, in milliseconds of the
clock and of the processor. Prints one JSON line per measurement. Nothing here is asserted: machines are shared.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MESSAGES = 9_000


class Timed:
    """The extractive summariser, with a watch."""

    def __init__(self) -> None:
        from sessions_app.engine.extractive import ExtractiveSummariser

        self._inner = ExtractiveSummariser()
        self.name, self.window, self.is_model = self._inner.name, self._inner.window, self._inner.is_model
        self.wall_s = self.cpu_s = 0.0

    def summarise(self, request: Any, should_stop: Any) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            return self._inner.summarise(request, should_stop)
        finally:
            self.wall_s += time.perf_counter() - wall
            self.cpu_s += time.process_time() - cpu


def measure(name: str, rounds: int, once: Callable[[Timed], dict[str, Any]]) -> None:
    """Runs it `rounds` times and prints the medians."""
    taken: list[tuple[float, float, float, float]] = []
    facts: dict[str, Any] = {}
    for _ in range(rounds):
        summariser = Timed()
        wall, cpu = time.perf_counter(), time.process_time()
        facts = once(summariser)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        taken.append((wall, cpu, wall - summariser.wall_s, cpu - summariser.cpu_s))
    columns = ("wall_ms", "cpu_ms", "overhead_wall_ms", "overhead_cpu_ms")
    numbers = {
        column: round(statistics.median(values) * 1_000, 1) for column, values in zip(columns, zip(*taken, strict=True), strict=True)
    }
    sys.stdout.write(json.dumps({"name": name, "rounds": rounds, **numbers, **facts}) + "\n")
    sys.stdout.flush()


def pure(session_id: Any) -> Callable[[Timed], dict[str, Any]]:
    from sessions_app.engine.attempt import Task, run
    from sessions_app.engine.policy import Policy
    from sessions_app.selectors import plans

    entries = list(plans.load_entries(session_id))
    shapes = plans.load_shapes(session_id)

    def once(summariser: Timed) -> dict[str, Any]:
        task = Task(
            shapes=shapes,
            load=lambda first, last: iter(entries[first : last + 1]),
            chain=(),
            policy=Policy(),
            window=200_000,
            signal_tokens=sum(shape.tokens for shape in shapes),
            summarisers=[summariser],
        )
        steps = run(task, should_stop=lambda: None)
        told = 0
        while True:
            try:
                next(steps)
                told += 1
            except StopIteration as end:
                return {"entries": len(entries), "steps": told, "before": end.value.tokens_before, "after": end.value.tokens_after}

    return once


def stored(session_id: Any) -> Callable[[Timed], dict[str, Any]]:
    from sessions_app.models import Session
    from sessions_app.permissions import command_actor
    from sessions_app.services.compactions import run as running
    from sessions_app.services.compactions import task as tasks
    from sessions_app.services.compactions.request import request
    from sessions_app.services.compactions.revert import revert

    def once(summariser: Timed) -> dict[str, Any]:
        tasks.summarisers_for = lambda _policy: [summariser]  # type: ignore[assignment]
        actor = command_actor("")
        asked = request(actor=actor, session=Session.objects.get(pk=session_id)).compaction
        started = time.perf_counter()
        running.run_compaction(asked.pk)
        taken = time.perf_counter() - started
        asked.refresh_from_db()
        if asked.outcome != "committed":
            raise RuntimeError(f"{asked.status}: {asked.explanation}")
        session = Session.objects.get(pk=session_id)
        revert(actor=actor, session=session, generation=None)
        return {"job_ms": round(taken * 1_000, 1), "job_overhead_ms": round((taken - summariser.wall_s) * 1_000, 1)}

    return once


def prepare(generator: str, folder: Path, mean_bytes: int) -> Any:
    """A database of its own with one imported session; answers the session's id."""
    sessions = folder / "sessions"
    command = (sys.executable, generator, "--out", str(sessions), "--sessions", "1", "--entries", str(MESSAGES), "--entries-dist", "fixed")
    size = ("--mean-bytes", str(mean_bytes), "--compact-every", "0", "--seed", "5")
    subprocess.run([*command, *size], check=True, stdout=subprocess.DEVNULL)
    os.environ.update(PALIMPSEST_DATA_DIR=str(folder / "data"), PALIMPSEST_LOG_LEVEL="WARNING")
    os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings.embedded"
    import django

    django.setup()
    from django.core.management import call_command

    from sessions_app.models import Session

    call_command("migrate", verbosity=0)
    call_command("import_sessions", str(sessions), quiet=True, verbosity=0)
    return Session.objects.get(parent=None).pk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generator", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mean-bytes", type=int, default=1_200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-compaction-") as name:
        session_id = prepare(options.generator, Path(name), options.mean_bytes)
        measure("pure", options.rounds, pure(session_id))
        measure("stored", options.rounds, stored(session_id))


if __name__ == "__main__":
    main()
