"""Measures what a flush of facts costs a compaction, on a session of 20,000 entries in SQLite in a folder of its own.

    python -m tests.bench.bench_memory [--turns 5000] [--rounds 5]

Each mode in turn: `off`, `protect` (beside the attempt) and `block` (the attempt waits for it). `attempt_cpu_ms`: the thread that
runs the attempt; `process_cpu_ms`: with the flush and the keeper. Milliseconds of the processor, medians and least of all rounds; one
JSON line for each mode. No model is asked. Nothing here is asserted: machines are shared.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

MODES = ("off", "protect", "block")


def prepare(folder: Path, turns: int) -> Any:
    """A database of its own with one session of a project."""
    os.environ.update(PALIMPSEST_DATA_DIR=str(folder), PALIMPSEST_LOG_LEVEL="ERROR", DJANGO_SETTINGS_MODULE="project.settings.embedded")
    import django

    django.setup()
    from django.core.management import call_command

    from sessions_app import queue

    call_command("migrate", verbosity=0)
    queue.enqueue = lambda *_: None  # type: ignore[assignment]  # the attempts run here
    from sessions_app.models import Project
    from tests.services.compaction_scenes import long_session

    return long_session(turns=turns, project=Project.objects.create(key="bench", name="Bench"), window_override=2_000_000)


def once(session: Any, mode: str) -> tuple[float, float]:
    """Milliseconds of the processor: the attempt's thread, and the whole process."""
    from sessions_app.models import MemoryFact, MemoryFlush
    from sessions_app.permissions import command_actor
    from sessions_app.services import memory_beside
    from sessions_app.services.compactions.request import request
    from sessions_app.services.compactions.revert import revert
    from sessions_app.services.compactions.run import run_compaction
    from tests.services.compaction_scenes import set_policy

    actor = command_actor("")
    MemoryFlush.objects.all().delete()
    MemoryFact.objects.all().delete()
    set_policy(session, flush_mode=mode)
    session.refresh_from_db()
    if session.active_console_id:
        revert(actor=actor, session=session, generation=None)
    asked = request(actor=actor, session=session, force=True).compaction
    attempt, process = time.thread_time(), time.process_time()
    run_compaction(asked.pk)
    attempt = time.thread_time() - attempt
    memory_beside.wait_for_all(60)
    process = time.process_time() - process
    asked.refresh_from_db()
    if asked.outcome != "committed":
        raise RuntimeError(f"{asked.status}: {asked.explanation}")
    return attempt * 1_000, process * 1_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-memory-") as name:
        session = prepare(Path(name), options.turns)
        once(session, "off")  # imports and caches
        taken: dict[str, list[tuple[float, float]]] = {mode: [] for mode in MODES}
        for _ in range(options.rounds):
            for mode in MODES:
                taken[mode].append(once(session, mode))
        for mode, rounds in taken.items():
            line: dict[str, object] = {"name": f"memory {mode}", "entries": session.entry_count, "rounds": len(rounds)}
            for column, values in zip(("attempt_cpu_ms", "process_cpu_ms"), zip(*rounds, strict=True), strict=True):
                line |= {column: round(statistics.median(values), 1), f"{column}_least": round(min(values), 1)}
            sys.stdout.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
