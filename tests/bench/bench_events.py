"""Measures the event log: appends, verification, and the pages of the audit log, on a million events.

    python -m tests.bench.bench_events [--events 1000000] [--rounds 5] [--dir DIR] [--only verify]

`append`: appends of one event, each a transaction, beside a bare one-row insert into a table of the same columns.
`verify`: all chains beside one sha256 pass over the same bytes, in one piece. `pages`: queries of the audit page by
filter. `import`: an import of a made session with the log, and with an append that writes nothing. Rounds alternate
(A-B-A-B); medians of the paired ratios are printed, one JSON line per measurement. Nothing here is asserted on time.
"""

import argparse
import hashlib
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.rows import Row

WORDS = ("status", "phase", "tokens", "attempt", "entries", "generation", "reason")
ACTORS = ("ana", "olga", "ada", "kim", "worker", "sweeper", "import for ana")
SESSIONS = 2_000


def set_up(folder: Path) -> None:
    """A database of its own in `folder`, as the embedded form has it."""
    os.environ |= {"PALIMPSEST_DATA_DIR": str(folder), "DJANGO_SETTINGS_MODULE": "project.settings.embedded"}
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def fill(count: int, seed: int = 7) -> None:
    """Events of many streams, kinds and people, chained as the log chains them, but written many in a transaction."""
    import uuid
    from datetime import UTC, datetime, timedelta

    from sessions_app.events.log import event_hash
    from sessions_app.events.types import EventType
    from sessions_app.models import Event, EventStream

    rng = random.Random(seed)
    streams = [f"session:{uuid.UUID(int=rng.getrandbits(128))}" for _ in range(SESSIONS)] + ["security", "imports"]
    streams += [f"access:2026-11-{day:02d}" for day in range(1, 31)]
    heads: dict[str, tuple[int, bytes]] = dict.fromkeys(streams, (0, b""))
    types, start = [str(event_type) for event_type in EventType], datetime(2026, 1, 1, tzinfo=UTC)
    weights = [10] * SESSIONS + [200, 50] + [300] * 30
    made = 0
    while made < count:
        rows = []
        for stream in rng.choices(streams, weights, k=min(5_000, count - made)):
            seq, previous = heads[stream]
            is_step = rng.random() < 0.3
            event = Event(
                stream=stream,
                seq=seq + 1,
                type=rng.choice(types),
                compaction_id=uuid.UUID(int=rng.getrandbits(128)) if is_step else None,
                step=1 if is_step else None,
                actor_kind="user",
                actor_id=str(rng.randrange(40)),
                actor_name=rng.choice(ACTORS),
                actor_role=rng.choice(("operator", "support", "admin", "")),
                target_kind="session",
                target_id=stream.partition(":")[2][:36],
                result=rng.choices(("allowed", "refused", "failed"), (970, 25, 5))[0],
                before={"status": "working"} if rng.random() < 0.2 else None,
                after={"status": "idle"} if rng.random() < 0.2 else None,
                request_id=f"{rng.getrandbits(128):032x}",
                address=f"10.4.{rng.randrange(4)}.{rng.randrange(250)}",
                payload={word: rng.randrange(10**6) for word in rng.sample(WORDS, 4)},
                at=(start + timedelta(seconds=(made + len(rows)) * 28)).isoformat(timespec="microseconds"),
                previous_hash=previous,
            )
            event.hash = event_hash(event)
            heads[stream] = (seq + 1, event.hash)
            rows.append(event)
        Event.objects.bulk_create(rows)
        made += len(rows)
    EventStream.objects.bulk_create(EventStream(name=name, last_seq=seq, last_hash=digest) for name, (seq, digest) in heads.items() if seq)


def timed_cpu(work: Callable[[], Any]) -> float:
    """Seconds of the processor: what others do on the machine does not count."""
    started = time.process_time()
    work()
    return time.process_time() - started


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


def pairs(rounds: int, one: Callable[[], Any], other: Callable[[], Any]) -> dict[str, float]:
    """Medians of both, and of the ratio of each pair."""
    times = [(timed(one)[0], timed(other)[0]) for _ in range(rounds)]
    return {
        "s": round(statistics.median(first for first, _ in times), 4),
        "beside_s": round(statistics.median(second for _, second in times), 4),
        "ratio": round(statistics.median(first / second for first, second in times), 2),
    }


def say(name: str, **found: object) -> None:
    print(json.dumps({"what": name, **found}), flush=True)


def tell(identifier: str, what: str, value: float, unit: str, floor: str, is_met: bool, **more: Any) -> None:
    print(Row(identifier, what, value, unit, floor=floor, is_met=is_met, **more).as_json(), flush=True)


def measure_verify(rounds: int, count: int) -> None:
    from sessions_app.events import verify

    said, last = bytearray(), 0
    while rows := verify._rows("id > %s ORDER BY id", (last,), 5_000):
        last = rows[-1][-1]
        said += b"".join(map(verify.hashed_bytes, rows))

    def whole() -> None:
        assert verify.verify_all(processes=os.cpu_count() or 1)[1] == []

    found = pairs(rounds, whole, lambda: hashlib.sha256(said).digest())
    ratio, facts = found["ratio"], {"events": count, "bytes": len(said), **found}
    tell("A3", f"verification of {count} events / one sha256 pass", ratio, "x", "≤ 10 x", ratio <= 10, ratio=ratio, facts=facts)


def measure_append(rounds: int, each: int = 1_000) -> None:
    from django.db import connection, transaction

    from sessions_app.events import log
    from sessions_app.events.actors import system_actor
    from sessions_app.events.types import EventType
    from sessions_app.models import Event

    actor = system_actor("bench")
    columns = [field.column for field in Event._meta.concrete_fields if field.column != "id"]
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE IF NOT EXISTS bench_bare (id INTEGER PRIMARY KEY, {', '.join(columns)})")
        cursor.execute("SELECT " + ", ".join(columns) + ' FROM "sessions_app_event" LIMIT 1')
        row = cursor.fetchone()
    insert = f"INSERT INTO bench_bare ({', '.join(columns)}) VALUES ({', '.join(['%s'] * len(columns))})"

    def append() -> None:
        for number in range(each):
            log.append("security", EventType.SESSION_VIEWED, actor=actor, target=("session", str(number)), payload={"number": number})

    def bare() -> None:
        for _ in range(each):
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(insert, row)

    found = pairs(rounds, append, bare)
    per_s, of_bare = round(each / found["s"]), round(1 / found["ratio"], 2)
    facts = {"bare_per_s": round(each / found["beside_s"]), "of_bare": of_bare, **found}
    tell("A2", "append of one event", per_s, "a second", "≥ 300", per_s >= 300, facts=facts)


def measure_pages(rounds: int) -> None:
    from sessions_app.models import Event
    from sessions_app.selectors.audit import AuditFilters, audit_page, count_matching, count_newer, newest_id

    middle = Event.objects.order_by("pk").values_list("pk", flat=True)[Event.objects.count() // 2]
    newest = newest_id()
    stream = Event.objects.filter(stream__startswith="session:").values_list("stream", flat=True).first()
    asked = {
        "nothing": AuditFilters(),
        "action": AuditFilters(action="policy.changed"),
        "unknown actor": AuditFilters(actor="nobody"),
        "actor and role": AuditFilters(actor="ana", role="admin"),
        "actor and result": AuditFilters(actor="ana", result="failed"),
        "role": AuditFilters(role="support"),
        "unknown role": AuditFilters(role="nobody"),
        "refused": AuditFilters(result="refused"),
        "session": AuditFilters(session=(stream or "").partition(":")[2]),
        "family": AuditFilters(family="security"),
        "request": AuditFilters(request="0" * 32),
        "text that is nowhere": AuditFilters(q="nowhere at all"),
        "text that is everywhere": AuditFilters(q="ana"),
        "kind and text": AuditFilters(kind="cli", q="x"),
    }
    for name, filters in asked.items():
        first = statistics.median(timed(partial(audit_page, filters))[0] for _ in range(rounds))
        deep = statistics.median(timed(partial(audit_page, filters, before=middle))[0] for _ in range(rounds))
        counted = statistics.median(timed(partial(count_matching, filters))[0] for _ in range(rounds))
        newer = statistics.median(timed(partial(count_newer, filters, newest))[0] for _ in range(rounds))
        say(
            "page",
            filter=name,
            first_ms=round(first * 1e3, 1),
            deep_ms=round(deep * 1e3, 1),
            count_ms=round(counted * 1e3, 1),
            poll_ms=round(newer * 1e3, 1),
        )


def measure_import(rounds: int, entries: int = 5_000) -> None:
    """Imports the same made file with the log, and with an append that writes nothing."""
    from unittest.mock import patch

    from sessions_app.events import log
    from sessions_app.events.actors import system_actor
    from sessions_app.services.imports import import_paths

    actor, serial = system_actor("bench"), iter(range(10**6))

    def source() -> Path:
        number = next(serial)
        path = Path(os.environ["PALIMPSEST_DATA_DIR"]) / f"chat-{number}.jsonl"
        with path.open("w") as file:
            for place in range(entries):
                role = "user" if place % 2 == 0 else "assistant"
                file.write(json.dumps({"role": role, "content": f"{number} {place} " + "word " * 200}) + "\n")
        return path

    def with_log() -> float:
        path = source()
        return timed_cpu(lambda: import_paths(actor=actor, paths=[path]))

    def without_log() -> float:
        class Nothing:
            seq, pk = 0, 0

        path = source()
        with patch.object(log, "append", lambda *_, **__: Nothing()):
            return timed_cpu(lambda: import_paths(actor=actor, paths=[path]))

    times = [(with_log(), without_log()) for _ in range(rounds)]
    ratio = round(statistics.median(a / b for a, b in times), 3)
    facts = {"entries": entries, "s": round(statistics.median(a for a, _ in times), 3)}
    tell("A1", "import with / without the log", ratio, "x", "≤ 1.10", ratio <= 1.1, ratio=ratio, facts=facts)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", type=Path, help="a folder that keeps the events for the next time")
    parser.add_argument("--only", choices=["append", "verify", "pages", "import"], action="append")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as scratch:
        set_up(options.dir or Path(scratch))
        from sessions_app.models import Event

        if not Event.objects.exists():
            say("fill", s=round(timed(lambda: fill(options.events))[0], 1))
        wanted = options.only or ["verify", "pages", "append", "import"]
        if "verify" in wanted:
            measure_verify(options.rounds, Event.objects.count())
        if "pages" in wanted:
            measure_pages(options.rounds)
        if "append" in wanted:
            measure_append(options.rounds)
        if "import" in wanted:
            measure_import(options.rounds)


if __name__ == "__main__":
    sys.exit(main())
